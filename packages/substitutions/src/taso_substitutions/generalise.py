"""Generalising: from an equality that was found at one size to the most general statement that can be proved.

Three steps, each kept only if T1 still proves the rule: a term that both sides share becomes a variable; occurrences of
one variable become different variables; dimensions are general from the start, since the prover gives each axis a
symbol of its own. What the right side needs besides the left side's typing becomes the rule's conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

from taso_gym.errors import TasoError, TypeInferenceError
from taso_gym.rules.conditions import Binding
from taso_gym.rules.functions import Operand
from taso_gym.rules.rule import Call, Expr, Term, Var
from taso_gym.signature import signature
from taso_gym.tensor import TensorType
from taso_substitutions.candidates import Equality, canonical, substitute, subterms, variables
from taso_substitutions.fragments import BY_KEY
from taso_substitutions.verify.prover import Proof, prove

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


class Generaliser:
    """Generalises the equalities of one fragment.

    Args:
        sizes: numbers for the fragment's letters, all different.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes

    def run(self, equality: Equality) -> General | None:
        """Return the most general form, or None where the equality can't be proved at all."""
        if self.prove(equality) is None and self.prove(equality.flipped()) is None:
            return None
        found = equality
        for step in (self._abstract, self._separate):
            found = self._fixpoint(found, step)
        return General(found, self.prove(found), self.prove(found.flipped()))

    def prove(self, equality: Equality) -> Proof | None:
        """Prove an equality from left to right at a concrete typing; None where that fails."""
        left, right = set(variables(equality.left)), set(variables(equality.right))
        if not right <= left or isinstance(equality.left, Var):
            return None
        tensors = {f"x{i}": Operand(t.bind(self.sizes)) for i, t in enumerate(equality.types)}
        attrs = {name: tuple(d if isinstance(d, int) else d.bind(self.sizes) for d in v) for name, v in equality.attrs}
        try:
            return prove(equality.rule("candidate"), Binding(tensors, attrs))
        except TasoError:
            return None

    def holds(self, equality: Equality) -> bool:
        """Whether one direction at least can be proved."""
        return self.prove(equality) is not None or self.prove(equality.flipped()) is not None

    def _fixpoint(self, equality: Equality, step: object) -> Equality:
        while True:
            better = next((e for e in step(equality) if self.holds(e)), None)  # type: ignore[operator]
            if better is None:
                return equality
            equality = better

    def _abstract(self, equality: Equality) -> Iterator[Equality]:
        """Replace a term that occurs on both sides by a variable."""
        shared = set(subterms(equality.left)) & set(subterms(equality.right))
        for term in sorted(shared, key=lambda t: -len(list(subterms(t)))):
            type_ = self.type_of(term, equality)
            if type_ is None or term in (equality.left, equality.right):
                continue
            types = self._named(equality) | {"new": type_}
            mapping: dict[Term, Term] = {term: Var("new")}
            left, right = substitute(equality.left, mapping), substitute(equality.right, mapping)
            yield canonical(left, right, types, equality.attrs)

    def _separate(self, equality: Equality) -> Iterator[Equality]:
        """Tell occurrences of a variable apart: every way to pair those of one side with those of the other."""
        for name, type_ in self._named(equality).items():
            left, right = occurrences(equality.left, name), occurrences(equality.right, name)
            if not 2 <= left == right <= SPLITS:
                continue
            types = self._named(equality) | {f"{name}_{i}": type_ for i in range(left)}
            for order in permutations(range(right)):
                a = rename(equality.left, name, [f"{name}_{i}" for i in range(left)])
                b = rename(equality.right, name, [f"{name}_{i}" for i in order])
                yield canonical(a, b, types, equality.attrs)

    def _named(self, equality: Equality) -> dict[str, TensorType]:
        return {f"x{i}": t for i, t in enumerate(equality.types)}

    def type_of(self, term: Term, equality: Equality) -> TensorType | None:
        """Return the type of a term over the fragment's letters; None where it has several outputs or none."""
        if isinstance(term, Var):
            return equality.types[int(term.name[1:])]
        assert isinstance(term, Call)
        types = [self.type_of(a, equality) for a in term.args]  # pyright: ignore[reportArgumentType]
        named = dict(equality.attrs)
        try:
            attrs = {k: named[str(e.value)] if e.kind == "name" else literal(e) for k, e in term.attrs}
            found = signature(BY_KEY[term.op], attrs, types).outputs[0]
        except TypeInferenceError:
            return None
        return found if isinstance(found, TensorType) else None


def literal(expr: Expr) -> object:
    """Return the value of a literal attribute."""
    if expr.kind == "list":
        return tuple(literal(e) for e in expr.args)
    return -literal(expr.args[0]) if expr.kind == "-" else expr.value  # type: ignore[operator]


def occurrences(term: Term, name: str) -> int:
    """Count the occurrences of a variable."""
    if isinstance(term, Call):
        return sum(occurrences(a, name) for a in term.args)  # pyright: ignore[reportArgumentType]
    return int(term == Var(name))


def rename(term: Term, name: str, names: list[str]) -> Term:
    """Rename the occurrences of a variable one by one, from left to right."""
    remaining = iter(names)

    def visit(t: Term) -> Term:
        if isinstance(t, Call):
            return Call(t.op, tuple(visit(a) for a in t.args), t.attrs, t.others)  # pyright: ignore[reportArgumentType]
        return Var(next(remaining)) if t == Var(name) else t

    return visit(term)
