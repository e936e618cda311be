"""Tensors in index form: axes of symbolic size, and for each position the normal form of the element there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import count, product
from operator import add, mul
from typing import Any

from taso_gym.symbolic import Dim, Poly
from taso_substitutions.verify.normal.axes import UNIT, Axis, Segment
from taso_substitutions.verify.normal.factors import Coordinate, Index
from taso_substitutions.verify.normal.polynomial import ZERO, Polynomial, atom, constant
from taso_substitutions.verify.normal.sizes import Sizes

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
        from taso_substitutions.verify.normal.slicing import getitem

        return getitem(self, index if isinstance(index, tuple) else (index,))

    def __add__(self, other: Any) -> IndexTensor:
        return combine(add, self, self.lift(other))

    def __sub__(self, other: Any) -> IndexTensor:
        return combine(difference, self, self.lift(other))

    def __rsub__(self, other: Any) -> IndexTensor:
        return self.lift(other) - self

    def __mul__(self, other: Any) -> IndexTensor:
        return combine(mul, self, self.lift(other))

    def __neg__(self) -> IndexTensor:
        return self.map(lambda a: -a)

    def __truediv__(self, other: Any) -> IndexTensor:
        return combine(self._quotient, self, self.lift(other))

    def _quotient(self, a: Polynomial, b: Polynomial) -> Polynomial:
        return a * self.sizes.inverse(b)

    def __rtruediv__(self, other: Any) -> IndexTensor:
        return self.lift(other) / self

    __radd__ = __add__
    __rmul__ = __mul__

    def lift(self, value: Any) -> IndexTensor:
        """Return a number or a size as a scalar tensor."""
        if isinstance(value, IndexTensor):
            return value
        size = self.sizes.expand(value) if isinstance(value, Poly) else value
        if isinstance(size, Poly):
            self.sizes.count(size)
        polynomial = size_polynomial(size) if isinstance(size, Poly) else self.sizes.number(size)
        return IndexTensor(self.sizes, (), lambda _: polynomial)


def size_polynomial(dim: Poly) -> Polynomial:
    """Return a size as an element."""
    total = ZERO
    for monomial, coefficient in dim.terms:
        total = total + reduce(lambda p, a: p * atom(("n", a)), monomial, constant(coefficient))
    return total


def difference(a: Polynomial, b: Polynomial) -> Polynomial:
    """Return a - b."""
    return a + -b


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
