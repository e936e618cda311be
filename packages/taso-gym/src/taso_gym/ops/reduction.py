"""Reductions over axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.ops.operator import Attrs, Types, operator
from taso_gym.ops.reshaping import export_axes
from taso_gym.ops.shapes import axes_of, expect, per_input_element, shape, tensor
from taso_gym.tensor import TensorType

Axes = tuple[int, ...]
SUM_OF_AXES = 13
OTHER_AXES = 18
"""Opsets from which on the axes are an input."""


def reduce_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Name the axes: none given means all, unless ``noop_with_empty_axes``."""
    rank = len(shape(types, 0))
    expect(bool(attrs["axes"]) or not attrs["noop_with_empty_axes"], "axes", "none, to reduce nothing")
    return {"axes": axes_of(attrs["axes"] or range(rank), rank), "keepdims": int(bool(attrs["keepdims"]))}


def reduce_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """Reduced axes have size 1, or are gone."""
    kept = [
        1 if i in attrs["axes"] else d
        for i, d in enumerate(shape(types, 0))
        if attrs["keepdims"] or i not in attrs["axes"]
    ]
    return (TensorType(tensor(types, 0).dtype, tuple(kept)),)


def reduction(name: str, axes_opset: int = OTHER_AXES, flops: int = 1) -> Callable[[Callable[..., Any]], Any]:
    """Enter a reduction into the table."""
    return operator(
        name,
        since=1,
        infer=reduce_type,
        normalize=reduce_attrs,
        export=export_axes,
        flops=per_input_element(flops),
        inputs_as_attrs={"axes": (1, axes_opset)},
    )


@reduction("ReduceSum", SUM_OF_AXES)
def reduce_sum(
    xp: ArrayModule, x: Array, *, axes: Axes = (), keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Array:
    """Sum over axes."""
    return xp.sum(x, axes, bool(keepdims))


@reduction("ReduceMean")
def reduce_mean(
    xp: ArrayModule, x: Array, *, axes: Axes = (), keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Array:
    """Mean over axes."""
    return xp.divide(xp.sum(x, axes, bool(keepdims)), xp.constant(math.prod(x.shape[a] for a in axes), x))


@reduction("ReduceMax")
def reduce_max(
    xp: ArrayModule, x: Array, *, axes: Axes = (), keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Array:
    """Maximum over axes."""
    return xp.reduce("max", x, axes, bool(keepdims))


@reduction("ReduceMin")
def reduce_min(
    xp: ArrayModule, x: Array, *, axes: Axes = (), keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Array:
    """Minimum over axes."""
    return xp.reduce("min", x, axes, bool(keepdims))


@reduction("ReduceProd")
def reduce_prod(
    xp: ArrayModule, x: Array, *, axes: Axes = (), keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Array:
    """Product over axes."""
    return xp.reduce("prod", x, axes, bool(keepdims))


@reduction("ReduceSumSquare", flops=2)
def reduce_sum_square(
    xp: ArrayModule, x: Array, *, axes: Axes = (), keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Array:
    """Sum of squares over axes."""
    return xp.sum(x * x, axes, bool(keepdims))


@reduction("ReduceL2", flops=2)
def reduce_l2(xp: ArrayModule, x: Array, *, axes: Axes = (), keepdims: int = 1, noop_with_empty_axes: int = 0) -> Array:
    """Square root of the sum of squares over axes."""
    return xp.sqrt(xp.sum(x * x, axes, bool(keepdims)))
