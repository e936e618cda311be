"""Minimising: the rules that the others derive are left out, by equality saturation (egglog).

Derivation is untyped: it measures what a rule adds, and proves nothing; every rule that is kept has its own proofs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from egglog.bindings import EggSmolError, EGraph

from taso_gym.rules.rule import Call, Term, Var
from taso_gym.rules.unparse import unparse_expr
from taso_substitutions.candidates import Equality, variables
from taso_substitutions.fragments import BY_KEY

ITERATIONS = 3
BATCH = 60
"""Equalities that are decided in one e-graph."""


def derivable(targets: Sequence[Equality], rules: Sequence[Equality], iterations: int = ITERATIONS) -> list[bool]:
    """Return which equalities follow from rules within some iterations of equality saturation."""
    result: list[bool] = []
    for begin in range(0, len(targets), BATCH):
        result += _decide(targets[begin : begin + BATCH], rules, iterations)
    return result


def _decide(targets: Sequence[Equality], rules: Sequence[Equality], iterations: int) -> list[bool]:
    names = Names()
    rewrites = sorted({line for rule in rules for line in names.rewrites(rule)})
    pairs = [(names.ground(e.left), names.ground(e.right)) for e in targets]
    swaps = names.commutations()
    lets = [f"(let $l{i} {a})\n(let $r{i} {b})" for i, (a, b) in enumerate(pairs)]
    graph = EGraph()
    text = "\n".join([names.datatype(), *rewrites, *swaps, *lets, f"(run {iterations})"])
    graph.run_program(*graph.parse_program(text))
    return [_holds(graph, f"(check (= $l{i} $r{i}))") for i in range(len(targets))]


def _holds(graph: EGraph, check: str) -> bool:
    try:
        graph.run_program(*graph.parse_program(check))
    except EggSmolError:
        return False
    return True


class Names:
    """Writes terms in egglog's language; an operator with its attributes is one constructor."""

    def __init__(self) -> None:
        self._constructors: dict[str, tuple[str, int, bool]] = {}

    def constructor(self, call: Call) -> str:
        """Return the constructor of an operator instance."""
        attrs = ",".join(f"{k}={unparse_expr(v)}" for k, v in call.attrs)
        key = f"{call.op}[{attrs}]/{len(call.args)}"
        if key not in self._constructors:
            name = f"F{len(self._constructors)}"
            self._constructors[key] = (name, len(call.args), BY_KEY[call.op].commutative)
        return self._constructors[key][0]

    def pattern(self, term: Term) -> str:
        """Return a term whose variables are egglog's."""
        if isinstance(term, Var):
            return term.name
        assert isinstance(term, Call)
        return f"({self.constructor(term)} {' '.join(self.pattern(a) for a in term.args)})"  # pyright: ignore

    def ground(self, term: Term) -> str:
        """Return a term whose variables are constants."""
        if isinstance(term, Var):
            return f'(V "{term.name}")'
        assert isinstance(term, Call)
        return f"({self.constructor(term)} {' '.join(self.ground(a) for a in term.args)})"  # pyright: ignore

    def rewrites(self, rule: Equality) -> list[str]:
        """Return the directions of a rule in which no variable appears from nowhere."""
        sides = [(rule.left, rule.right), (rule.right, rule.left)]
        return [
            f"(rewrite {self.pattern(a)} {self.pattern(b)})"
            for a, b in sides
            if isinstance(a, Call) and set(variables(b)) <= set(variables(a))
        ]

    def commutations(self) -> list[str]:
        """Return what every matcher of ours knows without a rule: operands that may be swapped."""
        return [
            f"(rewrite ({n} a b) ({n} b a))" for n, arity, swaps in self._constructors.values() if swaps and arity == 2
        ]

    def datatype(self) -> str:
        """Return the declaration of all constructors used so far."""
        rows = [f"({name} {'T ' * arity})" for name, arity, _ in self._constructors.values()]
        return f"(datatype T (V String) {' '.join(rows)})"


def basis(
    rules: Sequence[Equality], on_progress: Callable[[str], None] = lambda _: None, given: Sequence[Equality] = ()
) -> list[Equality]:
    """Return a small part of the rules that derives all of them.

    Forward: the smallest rule that isn't derivable yet is taken, and again. Backward: each one taken is left out again
    if the others derive it.

    Args:
        rules: equalities that have been proved.
        on_progress: told how far it is.
        given: rules that may be used besides and aren't returned.
    """
    waiting = sorted(rules, key=lambda e: (e.size, e.key))
    chosen: list[Equality] = []
    while waiting:
        taken = waiting[: max(1, len(chosen) // 8)] if len(chosen) < 200 else waiting[:32]
        kept: list[Equality] = []
        for rule in taken:
            if not derivable([rule], [*given, *chosen, *kept])[0]:
                kept.append(rule)
        chosen += kept
        rest = waiting[len(taken) :]
        done = derivable(rest, [*given, *chosen])
        waiting = [rule for rule, known in zip(rest, done, strict=True) if not known]
        on_progress(f"basis: {len(chosen)} rules, {len(waiting)} left to derive")
    for rule in sorted(chosen, key=lambda e: (-e.size, e.key)):
        others = [r for r in chosen if r is not rule]
        if derivable([rule], [*given, *others])[0]:
            chosen = others
    return chosen
