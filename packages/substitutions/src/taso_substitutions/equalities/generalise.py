"""Generalising: from an equality that was found at one size to the most general statement that can be proved.

Two steps, each kept only if T1 still proves the rule: a term that occurs more than once becomes a variable; occurrences
of one variable become different variables. Dimensions are general from the start, since the prover gives each axis a
symbol of its own. What the right side needs besides the left side's typing becomes the rule's conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from taso_gym.errors import TasoError
from taso_gym.rules.conditions import Binding
from taso_gym.rules.functions import Operand
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.rule import Call, Output, Root, Rule, Term, Var
from taso_gym.rules.ruleset import operators_of
from taso_gym.symbolic import Dim
from taso_substitutions.equalities.terms import (
    Equality,
    attribute_variables,
    call_of,
    canonical,
    substitute,
    subterms,
    type_of,
    variables,
)
from taso_substitutions.verify.analytic import prove_analytic
from taso_substitutions.verify.prover import Proof, UnprovableError, prove

ANALYTIC = frozenset({"Div", "Exp", "Softmax", "LayerNormalization", "BatchNormalization"})
"""Operators of which the fragments have equalities that are true of these functions, not of any."""
SUMMING = frozenset({"ReduceSum", "ReduceMean", "GlobalAveragePool"})
"""Operators in which sizes are numbers: what they make equal may be so for equal sizes only."""
SPLITS = 4
"""Most occurrences of a variable on each side for which all ways to tell them apart are tried."""


@dataclass(frozen=True)
class General:
    """A most general equality with its proofs.

    Attributes:
        equality: the equality.
        forward, backward: proofs of the two directions; None for a direction that isn't a rule.
    """

    equality: Equality
    forward: Proof | None
    backward: Proof | None

    def directions(self) -> Iterator[tuple[Equality, Proof, str]]:
        """Yield (equality, proof, end of the name) of each direction that is a rule."""
        if self.forward:
            yield self.equality, self.forward, ""
        if self.backward:
            yield self.equality.flipped(), self.backward, "-back"


class Generaliser:
    """Generalises the equalities of one fragment.

    Args:
        sizes: numbers for the fragment's letters, all different.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self._holds: dict[str, bool] = {}

    def run(self, equality: Equality) -> Equality | None:
        """Return the most general form, or None where the equality can't be proved at all."""
        if not self.holds(equality):
            return None
        while True:
            abstract = self._fixpoint(equality, self._abstract)
            separate = self._fixpoint(abstract, self._separate)
            if separate.key == abstract.key:
                return separate
            equality = separate  # what no longer shares a variable may be a term that both sides share

    def proofs(self, equality: Equality) -> General:
        """Return an equality with its proofs."""
        return General(equality, self.prove(equality), self.prove(equality.flipped()))

    def prove(self, equality: Equality) -> Proof | None:
        """Prove an equality from left to right at a concrete typing; None where that fails."""
        left, right = equality.left, equality.right
        if call_of(left) is None or not set(variables(right)) <= set(variables(left)):
            return None
        if not set(attribute_variables(right)) <= set(attribute_variables(left)):
            return None
        with suppress(TasoError):
            return shown(equality.rule("candidate"), self.binding(equality))
        if operators_of((left, right)) & SUMMING:
            with suppress(TasoError):
                return shown(typed_rule(equality), self.binding(equality))
        return None

    def binding(self, equality: Equality) -> Binding:
        """Return what the variables stand for in the example that a proof starts from."""
        tensors = {name: Operand(t.bind(self.sizes)) for name, t in equality.named().items()}
        attrs = {name: tuple(d if isinstance(d, int) else d.bind(self.sizes) for d in v) for name, v in equality.attrs}
        return Binding(tensors, attrs)

    def holds(self, equality: Equality) -> bool:
        """Whether one direction at least can be proved."""
        if equality.key not in self._holds:
            found = self.prove(equality) is not None or self.prove(equality.flipped()) is not None
            self._holds[equality.key] = found
        return self._holds[equality.key]

    def _fixpoint(self, equality: Equality, step: Callable[[Equality], Iterator[Equality]]) -> Equality:
        while True:
            better = next((e for e in step(equality) if self.holds(e)), None)
            if better is None:
                return equality
            equality = better

    def _abstract(self, equality: Equality) -> Iterator[Equality]:
        """Replace a term that occurs more than once by a variable, or one whose variables one side only has."""
        left, right = equality.left, equality.right
        alone = set(variables(left)) ^ set(variables(right))
        terms = outputs_of(left) | outputs_of(right)
        shared = [t for t in terms if times(left, t) + times(right, t) > 1 or set(variables(t)) <= alone]
        for term in sorted(shared, key=lambda t: (-len(list(subterms(t))), repr(t))):
            type_ = type_of(term, equality)
            if type_ is None:
                continue
            types = equality.named() | {"new": type_}
            mapping: dict[Root, Root] = {term: Var("new")}
            left, right = substitute(equality.left, mapping), substitute(equality.right, mapping)
            yield canonical(left, right, types, equality.attrs)

    def _separate(self, equality: Equality) -> Iterator[Equality]:
        """Tell occurrences of a variable apart: some of those on each side become a variable of their own."""
        for name, type_ in equality.named().items():
            left, right = occurrences(equality.left, name), occurrences(equality.right, name)
            if not 2 <= min(left, right) <= max(left, right) <= SPLITS:
                continue
            types = equality.named() | {"new": type_}
            for first, second in product(_parts(left), (*_parts(right), *_parts(right, without_first=True))):
                a = rename(equality.left, name, ["new" if i in first else name for i in range(left)])
                b = rename(equality.right, name, ["new" if i in second else name for i in range(right)])
                yield canonical(a, b, types, equality.attrs)


def _parts(count: int, *, without_first: bool = False) -> list[tuple[int, ...]]:
    """Return the ways to choose some of several things, not all, the first among them or not."""
    begin = () if without_first else (0,)
    rest = range(1, count)
    sizes = range(1, count) if without_first else range(count - 1)
    return [begin + chosen for size in sizes for chosen in combinations(rest, size)]


def typed_rule(equality: Equality) -> Rule:
    """Return an equality as a rule for operands that are typed as it is: sizes that are one letter are equal."""
    used = set(variables(equality.left))
    named = [(n, t.shape or ()) for n, t in equality.named().items() if n in used]
    conditions = [f"rank({n}) == {len(shape)}" for n, shape in named]
    first: dict[Dim, str] = {}
    for name, shape in named:
        for axis, dim in enumerate(shape):
            place = f"dim({name}, {axis})"
            other = str(dim) if isinstance(dim, int) else first.setdefault(dim, place)
            conditions += [f"{place} == {other}"] * (place != other)
    (rule,) = parse_rules(f"typed: {equality.body} if {' and '.join(conditions)}")
    return rule


def shown(rule: Rule, example: Binding) -> Proof:
    """Prove a rule for all sizes, by axioms of non-linear functions where it isn't true of any function.

    Raises:
        UnprovableError: the sides differ, or have no index form.
        WorkExhaustedError: the normal forms are too large.
    """
    try:
        return prove(rule, example)
    except UnprovableError:
        if not operators_of((*rule.lhs, *rule.rhs)) & ANALYTIC:
            raise
        return prove_analytic(rule, example)


def outputs_of(term: Root) -> set[Term]:
    """Return the tensors inside a term that operators compute, itself among them."""
    call = call_of(term)
    if call is None:
        return set()
    assert isinstance(term, Call | Output)
    return {term}.union(*(outputs_of(arg) for arg in call.args))


def times(term: Root, inner: Root) -> int:
    """Count the occurrences of a term inside another or as it."""
    call = call_of(term)
    return 1 if term == inner else sum(times(a, inner) for a in call.args) if call else 0


def occurrences(term: Root, name: str) -> int:
    """Count the occurrences of a variable."""
    return times(term, Var(name))


def rename(term: Term, name: str, names: list[str]) -> Term:
    """Rename the occurrences of a variable one by one, from left to right."""
    remaining = iter(names)

    def visit(t: Any) -> Any:
        if isinstance(t, Output):
            return Output(visit(t.call), t.index)
        if isinstance(t, Call):
            return Call(t.op, tuple(visit(a) for a in t.args), t.attrs, t.others)
        return Var(next(remaining)) if t == Var(name) else t

    return visit(term)
