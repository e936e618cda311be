"""Tensors in index form: axes of symbolic size, and for each position the normal form of the element there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import reduce
from itertools import count, product
from typing import Any

from taso_gym.tensor import Dim, Poly, floor_div
from taso_substitutions.verify.normal_form import (
    ZERO,
    Coordinate,
    Factor,
    Index,
    Polynomial,
    atom,
    canonical,
    collect,
    constant,
    variables,
)
from taso_substitutions.verify.sizes import UNIT, Axis, Segment, Sizes, UnprovableError

Position = tuple[Coordinate, ...]
At = Callable[[Position], Polynomial]
START: Coordinate = (0, ())
"""The only position along an axis of size 1."""

_numbers = count()


class IndexTensor:
    """A tensor whose elements are given by a function of the position; what ``xp`` calls an array."""

    __slots__ = ("_at", "_memo", "axes", "sizes")

    def __init__(self, sizes: Sizes, axes: Sequence[Axis], at: At) -> None:
        self.sizes, self.axes, self._at = sizes, tuple(axes), at
        self._memo: dict[Position, Polynomial] = {}

    def at(self, position: Position) -> Polynomial:
        """Return the normal form of the element at a position."""
        found = self._memo.get(position)
        if found is None:
            found = self._memo[position] = self._at(position)
        return found

    @property
    def shape(self) -> tuple[Dim, ...]:
        """Sizes of the axes."""
        return tuple(self.sizes.dim(a) for a in self.axes)

    def map(self, f: Callable[[Polynomial], Polynomial]) -> IndexTensor:
        """Apply a function to each element."""
        return IndexTensor(self.sizes, self.axes, lambda p: f(self.at(p)))

    def __getitem__(self, index: Any) -> IndexTensor:
        return _getitem(self, index if isinstance(index, tuple) else (index,))

    def __add__(self, other: Any) -> IndexTensor:
        return combine(lambda a, b: a + b, self, self.lift(other))

    def __sub__(self, other: Any) -> IndexTensor:
        return combine(lambda a, b: a + -b, self, self.lift(other))

    def __rsub__(self, other: Any) -> IndexTensor:
        return self.lift(other) - self

    def __mul__(self, other: Any) -> IndexTensor:
        return combine(lambda a, b: a * b, self, self.lift(other))

    def __neg__(self) -> IndexTensor:
        return self.map(lambda a: -a)

    def __truediv__(self, other: Any) -> IndexTensor:
        return combine(lambda a, b: a * inverse(b), self, self.lift(other))

    def __rtruediv__(self, other: Any) -> IndexTensor:
        return self.lift(other) / self

    __radd__ = __add__
    __rmul__ = __mul__

    def lift(self, value: Any) -> IndexTensor:
        """Return a number or a size as a scalar tensor."""
        if isinstance(value, IndexTensor):
            return value
        polynomial = self.size_polynomial(value) if isinstance(value, Poly) else constant(Fraction(value))
        return IndexTensor(self.sizes, (), lambda _: polynomial)

    def size_polynomial(self, dim: Poly) -> Polynomial:
        """Return a size as an element."""
        total = ZERO
        for monomial, coefficient in dim.terms:
            total = total + reduce(lambda p, a: p * atom(("n", a)), monomial, constant(coefficient))
        return total


def inverse(p: Polynomial) -> Polynomial:
    """Return 1 / p; distributes over what can be taken out of a single term."""
    if p.constant:
        return constant(1 / p.constant)
    if len(p.terms) != 1:
        return atom(("f", "inv", (p,)))
    (term,) = p.terms.values()
    bound = {name for name, _ in term.bound}
    outside = [f for f in term.factors if not bound & set(variables(f))]
    inside = tuple(f for f in term.factors if f not in outside)
    result = constant(1 / term.coefficient)
    for factor in outside:
        result = result * _inverse_of(factor)
    if not inside:
        return result
    return result * atom(("f", "inv", (collect([canonical(Fraction(1), term.bound, inside)]),)))


def _inverse_of(factor: Factor) -> Polynomial:
    if factor[0] == "n":
        return atom(("1/n", factor[1]))
    return factor[2][0] if factor[:2] == ("f", "inv") else atom(("f", "inv", (atom(factor),)))


def combine(f: Callable[..., Polynomial], *operands: IndexTensor) -> IndexTensor:
    """Apply a function element by element to tensors that broadcast."""
    axes = broadcast_axes(*operands)

    def at(position: Position) -> Polynomial:
        return f(*(x.at(read_broadcast(x, position)) for x in operands))

    return IndexTensor(operands[0].sizes, axes, at)


def broadcast_axes(*operands: IndexTensor) -> tuple[Axis, ...]:
    """Return the axes that tensors broadcast to; axes of symbolic size are unified."""
    rank = max(len(x.axes) for x in operands)
    result: list[Axis] = [UNIT] * rank
    for x in operands:
        for i, axis in enumerate(x.axes, rank - len(x.axes)):
            if axis != UNIT:
                result[i] = axis if result[i] == UNIT else x.sizes.unify(result[i], axis)
    return tuple(result)


def read_broadcast(x: IndexTensor, position: Position) -> Position:
    """Return the position in an operand that a position in the broadcast result reads."""
    own = position[len(position) - len(x.axes) :]
    return tuple(START if axis == UNIT else c for axis, c in zip(x.axes, own, strict=True))


def positions(axis: Axis, prefix: str) -> Iterator[tuple[Coordinate, list[tuple[str, str]]]]:
    """Yield coordinates that cover an axis, with the variables that they use and the sizes these range over.

    Concrete sizes are enumerated, symbolic ones get a variable named ``prefix…:size``.
    """
    for number, segment in enumerate(axis):
        for indices, used in _indices(segment, prefix):
            yield (number, indices), used


def _indices(segment: Segment, prefix: str) -> Iterator[tuple[tuple[Index, ...], list[tuple[str, str]]]]:
    choices: list[list[tuple[Index, list[tuple[str, str]]]]] = []
    for a in segment:
        if a.isdigit():
            choices.append([((0, "", i), []) for i in range(int(a))])
        else:
            name = f"{prefix}{next(_numbers)}:{a}" if prefix == "s" else f"{prefix}.{len(choices)}:{a}"
            choices.append([((1, name, 0), [(name, a)])])
    for choice in product(*choices):
        yield tuple(i for i, _ in choice), [pair for _, used in choice for pair in used]


def sum_axis(axis: Axis, f: Callable[[Coordinate], Polynomial]) -> Polynomial:
    """Sum a function of the coordinate along an axis."""
    total = ZERO
    for coordinate, used in positions(axis, "s"):
        part = f(coordinate)
        for name, size in used:
            part = part.sum_over(name, size)
        total = total + part
    return total


def _getitem(x: IndexTensor, index: tuple[Any, ...]) -> IndexTensor:
    """Basic indexing by integers, slices, None and Ellipsis."""
    given = sum(i is not None and i is not Ellipsis for i in index)
    spot = index.index(Ellipsis) if Ellipsis in index else len(index)
    fill = (slice(None),) * (len(x.axes) - given)
    full = index[:spot] + fill + index[spot + 1 :]
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
    if axis == UNIT:
        return START
    if len(axis) == 1 and len(axis[0]) == 1:
        name = axis[0][0]
        if name.isdigit():
            return (0, ((0, "", position % int(name)),))
        if position < 0:
            sizes.fix(name)
        return (0, ((0, "", position),))
    raise UnprovableError(f"expected an axis that can be read at {position}, found {sizes.dim(axis)}")


def slice_axis(sizes: Sizes, axis: Axis, entry: slice) -> tuple[Axis, Callable[[Coordinate], Coordinate]]:
    """Return the axis that a slice leaves, and how its coordinates read the whole one."""
    total = sizes.expand(sizes.dim(axis))
    start: Dim = 0 if entry.start is None else sizes.expand(entry.start)
    stop: Dim = total if entry.stop is None else sizes.expand(entry.stop)
    step: int = 1 if entry.step is None else entry.step
    start = start + total if isinstance(start, int) and start < 0 else start
    stop = stop + total if isinstance(stop, int) and stop < 0 else stop
    if sizes.value(stop) > sizes.value(total):
        stop = total
    if start == 0 and stop == total and step == 1:
        return axis, lambda c: c
    if step == 1 and (edges := _edges(sizes, axis, start, stop)):
        first, last = edges
        part = axis[first:last]
        return part, lambda c: (c[0] + first, c[1])
    return _strided(sizes, axis, start, stop, step)


def _edges(sizes: Sizes, axis: Axis, start: Dim, stop: Dim) -> tuple[int, int] | None:
    """Return the segments between two positions where both lie on edges of segments."""
    ends: list[Dim] = [0]
    for segment in axis:
        ends.append(ends[-1] + sizes.expand(sizes.dim((segment,))))
    return (ends.index(start), ends.index(stop)) if start in ends and stop in ends else None


def _strided(
    sizes: Sizes, axis: Axis, start: Dim, stop: Dim, step: int
) -> tuple[Axis, Callable[[Coordinate], Coordinate]]:
    """Read every step-th position from a concrete start of an axis that is whole."""
    if len(axis) != 1 or len(axis[0]) != 1 or not isinstance(start, int) or step < 1:
        raise UnprovableError(f"expected a slice along the edges of {sizes.dim(axis)}, found [{start}:{stop}:{step}]")
    length = stop - start if step == 1 else floor_div(stop - start + (step - 1), step)
    result = whole_axis(sizes, length)
    if result == UNIT:
        return result, lambda _: (0, ((0, "", start),))

    def read(c: Coordinate) -> Coordinate:
        stride, name, offset = c[1][0]
        return (0, ((stride * step, name, offset * step + start),))

    return result, read


def whole_axis(sizes: Sizes, dim: Dim) -> Axis:
    """Return an axis of one segment and one atom of this size."""
    dim = sizes.expand(dim)
    axis = sizes.axis_of(dim)
    if axis == UNIT or isinstance(dim, int) or (len(axis) == 1 and len(axis[0]) == 1):
        return axis
    return ((sizes.atom_of(dim, sizes.value(dim)),),)
