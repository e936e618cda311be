"""Type inference that several operators share."""

from __future__ import annotations

from collections.abc import Sequence

from taso_gym.errors import TypeInferenceError
from taso_gym.ops.operator import Attrs, Types
from taso_gym.tensor import Dim, Shape, TensorType


def tensor(types: Types, index: int) -> TensorType:
    """Return the type of an input that must be there."""
    t = types[index]
    if t is None:
        raise TypeInferenceError(f"expected a tensor as input {index}, found none")
    return t


def shape(types: Types, index: int) -> Shape:
    """Return the shape of an input that must be there; its rank is known (`taso_gym.signature` sees to that)."""
    found = tensor(types, index).shape
    assert found is not None
    return found


def broadcast(a: Shape, b: Shape) -> Shape:
    """Return the shape of an element-wise result by NumPy's rule; over symbols, equality must be shown."""
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    return tuple(broadcast_dim(x, y) for x, y in pairs)


def broadcast_dim(x: Dim, y: Dim) -> Dim:
    """Return the size that two dimensions broadcast to."""
    if x == y or y == 1:
        return x
    if x == 1:
        return y
    raise TypeInferenceError(f"expected dimensions that broadcast, found {x} and {y}")


def elementwise(types: Types, _attrs: Attrs) -> tuple[TensorType, ...]:
    """One output of the operands' element type and broadcast shape."""
    present = [t for t in types if t is not None]
    result: Shape = ()
    for t in present:
        if t.dtype != present[0].dtype:
            raise TypeInferenceError(f"expected operands of one element type, found {present[0]} and {t}")
        result = broadcast(result, t.shape or ())
    return (TensorType(present[0].dtype, result),)


def same_as_first(types: Types, _attrs: Attrs) -> tuple[TensorType, ...]:
    """One output of the first input's type."""
    return (tensor(types, 0),)


def axis_of(axis: int, rank: int) -> int:
    """Return a non-negative axis."""
    if not -rank <= axis < rank:
        raise TypeInferenceError(f"expected an axis in [{-rank}, {rank - 1}], found {axis}")
    return axis % rank


def axes_of(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return non-negative axes in ascending order, each once."""
    found = tuple(sorted(axis_of(a, rank) for a in axes))
    if len(set(found)) != len(found):
        raise TypeInferenceError(f"expected each axis once, found {tuple(axes)}")
    return found
