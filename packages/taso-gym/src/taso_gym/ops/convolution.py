"""Convolutions."""

from __future__ import annotations

import math
from itertools import product as cartesian
from typing import Any

from taso_gym.errors import TypeInferenceError
from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.ops.operator import Attrs, Types, operator
from taso_gym.ops.shapes import exact_groups, expect, one_dtype, optional, shape
from taso_gym.ops.windows import counts_of, pad_widths, patches, window_attrs, window_counts
from taso_gym.symbolic import Dim, product
from taso_gym.tensor import TensorType


def conv_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Write the window out; ``kernel_shape`` is the weight's and is left out."""
    x, w = shape(types, 0), shape(types, 1)
    expect(len(x) >= 3 and len(w) == len(x), "data and weight of one rank, 3 or more", f"ranks {len(x)} and {len(w)}")
    given = attrs["kernel_shape"]
    expect(given is None or tuple(given) == w[2:], f"the weight's kernel_shape {w[2:]}", given)
    return window_attrs({k: v for k, v in attrs.items() if k != "kernel_shape"}, x[2:], w[2:])


def export_conv(attrs: dict[str, Any], types: Types, _out: tuple[TensorType, ...], _opset: int) -> dict[str, Any]:
    """Some readers want ``kernel_shape`` stated."""
    kernel = shape(types, 1)[2:]
    return attrs | {"kernel_shape": kernel if all(isinstance(k, int) for k in kernel) else None}


def conv_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """(batch, output channels, windows on each axis)."""
    x, w, group = shape(types, 0), shape(types, 1), attrs["group"]
    expect(w[1] * group == x[1], f"{w[1]} * {group} input channels", x[1])
    exact_groups(w[0], group)
    if optional(types, 2):
        expect(shape(types, 2) == (w[0],), f"a bias of shape {(w[0],)}", shape(types, 2))
    return (TensorType(one_dtype(types), (x[0], w[0], *window_counts(x[2:], w[2:], attrs))),)


def conv_flops(types: Types, outputs: tuple[TensorType, ...], _attrs: Attrs) -> Dim:
    """Two per term of each sum, padding counted as data; one per element for the bias."""
    terms = product(shape(types, 1)[1:])
    return product(outputs[0].shape or ()) * (terms * 2 + (optional(types, 2) is not None))


@operator("Conv", since=1, infer=conv_type, normalize=conv_attrs, export=export_conv, flops=conv_flops)
def conv(
    xp: ArrayModule,
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: tuple[int, ...] | None = None,
    group: int = 1,
    kernel_shape: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Array:
    """For each offset in the window, a matrix product over the channels of a group; their sum."""
    assert pads is not None and strides is not None and dilations is not None
    attrs = {"pads": pads, "strides": strides, "dilations": dilations}
    kernel, n, m = tuple(w.shape[2:]), x.shape[0], w.shape[0]
    counts = counts_of(x, kernel, attrs)
    padded = xp.pad(x, pad_widths(pads, len(x.shape)))
    weights = xp.reshape(w, (group, m // group, w.shape[1], *kernel))
    total, spatial = None, ()
    for offset, patch in patches(padded, kernel, strides, dilations, counts):
        spatial = patch.shape[2:]
        columns = xp.reshape(patch, (n, group, w.shape[1], math.prod(spatial)))
        term = xp.matmul(weights[(..., *offset)], columns)
        total = term if total is None else total + term
    result = xp.reshape(total, (n, m, *spatial))
    return result if b is None else result + per_channel(xp, b, len(x.shape))


def per_channel(xp: ArrayModule, values: Array, rank: int) -> Array:
    """Return values per channel in a form that broadcasts along axis 1 of a tensor of this rank."""
    return xp.reshape(values, (values.shape[0],) + (1,) * (rank - 2))


def conv_transpose_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Write the window out; forms in which the pads follow from the output's shape aren't modelled."""
    x, w = shape(types, 0), shape(types, 1)
    if attrs["output_shape"] is not None or attrs["auto_pad"] not in ("NOTSET", "VALID"):
        raise TypeInferenceError("expected ConvTranspose with explicit pads, found output_shape or auto_pad")
    expect(len(x) >= 3 and len(w) == len(x), "data and weight of one rank, 3 or more", f"ranks {len(x)} and {len(w)}")
    kept = {k: v for k, v in attrs.items() if k not in ("kernel_shape", "output_shape")}
    extra = tuple(attrs["output_padding"] or (0,) * (len(x) - 2))
    return window_attrs(kept, x[2:], w[2:]) | {"output_padding": extra}


def conv_transpose_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """(batch, output channels, stride (in - 1) + reach of the kernel + output padding - pads)."""
    x, w = shape(types, 0), shape(types, 1)
    expect(w[0] == x[1], f"{w[0]} input channels", x[1])
    exact_groups(w[0], attrs["group"])
    channels = w[1] * attrs["group"]
    if optional(types, 2):
        expect(shape(types, 2) == (channels,), f"a bias of shape {(channels,)}", shape(types, 2))
    rank, spatial = len(x) - 2, list[Dim]()
    for i in range(rank):
        reach = (w[2 + i] - 1) * attrs["dilations"][i] + 1
        pads = attrs["pads"][i] + attrs["pads"][rank + i]
        spatial.append((x[2 + i] - 1) * attrs["strides"][i] + reach + attrs["output_padding"][i] - pads)
    return (TensorType(one_dtype(types), (x[0], channels, *spatial)),)


def conv_transpose_flops(types: Types, _outputs: tuple[TensorType, ...], _attrs: Attrs) -> Dim:
    """Two per input element and weight that it meets."""
    return product(shape(types, 0)) * product(shape(types, 1)[1:]) * 2


@operator(
    "ConvTranspose",
    since=1,
    infer=conv_transpose_type,
    normalize=conv_transpose_attrs,
    export=export_conv,
    flops=conv_transpose_flops,
)
def conv_transpose(
    xp: ArrayModule,
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: tuple[int, ...] | None = None,
    group: int = 1,
    kernel_shape: tuple[int, ...] | None = None,
    output_padding: tuple[int, ...] | None = None,
    output_shape: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Array:
    """For each offset in the window, a matrix product over the channels of a group, spread by strides; their sum."""
    assert pads is not None and strides is not None and dilations is not None and output_padding is not None
    n, spatial, kernel = x.shape[0], tuple(x.shape[2:]), tuple(w.shape[2:])
    reach = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
    columns = xp.reshape(x, (n, group, x.shape[1] // group, math.prod(spatial)))
    weights = xp.reshape(w, (group, w.shape[0] // group, w.shape[1], *kernel))
    weights = xp.transpose(weights, (0, 2, 1, *range(3, 3 + len(kernel))))
    total: Array = None
    for offset in cartesian(*map(range, kernel)):
        term = xp.reshape(xp.matmul(weights[(..., *offset)], columns), (n, group * w.shape[1], *spatial))
        for axis, stride in enumerate(strides, 2):
            term = spread(xp, term, axis, stride)
        before = [o * d for o, d in zip(offset, dilations, strict=True)]
        after = [r + extra - p for r, extra, p in zip(reach, output_padding, before, strict=True)]
        term = xp.pad(term, [(0, 0), (0, 0), *zip(before, after, strict=True)])
        total = term if total is None else total + term
    cut = zip(pads[: len(kernel)], pads[len(kernel) :], total.shape[2:], strict=True)
    result = total[(..., *(slice(start, size - end) for start, end, size in cut))]
    return result if b is None else result + per_channel(xp, b, len(x.shape))


def spread(xp: ArrayModule, x: Array, axis: int, stride: int) -> Array:
    """Return an array with ``stride - 1`` zeros between the elements of an axis."""
    if stride == 1:
        return x
    before, size, after = tuple(x.shape[:axis]), x.shape[axis], tuple(x.shape[axis + 1 :])
    widths = [*[(0, 0)] * (axis + 1), (0, stride - 1), *[(0, 0)] * len(after)]
    apart = xp.pad(xp.reshape(x, (*before, size, 1, *after)), widths)
    joined = xp.reshape(apart, (*before, size * stride, *after))
    return joined[(slice(None),) * axis + (slice(0, (size - 1) * stride + 1),)]
