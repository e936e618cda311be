"""Normalisations: batch, layer, instance, group, root mean square, local response and p-norm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from taso_gym.ops.convolution import per_channel
from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.ops.operator import Attrs, Types, operator
from taso_gym.ops.shapes import (
    broadcasts_to,
    exact_groups,
    expect,
    one_dtype,
    per_element,
    same_as_first,
    shape,
    with_axis,
)
from taso_gym.symbolic import Dim, product
from taso_gym.tensor import TensorType


def mean(xp: ArrayModule, x: Array, axes: Sequence[int]) -> Array:
    """Return the mean over axes, which stay with size 1."""
    return xp.sum(x, axes) / math.prod(x.shape[a] for a in axes)


def standardized(xp: ArrayModule, x: Array, axes: Sequence[int], epsilon: float) -> Array:
    """Return (x - mean) / sqrt(variance + epsilon) over axes."""
    centred = x - mean(xp, x, axes)
    return centred / xp.sqrt(mean(xp, centred * centred, axes) + epsilon)


def channel_type(types: Types, _attrs: Attrs) -> tuple[TensorType, ...]:
    """The first input's type; the others are vectors over its channels."""
    x = shape(types, 0)
    expect(len(x) >= 2, "data of rank 2 or more", x)
    for i in range(1, len(types)):
        expect(shape(types, i) == (x[1],), f"a vector of {x[1]} as input {i}", shape(types, i))
    return (TensorType(one_dtype(types), x),)


def batch_attrs(attrs: dict[str, Any], _types: Types) -> dict[str, Any]:
    """Only inference is modelled; there ``momentum`` means nothing."""
    expect(not attrs["training_mode"], "BatchNormalization for inference", "training_mode")
    return {"epsilon": attrs["epsilon"]}


@operator("BatchNormalization", since=9, infer=channel_type, normalize=batch_attrs, flops=per_element(4))
def batch_normalization(
    xp: ArrayModule,
    x: Array,
    scale: Array,
    b: Array,
    mean: Array,
    var: Array,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Array:
    """(x - mean) / sqrt(var + epsilon) * scale + b, per channel, with given statistics."""
    s, b, m, v = (per_channel(xp, a, len(x.shape)) for a in (scale, b, mean, var))
    return (x - m) / xp.sqrt(v + epsilon) * s + b


@operator("InstanceNormalization", since=6, infer=channel_type, flops=per_element(8))
def instance_normalization(xp: ArrayModule, x: Array, scale: Array, b: Array, *, epsilon: float = 1e-5) -> Array:
    """Standardise each channel of each sample; then scale and shift."""
    rank = len(x.shape)
    normal = standardized(xp, x, range(2, rank), epsilon)
    return normal * per_channel(xp, scale, rank) + per_channel(xp, b, rank)


def trailing_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """The first input's type; the others broadcast to its axes from ``axis`` on."""
    x = shape(types, 0)
    for i in range(1, len(types)):
        broadcasts_to(shape(types, i), x[attrs["axis"] :])
    return (TensorType(one_dtype(types), x),)


@operator("LayerNormalization", since=17, infer=trailing_type, normalize=with_axis, flops=per_element(8))
def layer_normalization(
    xp: ArrayModule,
    x: Array,
    scale: Array,
    b: Array | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Array:
    """Standardise over the axes from ``axis`` on; then scale and shift."""
    normal = standardized(xp, x, range(axis, len(x.shape)), epsilon) * scale
    return normal if b is None else normal + b


@operator("RMSNormalization", since=23, infer=trailing_type, normalize=with_axis, flops=per_element(5))
def rms_normalization(
    xp: ArrayModule, x: Array, scale: Array, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Array:
    """x / sqrt(mean(x²) + epsilon) * scale over the axes from ``axis`` on."""
    return x / xp.sqrt(mean(xp, x * x, range(axis, len(x.shape))) + epsilon) * scale


def group_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """The first input's type; its channels fall into equal groups."""
    (result,) = channel_type(types, attrs)
    exact_groups(shape(types, 0)[1], attrs["num_groups"])
    return (result,)


@operator("GroupNormalization", since=21, infer=group_type, flops=per_element(8))
def group_normalization(
    xp: ArrayModule, x: Array, scale: Array, b: Array, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> Array:
    """Standardise each group of channels of each sample; then scale and shift each channel (Wu and He 2018)."""
    rank = len(x.shape)
    grouped = xp.reshape(x, (x.shape[0], num_groups, x.shape[1] // num_groups, *x.shape[2:]))
    normal = xp.reshape(standardized(xp, grouped, range(2, rank + 1), epsilon), x.shape)
    return normal * per_channel(xp, scale, rank) + per_channel(xp, b, rank)


def lrn_flops(types: Types, _outputs: tuple[TensorType, ...], attrs: Attrs) -> Dim:
    """A sum of ``size`` squares and five operations more per element."""
    return product(shape(types, 0)) * (2 * attrs["size"] + 5)


def lrn_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Only odd windows are modelled: onnxruntime knows no others."""
    expect(attrs["size"] % 2 == 1 and len(shape(types, 0)) >= 2, "an odd size and channels", attrs["size"])
    return attrs


@operator("LRN", since=1, infer=same_as_first, normalize=lrn_attrs, flops=lrn_flops)
def lrn(xp: ArrayModule, x: Array, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Array:
    """x / (bias + alpha / size * sum of squares over ``size`` neighbouring channels)**beta."""
    widths = [(0, 0), (size // 2, size // 2)] + [(0, 0)] * (len(x.shape) - 2)
    squares, channels = xp.pad(x * x, widths), x.shape[1]
    total = squares[:, :channels]
    for i in range(1, size):
        total = total + squares[:, i : i + channels]
    return x / xp.power(total * (alpha / size) + bias, xp.constant(beta, x))


@operator("LpNormalization", since=1, infer=same_as_first, normalize=with_axis, flops=per_element(3))
def lp_normalization(xp: ArrayModule, x: Array, *, axis: int = -1, p: int = 2) -> Array:
    """X / its p-norm along an axis, p = 1 or 2; 0 where the norm is."""
    norm = xp.sum(xp.abs(x), [axis]) if p == 1 else xp.sqrt(xp.sum(x * x, [axis]))
    return xp.ratio(x, norm)
