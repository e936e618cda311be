"""Basic indexing of index forms: integers, slices, None and Ellipsis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from taso_gym.symbolic import Dim, Poly, floor_div
from taso_substitutions.verify.normal.axes import UNIT, Axis, UnprovableError, is_number
from taso_substitutions.verify.normal.factors import Coordinate
from taso_substitutions.verify.normal.index_tensor import IndexTensor, Position
from taso_substitutions.verify.normal.polynomial import Polynomial
from taso_substitutions.verify.normal.sizes import Sizes

Reader = Callable[[Coordinate], Coordinate]


def getitem(x: IndexTensor, index: tuple[Any, ...]) -> IndexTensor:
    """Return ``x[index]``."""
    given = sum(i is not None and i is not Ellipsis for i in index)
    spot = index.index(Ellipsis) if Ellipsis in index else len(index)
    full = index[:spot] + (slice(None),) * (len(x.axes) - given) + index[spot + 1 :]
    axes: list[Axis] = []
    readers: list[Callable[[Iterator[Coordinate]], Coordinate | None]] = []
    own = iter(x.axes)
    for entry in full:
        if entry is None:
            axes.append(UNIT)
            readers.append(_skip)
            continue
        axis = next(own)
        if isinstance(entry, slice):
            sliced, read = slice_axis(x.sizes, axis, entry)
            axes.append(sliced)
            readers.append(lambda it, read=read: read(next(it)))
        else:
            readers.append(_fixed(_at_index(x.sizes, axis, entry)))

    def at(position: Position) -> Polynomial:
        it = iter(position)
        return x.at(tuple(c for c in [r(it) for r in readers] if c is not None))

    return IndexTensor(x.sizes, axes, at)


def _fixed(coordinate: Coordinate) -> Callable[[Iterator[Coordinate]], Coordinate]:
    return lambda _: coordinate


def _skip(it: Iterator[Coordinate]) -> None:
    next(it)


def _at_index(sizes: Sizes, axis: Axis, position: int) -> Coordinate:
    """Return the coordinate of a concrete position along an axis."""
    sizes.touch(axis)
    if is_number(axis) and -len(axis) <= position < len(axis):
        return (position % len(axis), ())
    start: Dim = 0
    for number, segment in enumerate(axis):
        inside = position - start if isinstance(start, int) else -1
        if segment == () and inside == 0:
            return (number, ())
        if len(segment) == 1 and 0 <= inside < sizes.size_of(segment):
            return (number, ((0, "", inside),))
        start = start + sizes.expand(sizes.dim((segment,)))
    raise UnprovableError(f"expected an axis that can be read at {position}, found {sizes.dim(axis)}", _atoms(axis))


def _atoms(axis: Axis) -> list[str]:
    return [a for segment in axis for a in segment]


def slice_axis(sizes: Sizes, axis: Axis, entry: slice) -> tuple[Axis, Reader]:
    """Return the axis that a slice leaves, and how its coordinates read the whole one."""
    if entry in (slice(None), slice(None, None, 1)):
        return axis, lambda c: c
    sizes.touch(axis)
    total = sizes.expand(sizes.dim(axis))
    begin, end = (None if bound is None else sizes.expand(bound) for bound in (entry.start, entry.stop))
    step: int = 1 if entry.step is None else entry.step
    if is_number(axis) and not isinstance(begin, Poly) and not isinstance(end, Poly):
        places = range(len(axis))[begin:end:step]
        return ((),) * len(places), lambda c: (places[c[0]], ())
    start: Dim = 0 if begin is None else begin
    stop: Dim = total if end is None else end
    start = start + total if isinstance(start, int) and start < 0 else start
    stop = stop + total if isinstance(stop, int) and stop < 0 else stop
    if start == 0 and stop == total and step == 1:
        return axis, lambda c: c
    if step == 1:
        edges = _edges(sizes, axis)
        if start in edges and stop in edges:
            first = edges.index(start)
            return axis[first : edges.index(stop)], lambda c: (c[0] + first, c[1])
        for place in (start, stop) if isinstance(stop, int) else ():
            _cut_at(sizes, axis, edges, place)
    return _strided(sizes, axis, start, stop, step)


def _edges(sizes: Sizes, axis: Axis) -> list[Dim]:
    """Return the positions at which segments begin, and the end."""
    edges: list[Dim] = [0]
    for segment in axis:
        edges.append(edges[-1] + sizes.expand(sizes.dim((segment,))))
    return edges


def _cut_at(sizes: Sizes, axis: Axis, edges: list[Dim], place: Dim) -> None:
    """Cut the atom that a position lies within, a number of elements after its start."""
    for segment, edge in zip(axis, edges, strict=False):
        inside = place - edge
        if len(segment) == 1 and isinstance(inside, int) and sizes.is_free(segment[0]):
            size = sizes.size_of(segment)
            if 0 < inside <= size:
                sizes.cut(segment[0], ((),) * inside, size - inside)


def _strided(sizes: Sizes, axis: Axis, start: Dim, stop: Dim, step: int) -> tuple[Axis, Reader]:
    """Read every step-th position from a concrete start of an axis that is whole."""
    if len(axis) != 1 or len(axis[0]) != 1 or not isinstance(start, int) or step < 1:
        found = f"[{start}:{stop}:{step}]"
        raise UnprovableError(f"expected a slice along the edges of {sizes.dim(axis)}, found {found}", _atoms(axis))
    length = stop - start if step == 1 else floor_div(stop - start + (step - 1), step)
    result = whole_axis(sizes, length)
    if is_number(result):
        places = [start + step * i for i in range(len(result))]
        return result, lambda c: (0, ((0, "", places[c[0]]),))

    def read(c: Coordinate) -> Coordinate:
        stride, name, offset = c[1][0]
        return (0, ((stride * step, name, offset * step + start),))

    return result, read


def whole_axis(sizes: Sizes, dim: Dim) -> Axis:
    """Return an axis of one segment and one atom of this size, or of a number."""
    dim = sizes.expand(dim)
    axis = sizes.axis_of(dim)
    if isinstance(dim, int) or is_number(axis) or (len(axis) == 1 and len(axis[0]) == 1):
        return axis
    return ((sizes.atom_of(dim, sizes.value(dim)),),)
