"""Padding in index form: elements beyond an axis are read through guards, or as blocks of their own."""

from __future__ import annotations

from functools import reduce

from taso_gym.symbolic import Dim, Poly
from taso_substitutions.verify.normal.axes import Axis, atoms_of
from taso_substitutions.verify.normal.extremes import NAME_OF, option
from taso_substitutions.verify.normal.factors import Factor, Index
from taso_substitutions.verify.normal.index_tensor import IndexTensor, Position
from taso_substitutions.verify.normal.polynomial import ONE, Polynomial, atom
from taso_substitutions.verify.normal.sizes import Sizes
from taso_substitutions.verify.normal.slicing import whole_axis


def pad_axis(x: IndexTensor, axis: int, before: Dim, after: Dim, value: Polynomial) -> IndexTensor:
    """Return a tensor padded along an axis with a constant."""
    own = x.axes[axis]
    atoms, sizes = atoms_of([own]), x.sizes
    sizes.touch(own)
    if len(own) != 1 or len(own[0]) != 1 or len(atoms) != 1 or isinstance(before, Poly) or isinstance(after, Poly):
        return _pad_blocks(x, axis, before, after, value)
    (inner,) = atoms
    padded = whole_axis(sizes, sizes.dim(own) + before + after)

    def at(position: Position) -> Polynomial:
        stride, name, offset = position[axis][1][0]
        index = (stride, name, offset - before)
        inside = guards_of(sizes, index, inner)
        if inside is None:
            return value
        return _guarded(inside, x.at((*position[:axis], (0, (index,)), *position[axis + 1 :])), value)

    return IndexTensor(sizes, [*x.axes[:axis], padded, *x.axes[axis + 1 :]], at)


def _guarded(guards: list[Factor], inside: Polynomial, outside: Polynomial) -> Polynomial:
    """Return one element where guards hold, else another one."""
    if outside in NAME_OF:
        return option(NAME_OF[outside], guards, inside)
    guard = reduce(lambda a, b: a * b, map(atom, guards), ONE)
    return guard * inside + (ONE + -guard) * outside


def _pad_blocks(x: IndexTensor, axis: int, before: Dim, after: Dim, value: Polynomial) -> IndexTensor:
    """Put blocks of the constant before and after the segments of an axis."""
    first: Axis = x.sizes.axis_of(before)
    own = x.axes[axis]
    segments = (*first, *own, *x.sizes.axis_of(after))

    def at(position: Position) -> Polynomial:
        number, indices = position[axis]
        inside = 0 <= number - len(first) < len(own)
        return x.at((*position[:axis], (number - len(first), indices), *position[axis + 1 :])) if inside else value

    return IndexTensor(x.sizes, [*x.axes[:axis], segments, *x.axes[axis + 1 :]], at)


def guards_of(sizes: Sizes, index: Index, size: str) -> list[Factor] | None:
    """Return what must hold for an index to lie within an axis; None where it never does.

    A number in the size is moved to the index, so that guards on sizes that differ by a number can be compared.
    """
    stride, name, offset = index
    guards: list[Factor] = []
    if offset < 0:
        if not name:
            return None
        guards.append((">=", index))
    dim = sizes.expand(sizes.dim_of_atom(size))
    last: Dim = offset
    if name:
        last = (sizes.dim_of_atom(name.rpartition(":")[2]) - 1) * stride + offset
    if sizes.least(sizes.expand(dim - last)) >= 1:
        return guards
    shift = dict(dim.terms).get((), 0) if isinstance(dim, Poly) else 0
    return [*guards, ("<", (stride, name, offset - shift), str(dim - shift))]
