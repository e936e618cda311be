"""Reshape in index form: the factors of the axes, in row-major order, are grouped anew.

An axis that is a concatenation of k equal segments is the product of k and the segment, and the other way round; any
other concatenation can only be carried over whole. A size that has to be divided becomes a product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from taso_gym.tensor import Dim, exact_div
from taso_substitutions.verify.index_tensor import IndexTensor, Position
from taso_substitutions.verify.normal_form import Coordinate, Index
from taso_substitutions.verify.sizes import UNIT, Axis, Sizes, UnprovableError


class Piece(NamedTuple):
    """A factor of an axis: an atom of its segment, its number of equal segments, or the whole axis.

    Attributes:
        axis: number of the axis.
        factor: which atom; `BLOCKS` or `WHOLE`.
        size: axis that has this size.
    """

    axis: int
    factor: int
    size: Axis


BLOCKS, WHOLE = -1, -2


def regroup(sizes: Sizes, x: IndexTensor, shape: tuple[Dim, ...]) -> IndexTensor:
    """Return a tensor reshaped to these sizes.

    Raises:
        UnprovableError: no grouping of the factors gives these sizes.
    """
    waiting = [piece for number, axis in enumerate(x.axes) for piece in _pieces(number, axis)]
    groups: list[list[Piece]] = []
    for dim in shape:
        group: list[Piece] = []
        left: Dim = dim
        while left != 1:
            if not waiting:
                raise UnprovableError(f"expected a shape of as many elements as {x.shape}, found {shape}")
            rest = exact_div(left, sizes.dim(waiting[0].size))
            if rest is None:
                waiting[:1] = _divided(sizes, x.axes, waiting[0], left)
                continue
            group.append(waiting.pop(0))
            left = rest
        groups.append(group)
    if waiting:
        raise UnprovableError(f"expected a shape of as many elements as {x.shape}, found {shape}")
    axes = [_axis(group) for group in groups]
    return IndexTensor(sizes, axes, lambda position: x.at(_position(x.axes, groups, position)))


def _pieces(number: int, axis: Axis) -> list[Piece]:
    if len(axis) > 1:
        return [Piece(number, WHOLE, axis)]
    return [Piece(number, i, ((a,),)) for i, a in enumerate(axis[0])]


def _divided(sizes: Sizes, axes: Sequence[Axis], piece: Piece, left: Dim) -> list[Piece]:
    """Return the pieces that a piece falls into, where it is larger than what is left of a size."""
    if piece.factor != WHOLE:
        _divide_atom(sizes, piece.size[0][0], left)
    axis = axes[piece.axis]
    if sizes.value(left) == sizes.value(sizes.dim(axis)) or sizes.value(left) % len(axis):
        sizes.unify(axis, sizes.axis_of(left))
    for segment in axis[1:]:
        if segment != axis[0]:
            sizes.unify((axis[0],), (segment,))
    blocks = Piece(piece.axis, BLOCKS, ((str(len(axis)),),))
    return [blocks, *(Piece(piece.axis, i, ((a,),)) for i, a in enumerate(axis[0]))]


def _divide_atom(sizes: Sizes, atom: str, left: Dim) -> None:
    """Refine an atom and what is left of a size until one divides the other, and start again."""
    need = sizes.axis_of(left)
    if len(need) != 1:
        sizes.unify(((atom,),), need)
        raise UnprovableError(f"expected sizes that are products, found {atom} and {left}")
    own = sizes.size_of((atom,))
    for factor in need[0]:
        size = sizes.size_of((factor,))
        if size == own:
            sizes.identify((atom,), (factor,))
        if own % size == 0 and sizes.is_free(atom):
            sizes.divide(atom, factor, own // size)
        if size % own == 0 and sizes.is_free(factor):
            sizes.divide(factor, atom, size // own)
    raise UnprovableError(f"expected a factor of {left} in the size {atom}")


def _axis(group: list[Piece]) -> Axis:
    """Return the axis of a group; a number in front is that many equal segments."""
    if not group:
        return UNIT
    if len(group) == 1:
        return group[0].size
    if any(piece.factor == WHOLE for piece in group):
        raise UnprovableError("expected an axis that is a concatenation to be carried over whole")
    segment = tuple(piece.size[0][0] for piece in group)
    return (segment[1:],) * int(segment[0]) if segment[0].isdigit() else (segment,)


def _position(axes: Sequence[Axis], groups: list[list[Piece]], position: Position) -> Position:
    """Return the position in the operand that a position in the result reads."""
    found: dict[tuple[int, int], Index] = {}
    whole: dict[int, Coordinate] = {}
    for group, (segment, indices) in zip(groups, position, strict=True):
        if len(group) == 1 and group[0].factor == WHOLE:
            whole[group[0].axis] = (segment, indices)
            continue
        blocks = len(group) > 1 and group[0].size[0][0].isdigit()
        full = ((0, "", segment), *indices) if blocks else indices
        found.update(zip(((p.axis, p.factor) for p in group), full, strict=True))
    result: list[Coordinate] = []
    for number, axis in enumerate(axes):
        segment = found[number, BLOCKS][2] if (number, BLOCKS) in found else 0
        indices = tuple(found[number, i] for i in range(len(axis[0]))) if number not in whole else ()
        result.append(whole.get(number, (segment, indices)))
    return tuple(result)
