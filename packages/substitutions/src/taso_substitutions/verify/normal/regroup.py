"""Reshape in index form: the factors of the axes, in row-major order, are grouped anew.

An axis of k equal segments is the product of k and the segment; any other concatenation can only be carried over
whole. Numbers are divided as a shape asks for; a symbolic size that has to be divided becomes a product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

from taso_gym.symbolic import Dim, Poly, exact_div, product, quotient_of
from taso_substitutions.verify.normal.axes import UNIT, Axis, UnprovableError, atoms_of, folded, is_number, spread
from taso_substitutions.verify.normal.factors import Coordinate, Index
from taso_substitutions.verify.normal.index_tensor import IndexTensor, Position
from taso_substitutions.verify.normal.polynomial import Polynomial
from taso_substitutions.verify.normal.sizes import Sizes

WHOLE = -1


@dataclass(frozen=True)
class Piece:
    """A factor of an axis, a divisor of one that is a number, or a whole axis.

    Attributes:
        axis: number of the axis.
        factor: which factor of it; `WHOLE`.
        size: axis that has this size.
        stride: what the index of a divisor counts for.
    """

    axis: int
    factor: int
    size: Axis
    stride: int = 1


def regroup(sizes: Sizes, x: IndexTensor, shape: tuple[Dim, ...]) -> IndexTensor:
    """Return a tensor reshaped to these sizes.

    Raises:
        UnprovableError: no grouping of the factors gives these sizes.
    """
    if all(map(is_number, x.axes)) and all(isinstance(d, int) for d in shape):
        return _renumbered(x, [d for d in shape if isinstance(d, int)])
    _make_whole(sizes, x, tuple(map(sizes.expand, shape)))
    try:
        return _grouped(sizes, x, shape)
    except UnprovableError as error:
        if sizes.phase != "left":
            raise
        atoms = atoms_of([*x.axes, *map(sizes.axis_of, shape)])
        raise UnprovableError(str(error), [*error.atoms, *atoms]) from error


def _make_whole(sizes: Sizes, x: IndexTensor, shape: tuple[Dim, ...]) -> None:
    """Make a size a multiple of a number where a shape has their quotient: else it had another number of elements.

    The quotient is the outer factor, unless the number stands before it in the shape.
    """
    total = product(map(sizes.expand, x.shape))
    for place, dim in enumerate(shape):
        whole, divisor = quotient_of(str(dim)) or (1, 1)
        atom = str(whole)
        if not isinstance(divisor, int) or isinstance(whole, int) or atom not in sizes.example:
            continue
        rest, others = exact_div(total, whole), product(d for i, d in enumerate(shape) if i != place)
        if rest is None or others != rest * divisor or not sizes.is_free(atom):
            continue
        if place and isinstance(before := shape[place - 1], int) and before > 1:
            sizes.divide(atom, str(divisor), sizes.example[atom] // divisor)
        sizes.example[f"{atom}/{divisor}"] = sizes.example[atom] // divisor
        sizes.refine("product", atom, ((f"{atom}/{divisor}", *_factors(divisor, shape[place + 1 :])),))


def _factors(number: int, shape: tuple[Dim, ...]) -> list[str]:
    """Return a number as the product of the sizes that a shape begins with, if it is that."""
    found: list[str] = []
    for dim in shape:
        if isinstance(dim, Poly) or prod(map(int, found)) == number:
            break
        found.append(str(dim))
    return found if prod(map(int, found)) == number else [str(number)]


def _grouped(sizes: Sizes, x: IndexTensor, shape: tuple[Dim, ...]) -> IndexTensor:
    waiting = [piece for number, axis in enumerate(x.axes) for piece in _pieces(number, axis)]
    wrong = f"expected a shape of as many elements as {x.shape}, found {shape}"
    groups: list[list[Piece]] = []
    for dim in shape:
        group: list[Piece] = []
        left: Dim = dim
        while left != 1:
            if not waiting:
                raise UnprovableError(wrong)
            rest = exact_div(left, sizes.dim(waiting[0].size))
            if rest is None:
                waiting[:1] = _divided(sizes, waiting[0], left)
                continue
            group.append(waiting.pop(0))
            left = rest
        groups.append(group)
    if any(piece.size != UNIT for piece in waiting):
        raise UnprovableError(wrong)
    axes = [_axis(group) for group in groups]
    for group in groups:
        for piece in group:
            if len(group) > 1 or piece.size != x.axes[piece.axis]:
                sizes.touch(x.axes[piece.axis])
    return IndexTensor(sizes, axes, lambda position: x.at(_position(x.axes, groups, position)))


def _renumbered(x: IndexTensor, shape: list[int]) -> IndexTensor:
    """Reshape a tensor whose sizes are all numbers, by the number of each element in row-major order."""
    sizes = [len(axis) for axis in x.axes]
    if prod(sizes) != prod(shape):
        raise UnprovableError(f"expected a shape of as many elements as {x.shape}, found {shape}")

    def at(position: Position) -> Polynomial:
        number = 0
        for (segment, _), size in zip(position, shape, strict=True):
            number = number * size + segment
        own: list[Coordinate] = []
        for size in reversed(sizes):
            own.insert(0, (number % size, ()))
            number //= size
        return x.at(tuple(own))

    return IndexTensor(x.sizes, [((),) * size for size in shape], at)


def _pieces(number: int, axis: Axis) -> list[Piece]:
    factors = folded(axis)
    if factors is None:
        return [Piece(number, WHOLE, axis)]
    return [Piece(number, i, spread((a,))) for i, a in enumerate(factors)]


def _divided(sizes: Sizes, piece: Piece, left: Dim) -> list[Piece]:
    """Return the pieces that a piece falls into, where it is larger than what is left of a size."""
    if piece.factor == WHOLE:
        sizes.unify(piece.size, sizes.axis_of(left))
    if any(piece.size):
        _divide_atom(sizes, piece.size[0][0], left)
    count = len(piece.size)
    outer = gcd(count, left) if isinstance(left, int) else 1
    if outer > 1:
        inner = replace(piece, size=((),) * (count // outer))
        return [replace(piece, size=((),) * outer, stride=piece.stride * (count // outer)), inner]
    _divide_atom(sizes, str(count), left)
    return []


def _divide_atom(sizes: Sizes, atom: str, left: Dim) -> None:
    """Refine an atom and what is left of a size until one divides the other, and start again."""
    need = folded(sizes.axis_of(left))
    if need is None:
        sizes.unify(spread((atom,)), sizes.axis_of(left))
        raise UnprovableError(f"expected sizes that are products, found {atom} and {left}", [atom])
    own = sizes.size_of((atom,))
    for factor in need:
        size = sizes.size_of((factor,))
        if size == own:
            sizes.identify((atom,), (factor,))
        if own % size == 0 and sizes.is_free(atom):
            sizes.divide(atom, factor, own // size)
        if size % own == 0 and sizes.is_free(factor):
            sizes.divide(factor, atom, size // own)
    raise UnprovableError(f"expected a factor of {left} in the size {atom}", [atom, *need])


def _axis(group: list[Piece]) -> Axis:
    """Return the axis of a group; numbers in front are that many equal segments."""
    if not group:
        return UNIT
    if len(group) == 1:
        return group[0].size
    if any(piece.factor == WHOLE for piece in group):
        atoms = atoms_of(piece.size for piece in group)
        raise UnprovableError("expected an axis that is a concatenation to be carried over whole", atoms)
    return spread(tuple(_name(piece) for piece in group))


def _name(piece: Piece) -> str:
    return piece.size[0][0] if any(piece.size) else str(len(piece.size))


def _position(axes: Sequence[Axis], groups: list[list[Piece]], position: Position) -> Position:
    """Return the position in the operand that a position in the result reads."""
    found: dict[tuple[int, int], Index] = {}
    whole: dict[int, Coordinate] = {}
    for group, coordinate in zip(groups, position, strict=True):
        if len(group) == 1 and group[0].factor == WHOLE:
            whole[group[0].axis] = coordinate
            continue
        for piece, index in zip(group, _indices(group, coordinate), strict=True):
            key = (piece.axis, piece.factor)
            if any(piece.size):
                found[key] = index
            else:
                found[key] = (0, "", found.get(key, (0, "", 0))[2] + index[2] * piece.stride)
    return tuple(whole[n] if n in whole else _coordinate(n, axis, found) for n, axis in enumerate(axes))


def _indices(group: list[Piece], coordinate: Coordinate) -> list[Index]:
    """Return the index along each piece of a group; the segment counts the numbers in front."""
    segment, indices = coordinate
    numbers = 0
    while numbers < len(group) and not any(group[numbers].size):
        numbers += 1
    front: list[Index] = []
    for piece in reversed(group[:numbers]):
        front.insert(0, (0, "", segment % len(piece.size)))
        segment //= len(piece.size)
    return [*front, *indices]


def _coordinate(number: int, axis: Axis, found: dict[tuple[int, int], Index]) -> Coordinate:
    factors = folded(axis)
    assert factors is not None
    indices = [found.get((number, i), (0, "", 0)) for i in range(len(factors))]
    return (indices[0][2], tuple(indices[1:])) if len(axis) > 1 else (0, tuple(indices))
