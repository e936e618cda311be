"""Pools."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.ops.operator import Attrs, Types, operator
from taso_gym.ops.shapes import expect, per_input_element, shape, tensor
from taso_gym.ops.windows import counts_of, pad_widths, patches, window_attrs, window_counts
from taso_gym.symbolic import Dim, Shape, product
from taso_gym.tensor import TensorType


def pool_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Write the window out; ``ceil_mode`` is 0 where it changes nothing, ``storage_order`` only concerns indices.

    Also where a last window is left out since it would begin behind the data: shape inference before opset 22 has it.
    """
    spatial, kernel = shape(types, 0)[2:], tuple(attrs["kernel_shape"])
    dilated = max(attrs.get("dilations") or (1,)) > 1  # onnxruntime's pools pad as if it weren't so
    expect(not dilated or not attrs["auto_pad"].startswith("SAME"), "explicit pads beside dilations", attrs["auto_pad"])
    full = window_attrs({k: v for k, v in attrs.items() if k != "storage_order"}, spatial, kernel)
    full |= {"kernel_shape": kernel, "ceil_mode": int(bool(attrs["ceil_mode"]))}
    if max(full["strides"], default=1) == 1 or (
        full["ceil_mode"]
        and window_counts(spatial, kernel, full) == window_counts(spatial, kernel, full | {"ceil_mode": 0})
    ):
        full["ceil_mode"] = 0
    if full["ceil_mode"] and not attrs.get("count_include_pad"):
        overhangs = _overhangs(spatial, kernel, full)
        if min(overhangs) < 0:
            more = (*[0] * len(kernel), *(max(overhang, 0) for overhang in overhangs))
            pads = tuple(pad + extra for pad, extra in zip(full["pads"], more, strict=True))
            full |= {"pads": pads, "ceil_mode": 0}
    return full


def _overhangs(spatial: Shape, kernel: Sequence[int], attrs: Attrs) -> list[int]:
    """Return how far the last window of each axis reaches beyond the padded data; negative where one was left out."""
    pads, rank, found = attrs["pads"], len(kernel), list[int]()
    for i, count in enumerate(window_counts(spatial, kernel, attrs)):
        size, reach = spatial[i], (kernel[i] - 1) * attrs["dilations"][i] + 1
        assert isinstance(size, int) and isinstance(count, int)  # `window_counts` has seen to it
        found.append((count - 1) * attrs["strides"][i] + reach - size - pads[i] - pads[rank + i])
    return found


def average_pool_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Besides: without pads and overhang there is nothing to count or not."""
    full = pool_attrs(attrs, types)
    padded = any(full["pads"]) or full["ceil_mode"]
    return full | {"count_include_pad": int(bool(full["count_include_pad"] and padded))}


def pool_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """(batch, channels, windows on each axis)."""
    x, kernel = shape(types, 0), attrs["kernel_shape"]
    expect(len(x) >= 3, "data of rank 3 or more", x)
    rank = len(kernel)
    for i, k in enumerate(kernel):
        reach = (k - 1) * attrs["dilations"][i] + 1
        expect(max(attrs["pads"][i], attrs["pads"][rank + i]) < reach, f"pads smaller than the window {reach}", attrs)
    return (TensorType(tensor(types, 0).dtype, x[:2] + window_counts(x[2:], kernel, attrs)),)


def export_pool(attrs: dict[str, Any], _in: Types, _out: tuple[TensorType, ...], _opset: int) -> dict[str, Any]:
    """Dilations of 1 are the default; older opsets don't have the attribute."""
    return attrs | {"dilations": None if set(attrs["dilations"]) <= {1} else attrs["dilations"]}


def pool_flops(_types: Types, outputs: tuple[TensorType, ...], attrs: Attrs) -> Dim:
    """One per element of each window."""
    return product(outputs[0].shape or ()) * math.prod(attrs["kernel_shape"])


def window_layout(x: Array, attrs: Attrs) -> tuple[tuple[int, ...], list[tuple[int, int]]]:
    """Return the windows on each axis and the pads of all, with what the last of ``ceil_mode`` overhangs besides."""
    counts, widths = counts_of(x, attrs["kernel_shape"], attrs), pad_widths(attrs["pads"], len(x.shape))
    for i, k in enumerate(attrs["kernel_shape"] if attrs["ceil_mode"] else ()):
        before, after = widths[2 + i]
        end = (counts[i] - 1) * attrs["strides"][i] + (k - 1) * attrs["dilations"][i] + 1
        widths[2 + i] = (before, max(after, end - x.shape[2 + i] - before))
    return counts, widths


@operator("MaxPool", since=1, infer=pool_type, normalize=pool_attrs, export=export_pool, flops=pool_flops)
def max_pool(
    xp: ArrayModule,
    x: Array,
    *,
    kernel_shape: tuple[int, ...],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    storage_order: int = 0,
    strides: tuple[int, ...] | None = None,
) -> Array:
    """Maximum over each window; padding counts as -inf."""
    assert strides is not None and dilations is not None
    window = {"kernel_shape": kernel_shape, "pads": pads, "strides": strides, "dilations": dilations}
    counts, widths = window_layout(x, window | {"ceil_mode": ceil_mode})
    padded = xp.pad(x, widths, -math.inf)
    return xp.maximum(*(patch for _, patch in patches(padded, kernel_shape, strides, dilations, counts)))


@operator("AveragePool", since=7, infer=pool_type, normalize=average_pool_attrs, export=export_pool, flops=pool_flops)
def average_pool(
    xp: ArrayModule,
    x: Array,
    *,
    kernel_shape: tuple[int, ...],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Array:
    """Mean over each window; padding is left out of the count unless ``count_include_pad``."""
    assert strides is not None and dilations is not None
    window = {"kernel_shape": kernel_shape, "pads": pads, "strides": strides, "dilations": dilations}
    counts, widths = window_layout(x, window | {"ceil_mode": ceil_mode})

    def total(values: Array, pad: list[tuple[int, int]]) -> Array:
        windows = (patch for _, patch in patches(xp.pad(values, pad), kernel_shape, strides, dilations, counts))
        result = next(windows)
        for patch in windows:
            result = result + patch
        return result

    assert pads is not None
    counted = xp.broadcast_to(xp.constant(1, x), x.shape)
    declared = pad_widths(pads, len(x.shape)) if count_include_pad else [(0, 0)] * len(x.shape)
    counted = xp.pad(counted, declared, 1)
    rest = [(w[0] - d[0], w[1] - d[1]) for w, d in zip(widths, declared, strict=True)]
    return total(x, widths) / total(counted, rest)


def global_type(types: Types, _attrs: Attrs) -> tuple[TensorType, ...]:
    """(batch, channels, 1, …)."""
    x = shape(types, 0)
    expect(len(x) >= 3, "data of rank 3 or more", x)
    return (TensorType(tensor(types, 0).dtype, x[:2] + (1,) * (len(x) - 2)),)


@operator("GlobalAveragePool", since=1, infer=global_type, flops=per_input_element(1))
def global_average_pool(xp: ArrayModule, x: Array) -> Array:
    """Mean over the spatial axes."""
    return xp.sum(x, range(2, len(x.shape))) / math.prod(x.shape[2:])


@operator("GlobalMaxPool", since=1, infer=global_type, flops=per_input_element(1))
def global_max_pool(xp: ArrayModule, x: Array) -> Array:
    """Maximum over the spatial axes."""
    return xp.reduce("max", x, range(2, len(x.shape)), True)
