"""Matrix products and sums of products."""

from __future__ import annotations

from typing import Any

from taso_gym.errors import TypeInferenceError
from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.ops.operator import Attrs, Types, operator
from taso_gym.ops.shapes import broadcast, broadcasts_to, expect, one_dtype, optional, shape
from taso_gym.symbolic import Dim, Shape, product
from taso_gym.tensor import FLOATS, TensorType


def matmul_shape(a: Shape, b: Shape) -> Shape:
    """Return the shape of a batched matrix product by NumPy's rule (vectors included)."""
    expect(bool(a) and bool(b), "operands of rank 1 or more", "a scalar")
    inner = b[-2:][0]
    expect(a[-1] == inner, "equal inner dimensions", f"{a[-1]} and {inner}")
    rows, columns = (a[-2:-1] if len(a) > 1 else ()), (b[-1:] if len(b) > 1 else ())
    return broadcast(a[:-2], b[:-2]) + rows + columns


def matmul_type(types: Types, _attrs: Attrs) -> tuple[TensorType, ...]:
    """Batched matrix product."""
    return (TensorType(one_dtype(types), matmul_shape(shape(types, 0), shape(types, 1))),)


def matmul_flops(types: Types, outputs: tuple[TensorType, ...], _attrs: Attrs) -> Dim:
    """One multiplication and one addition per term of each sum."""
    return product(outputs[0].shape or ()) * shape(types, 0)[-1] * 2


@operator("MatMul", since=1, infer=matmul_type, flops=matmul_flops)
def matmul(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a @ b."""
    return xp.matmul(a, b)


def gemm_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Without ``C`` its factor means nothing."""
    flags = {k: int(bool(attrs[k])) for k in ("transA", "transB")}
    if one_dtype(types) not in FLOATS:
        expect(all(attrs[k] == int(attrs[k]) for k in ("alpha", "beta")), "whole factors of whole numbers", attrs)
    return attrs | flags | ({} if optional(types, 2) else {"beta": 1.0})


def gemm_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """A matrix; C broadcasts to it."""
    a, b = shape(types, 0), shape(types, 1)
    expect(len(a) == len(b) == 2, "two matrices", f"ranks {len(a)} and {len(b)}")
    result = matmul_shape(a[::-1] if attrs["transA"] else a, b[::-1] if attrs["transB"] else b)
    if optional(types, 2):
        broadcasts_to(shape(types, 2), result)
    return (TensorType(one_dtype(types), result),)


def gemm_flops(types: Types, outputs: tuple[TensorType, ...], attrs: Attrs) -> Dim:
    """Two per term of each sum; one per element for adding C and for each factor other than 1."""
    inner = shape(types, 0)[0 if attrs["transA"] else 1]
    extra = (optional(types, 2) is not None) + (attrs["alpha"] != 1) + (attrs["beta"] != 1)
    return product(outputs[0].shape or ()) * (inner * 2 + extra)


@operator("Gemm", since=7, infer=gemm_type, normalize=gemm_attrs, flops=gemm_flops)
def gemm(
    xp: ArrayModule,
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    """Alpha A B + beta C, with A and B transposed on request."""
    a = xp.transpose(a, (1, 0)) if transA else a
    b = xp.transpose(b, (1, 0)) if transB else b
    result = scaled(xp, xp.matmul(a, b), alpha)
    return result if c is None else result + scaled(xp, c, beta)


def scaled(xp: ArrayModule, x: Array, factor: float) -> Array:
    """Return factor x, in the element type of x."""
    return x if factor == 1 else x * xp.constant(factor, x)


def einsum_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Name the letters in the order in which they occur, and write the result's out."""
    left, arrow, right = attrs["equation"].replace(" ", "").partition("->")
    letters = sorted(set(left) - set(".,"))
    if not arrow:
        right = ("..." if "..." in left else "") + "".join(c for c in letters if left.count(c) == 1)
    kept = right.replace("...", "", 1)
    expect("..." in right or "..." not in left, "a result that keeps the ellipsis", attrs["equation"])
    valid = all(c.isalpha() for c in letters) and set(kept) <= set(letters) and len(set(kept)) == len(kept)
    expect(valid and left.count(",") == len(types) - 1, f"an equation for {len(types)} operands", attrs["equation"])
    order = dict.fromkeys(c for c in left if c.isalpha())
    names = {c: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[i] for i, c in enumerate(order)}
    return {"equation": "".join(names.get(c, c) for c in f"{left}->{right}")}


def einsum_dims(types: Types, equation: str) -> tuple[dict[str, Dim], Shape]:
    """Return the size of each letter, and the shape that the ellipsis stands for."""
    sizes: dict[str, Dim] = {}
    ellipsis: Shape = ()
    for i, term in enumerate(equation.partition("->")[0].split(",")):
        dims, (before, dots, after) = shape(types, i), term.partition("...")
        named = len(before) + len(after)
        expect(len(dims) >= named if dots else len(dims) == named, f"rank {named} for {term!r}", len(dims))
        if dots:
            ellipsis = broadcast(ellipsis, dims[len(before) : len(dims) - len(after)])
        for letter, dim in zip(before + after, dims[: len(before)] + dims[len(dims) - len(after) :], strict=True):
            if sizes.setdefault(letter, dim) != dim:
                raise TypeInferenceError(f"expected one size for {letter!r}, found {sizes[letter]} and {dim}")
    return sizes, ellipsis


def einsum_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """The sizes of the result's letters."""
    sizes, ellipsis = einsum_dims(types, attrs["equation"])
    before, dots, after = attrs["equation"].partition("->")[2].partition("...")
    middle = ellipsis if dots else ()
    return (TensorType(one_dtype(types), tuple(sizes[c] for c in before) + middle + tuple(sizes[c] for c in after)),)


def einsum_flops(types: Types, _outputs: tuple[TensorType, ...], attrs: Attrs) -> Dim:
    """Per term of the sum, a multiplication for each operand but the first and an addition."""
    sizes, ellipsis = einsum_dims(types, attrs["equation"])
    return product(sizes.values()) * product(ellipsis) * len(types)


@operator("Einsum", since=12, infer=einsum_type, normalize=einsum_attrs, flops=einsum_flops)
def einsum(xp: ArrayModule, a: Array, *others: Array, equation: str) -> Array:
    """Sum of products over the letters that the result doesn't have."""
    return xp.einsum(equation, a, *others)
