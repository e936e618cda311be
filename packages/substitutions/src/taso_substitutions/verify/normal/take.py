"""Reading at positions that depend on values (Gather) in index form.

An element that is read at index j along an axis becomes, for an index that is itself an element e, each of its leaves
read at e: ``take of size(leaf at @, e)``. Since reading at e means to put e for j, it commutes with every function of
the element; guards on j are refused. A negative e counts from the end, so the size belongs to the name.
"""

from __future__ import annotations

from itertools import count

from taso_substitutions.verify.normal.axes import UNIT, UnprovableError
from taso_substitutions.verify.normal.canonical import canonical
from taso_substitutions.verify.normal.factors import Coordinate, Factor, has, rename, sorted_arguments, variables
from taso_substitutions.verify.normal.index_tensor import START, IndexTensor, Position
from taso_substitutions.verify.normal.polynomial import Polynomial, atom, collect

_numbers = count()
"""Of variables that stand for a position while its leaves are looked for."""


def take(x: IndexTensor, indices: IndexTensor, axis: int) -> IndexTensor:
    """Return the elements of ``x`` at ``indices`` along an axis."""
    axis %= len(x.axes)
    own, rank = x.axes[axis], len(indices.axes)
    x.sizes.touch(own)
    if own != UNIT and (len(own) != 1 or len(own[0]) != 1):
        atoms = [a for segment in own for a in segment]
        raise UnprovableError("expected an axis of one piece to read at positions that depend on values", atoms)

    def at(position: Position) -> Polynomial:
        before, where, after = position[:axis], position[axis : axis + rank], position[axis + rank :]
        if own == UNIT:
            return x.at((*before, START, *after))
        size = own[0][0]
        index = indices.at(where)
        variable = f"@{next(_numbers)}:{size}"
        coordinate: Coordinate = (0, ((1, variable, 0),))
        return _read_at(x.at((*before, coordinate, *after)), variable, index, size)

    return IndexTensor(x.sizes, [*x.axes[:axis], *indices.axes, *x.axes[axis + 1 :]], at)


def _read_at(p: Polynomial, variable: str, index: Polynomial, size: str) -> Polynomial:
    return collect(
        canonical(t.coefficient, t.bound, tuple(_factor_at(f, variable, index, size) for f in t.factors))
        for t in p.terms.values()
    )


def _factor_at(factor: Factor, variable: str, index: Polynomial, size: str) -> Factor:
    if not has(factor, variable):
        return factor
    if factor[0] == "x":
        taken = set(variables(factor))
        free = next(name for name in (f"@{i}" for i in count()) if name not in taken)
        leaf = atom(rename(factor, {variable: (1, free, 0)}))
        return ("f", f"take {free} of {size}", (leaf, index))
    if factor[0] != "f":
        raise UnprovableError("expected no padding where positions depend on values")
    arguments = tuple(_read_at(p, variable, index, size) for p in factor[2])
    return ("f", factor[1], sorted_arguments(factor[1], arguments))
