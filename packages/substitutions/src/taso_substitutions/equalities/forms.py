"""A lifted form of an equality, and the conditions under which it may be a rule, weaker ones first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from taso_gym.rules.rule import Call, Expr, Var
from taso_substitutions.equalities.narrowing import narrowings
from taso_substitutions.equalities.sizes import ATOM, equal_shapes, equal_sizes, equalities, ranks_of, scalars_of
from taso_substitutions.equalities.statement import attempts, shapes_are_free, slides
from taso_substitutions.equalities.terms import Equality, call_of, literal, subterms
from taso_substitutions.verify.prover import Proof

SPATIAL = 2
"""First axis along which windows slide."""

Literals = Mapping[tuple[str, Expr], Expr]
"""Attribute and its value -> the variable that it becomes."""


@dataclass(frozen=True)
class Lifted:
    """An equality with lifted attributes, from left to right.

    Attributes:
        body: both sides, as a rule writes them.
        names: what became variables.
        windows: whether windows became ``**k``.
        turned: whether an axis is that of a permutation.
    """

    body: str
    names: Literals = field(default_factory=dict[tuple[str, Expr], Expr])
    windows: bool = False
    turned: bool = False

    def axes(self) -> dict[int, str]:
        """Return the axes that became variables."""
        return {int(literal(e)): str(v.value) for (attr, e), v in self.names.items() if attr == "axis"}

    def perms(self) -> dict[tuple[int, ...], str]:
        """Return the permutations that became variables."""
        return {literal(e): str(v.value) for (attr, e), v in self.names.items() if attr == "perm"}


def conditions_of(equality: Equality, proof: Proof, form: Lifted) -> Iterator[list[str]]:
    """Yield nothing but scalars, then equal ranks, then what is equal; where operands broadcast, that at once."""
    scalars, free = scalars_of(equality), shapes_are_free(equality)
    if free:
        yield scalars
    if not slides(equality):
        for narrow in narrowings(equality, equal_sizes(proof), form.axes()):
            yield [*scalars, *narrow.conditions]
    ranks = _equal_ranks(equality)
    if ranks and free:
        yield [*scalars, *ranks]
    perms = sorted(form.perms().items(), key=lambda item: item[1])
    inverses = [
        f"inverse({p}) == {q}" for perm, p in perms for other, q in perms if p <= q and _are_inverse(perm, other)
    ]
    if inverses and free and not form.turned:
        yield [*scalars, *inverses]
    shapes = equal_shapes(equality, proof)
    if shapes:
        yield shapes
        yield [*ranks, *shapes]
    axes = _equal_axes(proof, form.axes())
    if axes:
        yield [*ranks, *axes]
    yield from filter(None, (_other_axes(equality, form), _cuts_before_joints(equality, form)))
    transposed = _transposes_matrices(equality, form)
    if transposed:
        yield [*ranks, *transposed]
    if form.windows:
        yield from _outside_windows(equality, proof, form)
        yield from attempts(equality, proof)


def _outside_windows(equality: Equality, proof: Proof, form: Lifted) -> Iterator[list[str]]:
    """Yield that axes aren't spatial, and what a proof makes equal along those that are."""
    outside = [f"{a} < {SPATIAL}" for a in form.axes().values()]
    if outside:
        yield outside
        facts = [f for f in equalities(proof.typing) or [] if min(map(int, re.findall(r", (\d+)\)", f))) >= SPATIAL]
        yield [*ranks_of(equality), *outside, *facts]


def _equal_ranks(equality: Equality) -> list[str]:
    """Return that variables of one rank have one rank."""
    ranked: dict[int, list[str]] = {}
    for name, type_ in equality.named().items():
        if type_.shape:
            ranked.setdefault(len(type_.shape), []).append(name)
    return [f"rank({a}) == rank({b})" for names in ranked.values() for a, b in pairwise(names)]


def _equal_axes(proof: Proof, axes: Mapping[int, str]) -> list[str]:
    """Return what a proof makes equal along axes that are variables, which differ; none where no axis is."""
    found: list[str] = []
    for fact in (*proof.typing, *proof.lacking):
        left, right = (ATOM.match(side) for side in re.split(" = ", fact, maxsplit=1))
        if left and right and left[2] == right[2] and int(left[2]) in axes:
            axis = axes[int(left[2])]
            found.append(f"dim({left[1]}, {axis}) == dim({right[1]}, {axis})")
    return [*found, *(f"{a} != {b}" for a, b in combinations(axes.values(), 2))] if found else []


def _other_axes(equality: Equality, form: Lifted) -> list[str]:
    """Return that axes that became variables aren't those that are cut."""
    cut = sorted({axis for call in _slices(equality) for axis in literal(dict(call.attrs)["axes"])})
    return [f"{a} != {axis}" for a in form.axes().values() for axis in cut]


def _cuts_before_joints(equality: Equality, form: Lifted) -> list[str]:
    """Return that what is cut out of joined tensors ends within the first of them."""
    found: list[str] = []
    for call in _slices(equality):
        attrs, joined = dict(call.attrs), call_of(call.args[0])
        end = form.names.get(("ends", attrs["ends"]))
        if end and joined and joined.op == "Concat" and isinstance(joined.args[0], Var):
            axis = literal(dict(joined.attrs)["axis"])
            if literal(attrs["axes"]) == (axis,):
                found.append(f"{end.value}[0] <= dim({joined.args[0].name}, {axis})")
    return found


def _slices(equality: Equality) -> list[Call]:
    return [c for side in (equality.left, equality.right) for c in subterms(side) if c.op == "Slice"]


def _transposes_matrices(equality: Equality, form: Lifted) -> list[str]:
    """Return that permutations swap the last two axes of tensors of one rank, for any rank."""
    ranked = {len(t.shape or ()): name for name, t in equality.named().items()}
    found: list[str] = []
    for perm, p in form.perms().items():
        if perm != (*range(len(perm) - 2), len(perm) - 1, len(perm) - 2) or len(perm) not in ranked:
            return []
        rank = f"rank({ranked[len(perm)]})"
        found.append(f"{p} == range({rank} - 2) + [{rank} - 1, {rank} - 2]")
    return found


def _are_inverse(perm: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return len(perm) == len(other) and all(perm[i] == axis for axis, i in enumerate(other))
