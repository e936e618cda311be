"""Lifting: from an equality with literal attributes to one rule for all of them, where that can be shown.

What both sides' windows have in common becomes ``**k``; an axis, a permutation or a list of axes becomes a variable.
The lifted rule holds for other ranks too, so its conditions say no ranks but which shapes are equal. It has to pass
T3 and T1 on sampled attributes, ranks and sizes; where it doesn't, less is lifted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from taso_gym.rules.rule import Call, Expr, Output, Root
from taso_gym.rules.unparse import unparse, unparse_term
from taso_substitutions.generalise import General
from taso_substitutions.statement import attempts, equal_shapes, first_that_passes, scalars_of, shapes_are_free
from taso_substitutions.terms import Equality, subterms
from taso_substitutions.verify.prover import Proof

WINDOWS = {"Conv": "k", "AveragePool": "j", "MaxPool": "i"}
"""Operator -> name of the attributes that its calls share."""
VARIABLES = {"axis": "a", "perm": "p", "axes": "d"}
"""Attribute -> first letter of its variable."""
INSTANCES = 10


def lifted(general: General, name: str) -> list[str]:
    """Return the lifted rules of an equality as lines; none where nothing can be lifted."""
    for groups in (True, False):
        for literals in (True, False):
            if lift(general.equality, groups=groups, literals=literals) is None:
                continue
            found: list[str | None] = []
            for equality, proof, end in general.directions():
                sides = lift(equality, groups=groups, literals=literals)
                found.append(_rule(equality, proof, " => ".join(sides), f"{name}{end}") if sides else None)
            lines = [line for line in found if line]
            if lines and len(lines) == len(found):
                return lines
    return []


def _rule(equality: Equality, proof: Proof, body: str, name: str) -> str | None:
    rule = first_that_passes(name, body, _conditions(equality, proof), INSTANCES)
    return unparse(rule) if rule else None


def _conditions(equality: Equality, proof: Proof) -> Iterator[list[str]]:
    """Yield nothing but scalars, then equal ranks, then what is equal; where operands broadcast, that at once."""
    free = shapes_are_free(equality)
    if free:
        yield scalars_of(equality)
    names = list(equality.named().items())
    ranked = [n for n, t in names if t.shape]
    ranks = [f"rank({a}) == rank({b})" for a, b in pairwise(ranked)]
    if ranks and free:
        yield [*scalars_of(equality), *ranks]
    shapes = equal_shapes(equality, proof)
    if shapes:
        yield shapes
        yield [*ranks, *shapes]
    yield from attempts(equality, proof)


def lift(equality: Equality, *, groups: bool, literals: bool) -> tuple[str, str] | None:
    """Return both sides with attributes lifted; None where there is nothing to lift.

    Args:
        equality: the equality.
        groups: lift the group of a convolution with its window, else it is 1.
        literals: lift axes and permutations too.
    """
    calls = [c for side in (equality.left, equality.right) for c in subterms(side)]
    shared = {op for op in WINDOWS if len({c.attrs for c in calls if c.op == op}) == 1}
    names = _variables(calls) if literals else {}
    if not shared and not names:
        return None

    def visit(term: Root) -> Any:
        if isinstance(term, Output):
            return Output(visit(term.call), term.index)
        if not isinstance(term, Call):
            return term
        args = tuple(visit(a) for a in term.args)
        if term.op in shared:
            kept = (("group", Expr("number", 1)),) if term.op == "Conv" and not groups else ()
            return Call(term.op, args, kept, WINDOWS[term.op])
        attrs = tuple((k, names.get((k, e), e)) for k, e in term.attrs)
        return Call(term.op, args, attrs)

    left, right = (unparse_term(visit(side)) for side in (equality.left, equality.right))
    return left, right


def _variables(calls: list[Call]) -> dict[tuple[str, Expr], Expr]:
    """Return a variable for each value of an attribute that may vary."""
    found: dict[tuple[str, Expr], Expr] = {}
    for call in calls:
        for attr in call.attrs:
            if attr[0] in VARIABLES and attr[1].kind != "name":
                found.setdefault(attr, Expr("name", f"{VARIABLES[attr[0]]}{len(found)}"))
    return found
