"""Type inference that several operators share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from taso_gym.errors import TypeInferenceError
from taso_gym.ops.operator import Attrs, Types, Work
from taso_gym.symbolic import Dim, Shape, exact_div, product
from taso_gym.tensor import FLOATS, TensorType


def tensor(types: Types, index: int) -> TensorType:
    """Return the type of an input that must be there."""
    t = types[index] if index < len(types) else None
    if t is None:
        raise TypeInferenceError(f"expected a tensor as input {index}, found none")
    return t


def optional(types: Types, index: int) -> TensorType | None:
    """Return the type of an input that may be absent."""
    return types[index] if index < len(types) else None


def shape(types: Types, index: int) -> Shape:
    """Return the shape of an input that must be there; its rank is known (`taso_gym.signature` sees to that)."""
    found = tensor(types, index).shape
    assert found is not None
    return found


def one_dtype(types: Types) -> str:
    """Return the element type that all operands share."""
    present = [t for t in types if t is not None]
    for t in present:
        expect(t.dtype == present[0].dtype, "operands of one element type", f"{present[0]} and {t}")
    return present[0].dtype


def expect(condition: bool, wanted: str, found: object) -> None:
    """Raise `TypeInferenceError` unless ``condition`` is shown."""
    if not condition:
        parts = cast("tuple[object, ...]", found) if type(found) is tuple else (found,)
        raise TypeInferenceError(f"expected {wanted}, found {', '.join(map(str, parts)) or '()'}")


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


def broadcasts_to(a: Shape, target: Shape) -> None:
    """Raise `TypeInferenceError` unless a tensor of shape ``a`` broadcasts to ``target`` without enlarging it."""
    expect(broadcast(a, target) == target, f"a shape that broadcasts to {target}", a)


def elementwise(types: Types, _attrs: Attrs) -> tuple[TensorType, ...]:
    """One output of the operands' element type and broadcast shape."""
    result: Shape = ()
    for t in types:
        if t is not None:
            result = broadcast(result, t.shape or ())
    return (TensorType(one_dtype(types), result),)


def truth(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """One output of truth values, of the operands' broadcast shape."""
    return (elementwise(types, attrs)[0]._replace(dtype="bool"),)


def same_as_first(types: Types, _attrs: Attrs) -> tuple[TensorType, ...]:
    """One output of the first input's type."""
    return (tensor(types, 0),)


def float_as_first(types: Types, _attrs: Attrs) -> tuple[TensorType, ...]:
    """One output of the first input's type, which is a floating one."""
    expect(tensor(types, 0).dtype in FLOATS, "a floating-point tensor", tensor(types, 0))
    return (tensor(types, 0),)


def axis_of(axis: int, rank: int) -> int:
    """Return a non-negative axis."""
    if not -rank <= axis < rank:
        raise TypeInferenceError(f"expected an axis in [{-rank}, {rank - 1}], found {axis}")
    return axis % rank


def axes_of(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return non-negative axes in ascending order, each once."""
    found = tuple(sorted(axis_of(a, rank) for a in axes))
    expect(len(set(found)) == len(found), "each axis once", tuple(axes))
    return found


def exact_groups(dim: Dim, groups: int) -> Dim:
    """Return the size of each of ``groups`` equal parts."""
    part = exact_div(dim, groups)
    if part is None:
        raise TypeInferenceError(f"expected a size that divides into {groups} equal parts, found {dim}")
    return part


def with_axis(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Normalise ``axis``, which counts the first input's axes."""
    return attrs | {"axis": axis_of(attrs["axis"], len(shape(types, 0)))}


def per_element(count: int) -> Work:
    """Return the work of ``count`` operations per element of the first output.

    Counted as onnx cost models do: each addition, multiplication, division, comparison or function call is one.
    """

    def work(_inputs: Types, outputs: tuple[TensorType, ...], _attrs: Attrs) -> Dim:
        return product(outputs[0].shape or ()) * count

    return work


def per_input_element(count: int) -> Work:
    """Return the work of ``count`` operations per element of the first input."""

    def work(inputs: Types, _outputs: tuple[TensorType, ...], _attrs: Attrs) -> Dim:
        return product(shape(inputs, 0)) * count

    return work
