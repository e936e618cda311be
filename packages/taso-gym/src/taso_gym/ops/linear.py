"""Matrix products and convolutions."""

from __future__ import annotations

from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.ops.operator import Attrs, Types, operator
from taso_gym.ops.shapes import broadcast, expect, one_dtype, shape
from taso_gym.tensor import Dim, TensorType, product


def matmul_type(types: Types, _attrs: Attrs) -> tuple[TensorType, ...]:
    """Batched matrix product by NumPy's rule (vectors included)."""
    a, b = shape(types, 0), shape(types, 1)
    expect(bool(a) and bool(b), "operands of rank 1 or more", "a scalar")
    inner = b[-2:][0]
    expect(a[-1] == inner, "equal inner dimensions", f"{a[-1]} and {inner}")
    rows, columns = (a[-2:-1] if len(a) > 1 else ()), (b[-1:] if len(b) > 1 else ())
    return (TensorType(one_dtype(types), broadcast(a[:-2], b[:-2]) + rows + columns),)


def matmul_flops(types: Types, outputs: tuple[TensorType, ...], _attrs: Attrs) -> Dim:
    """One multiplication and one addition per term of each sum."""
    return product(outputs[0].shape or ()) * shape(types, 0)[-1] * 2


@operator("MatMul", since=1, infer=matmul_type, flops=matmul_flops)
def matmul(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a @ b."""
    return xp.matmul(a, b)
