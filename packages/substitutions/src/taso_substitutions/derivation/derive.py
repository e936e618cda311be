"""Deriving equalities from others by equality saturation (egglog).

Types are ranks and axes of size 1, sizes that are numbers where an operator's attributes are sizes, and whether what
broadcasts has one shape: it measures what a rule adds, and proves nothing; every rule that is kept has its own proofs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from egglog.bindings import EggSmolError, EGraph, PrintAllFunctionsSize

from taso_gym.rules.rule import Call, Output, Root, Var
from taso_gym.rules.unparse import unparse_expr
from taso_gym.tensor import TensorType
from taso_substitutions.enumeration.fragment import BY_KEY
from taso_substitutions.equalities.terms import Equality, attribute_variables, call_of, subterms, type_of, variables

BROADCASTING = frozenset({"Add", "Sub", "Mul", "Div"})
"""Operators whose operands' shapes decide what they mean: what holds for equal shapes may not hold for others."""
SIZED = frozenset({"Expand", "Pad", "Reshape", "Slice", "Split"})
"""Operators with attributes that are sizes: what holds for an axis of two may not hold for one of four."""
INVERTING = ("Sub", "Div")
ITERATIONS = 7
BATCH = 40
"""Equalities that are decided in one e-graph."""
COMPILED = 50
"""Lines that are compiled together: what egglog takes for it grows with their square."""
NODES, NODES_EACH = 40_000, 4_000
"""E-nodes, and those for each equality more, after which saturation ends: a work counter, the same on every machine."""
GROWTH = 4
"""Saturation ends too where an iteration that grows as the last one did would make more than so many times as many."""


class Deriver:
    """Derives equalities from rules that are added as they are found.

    Rules are compiled once, into one e-graph; each has a number, and is used where the fact ``(On number)`` holds. A
    decision is made on top of that and undone.
    """

    def __init__(self, rules: Iterable[Equality] = ()) -> None:
        self.names = Names()
        self.rewrites: dict[str, int] = {}
        self._graph = EGraph()
        self._run("(datatype T (V String) (InverseSub T) (InverseDiv T))\n(relation On (i64))")
        self._known: set[str] = set()
        self.add(rules)

    def add(self, rules: Iterable[Equality]) -> None:
        """Let rules take part."""
        for rule in rules:
            self.lines(rule)

    def lines(self, rule: Equality) -> list[str]:
        """Return the rewrites of a rule, which take part."""
        found = self.names.rewrites(rule)
        for line in found:
            self.rewrites.setdefault(line, len(self.rewrites))
        return found

    def derives(self, targets: Sequence[Equality], lines: Iterable[str] | None = None) -> list[bool]:
        """Return which equalities follow within `ITERATIONS` of equality saturation.

        Args:
            targets: the equalities.
            lines: the rewrites that are used; all by default.
        """
        result: list[bool] = []
        used = self.rewrites.values() if lines is None else [self.rewrites[line] for line in lines]
        for begin in range(0, len(targets), BATCH):
            result += self._decide(targets[begin : begin + BATCH], used)
        return result

    def _decide(self, targets: Sequence[Equality], used: Iterable[int]) -> list[bool]:
        """Decide in one e-graph; what exceeds `NODES` counts as not derived."""
        pairs = [self.names.ground(e, number) for number, e in enumerate(targets)]
        known = [a == b for a, b in pairs]
        if all(known) or not self.rewrites:
            return known
        self._compile()
        facts = " ".join(f"(On {number})" for number in used)
        lets = "\n".join(f"(let $l{i} {a})\n(let $r{i} {b})" for i, (a, b) in enumerate(pairs))
        self._run(f"(push)\n{facts}\n{lets}")
        most, before = NODES + NODES_EACH * len(targets), 1
        for _ in range(ITERATIONS):
            *_, sizes = self._run("(run 1)\n(print-size)")
            assert isinstance(sizes, PrintAllFunctionsSize)
            known = [done or self._holds(f"(check (= $l{i} $r{i}))") for i, done in enumerate(known)]
            size = sum(size for name, size in sizes.sizes if name != "On")
            if all(known) or size > most or size * size > GROWTH * most * before:
                break
            before = size
        self._run("(pop)")
        return known

    def _compile(self) -> None:
        """Bring the e-graph up to date with the names and rewrites so far."""
        rules = [*self.names.commutations(), *self.names.cancellations()]
        rules += [f"{line[:-1]} :when ((On {number})))" for line, number in self.rewrites.items()]
        new = [line for line in (*self.names.constructors(), *rules) if line not in self._known]
        self._known.update(new)
        for begin in range(0, len(new), COMPILED):
            self._run("\n".join(new[begin : begin + COMPILED]))

    def _run(self, program: str) -> Sequence[object]:
        return self._graph.run_program(*self._graph.parse_program(program))

    def _holds(self, check: str) -> bool:
        try:
            self._run(check)
        except EggSmolError:
            return False
        return True


class Names:
    """Writes terms in egglog's language.

    A constructor is an output of an operator on two operands of one shape, or on operands of given ranks, of which
    those axes are known that have size 1; so what holds for a scalar or a column isn't applied to a matrix. Attributes
    are its first arguments.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[str, str, int, tuple[str, ...]], str] = {}

    def _name(self, op: str, attrs: str, output: int, operands: tuple[str, ...]) -> str:
        return self._names.setdefault((op, attrs, output, operands), f"F{len(self._names)}")

    def write(self, term: Root, equality: Equality, leaf: str) -> str:
        """Return a term; ``leaf`` writes a variable, as egglog's own (``{}``) or as a constant."""
        fixed = {name: f'(V "{value}")' for name, value in equality.fixed}
        if isinstance(term, Var):
            return fixed.get(term.name, leaf.format(term.name))
        call = call_of(term)
        assert call is not None
        attrs = " ".join(f"{k}={'?' * len(attribute_variables(Call(call.op, (), ((k, v),))))}" for k, v in call.attrs)
        values = [
            fixed.get(str(v.value), leaf.format(v.value)) if v.kind == "name" else f'(V "{unparse_expr(v)}")'
            for _, v in call.attrs
        ]
        types = [type_of(a, equality) for a in call.args]
        alike = call.op in BROADCASTING and types[0] == types[1]
        shapes = ("=", "=") if alike else tuple(_pattern(t, numbers=call.op in SIZED) for t in types)
        name = self._name(call.op, attrs, term.index if isinstance(term, Output) else 0, shapes)
        return f"({' '.join([name, *values, *(self.write(a, equality, leaf) for a in call.args)])})"

    def ground(self, equality: Equality, number: int) -> tuple[str, str]:
        """Return both sides with constants of their own for variables."""
        leaf = f'(V "{number}.{{}}")'
        left, right = (self.write(side, equality, leaf) for side in (equality.left, equality.right))
        return left, right

    def rewrites(self, rule: Equality) -> list[str]:
        """Return the directions of a rule in which no variable appears from nowhere."""
        sides, fixed = [(rule.left, rule.right), (rule.right, rule.left)], {name for name, _ in rule.fixed}
        return [
            f"(rewrite {self.write(a, rule, '{}')} {self.write(b, rule, '{}')})"
            for a, b in sides
            if call_of(a) is not None and _names(b) - fixed <= _names(a) and not _is_identity(a, b)
        ]

    def commutations(self) -> list[str]:
        """Return what every matcher of ours knows without a rule: operands that may be swapped."""
        found: list[str] = []
        for (op, attrs, output, operands), name in list(self._names.items()):
            if BY_KEY[op].commutative and len(operands) == 2:
                found.append(f"(rewrite ({name} a b) ({self._name(op, attrs, output, operands[::-1])} b a))")
        return found

    def cancellations(self) -> list[str]:
        """Return what is taken as given of terms in which an input cancels, since no rule can be made of two of them.

        It is a law of groups: (x - y) - x is the inverse of y, and so (x / y) / x, of operands of one shape.
        """
        names = ((op, self._names.get((op, "", 0, ("=", "=")))) for op in INVERTING)
        return [f"(rewrite ({name} ({name} a b) a) (Inverse{op} b))" for op, name in names if name]

    def constructors(self) -> list[str]:
        """Return the declarations of all constructors used so far."""
        return [
            f"(constructor {name} ({' '.join(['T'] * (len(operands) + attrs.count('=')))}) T)"
            for (_, attrs, _, operands), name in self._names.items()
        ]


def _pattern(type_: TensorType | None, *, numbers: bool) -> str:
    """Return the rank of an operand and its axes of size 1; all sizes that are numbers, where these decide."""
    if type_ is None:
        return "?"
    return ",".join(str(d) if d == 1 or (numbers and isinstance(d, int)) else "n" for d in type_.shape or ())


def _is_identity(a: Root, b: Root) -> bool:
    """Whether a term is a variable only at certain sizes: a Reshape to the shape that there is."""
    return isinstance(b, Var) and any(call.op == "Reshape" for call in subterms(a))


def _names(term: Root) -> set[str]:
    assert isinstance(term, Var | Call | Output)
    return {*variables(term), *attribute_variables(term)}
