"""Joining, cutting, permuting, repeating and picking elements."""

from __future__ import annotations

import math
from typing import Any

from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.ops.operator import Attrs, Types, no_work, operator, shortest, whole
from taso_gym.ops.shapes import axis_of, exact_groups, expect, one_dtype, same_as_first, shape, tensor, with_axis
from taso_gym.symbolic import Dim, Shape, total
from taso_gym.tensor import TensorType, numpy_dtype

INT64_MAX = 2**63 - 1
ALL = (2**31 - 1, INT64_MAX)
"""Ends that onnxruntime reads, of int32 and int64 alike, as "to the end": backward, that is element 0."""


@operator("Identity", since=1, infer=same_as_first, flops=no_work, view=True)
def identity(xp: ArrayModule, x: Array) -> Array:
    """X itself."""
    return x


def concat_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """Sizes add up along the axis and agree elsewhere."""
    first = shape(types, 0)
    axis: int = attrs["axis"]
    for i in range(1, len(types)):
        other = shape(types, i)
        same = len(other) == len(first) and other[:axis] + other[axis + 1 :] == first[:axis] + first[axis + 1 :]
        expect(same, f"shapes that agree but for axis {axis}", f"{first} and {other}")
    whole = total([shape(types, i)[axis] for i in range(len(types))])
    return (TensorType(one_dtype(types), (*first[:axis], whole, *first[axis + 1 :])),)


@operator("Concat", since=4, infer=concat_type, normalize=with_axis, flops=no_work)
def concat(xp: ArrayModule, x: Array, *others: Array, axis: int) -> Array:
    """Join along an axis."""
    return xp.concatenate([x, *others], axis)


MOST_PARTS = 1 << 16
"""A graph numbers an operator's outputs with 16 bits."""


def split_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Write the sizes of the parts out; a last part may be smaller when ``num_outputs`` doesn't divide the axis."""
    axis = axis_of(attrs["axis"], len(shape(types, 0)))
    return {"axis": axis, "split": attrs["split"] or equal_parts(shape(types, 0)[axis], attrs["num_outputs"] or 0)}


def equal_parts(size: Dim, count: int) -> Shape:
    """Return the sizes of ``count`` parts, of which the last is the smallest."""
    expect(0 < count < MOST_PARTS, f"split, or num_outputs from 1 to {MOST_PARTS - 1}", count)
    if not isinstance(size, int):
        return (exact_groups(size, count),) * count
    part = -(-size // count)
    return (part,) * (count - 1) + (size - part * (count - 1),)


def split_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """One output for each part."""
    x, dims = tensor(types, 0), shape(types, 0)
    axis: int = attrs["axis"]
    parts: Shape = attrs["split"]
    expect(bool(parts) and total(parts) == dims[axis], f"parts that add up to {dims[axis]}", parts)
    expect(min((p for p in parts if isinstance(p, int)), default=0) >= 0, "parts of size 0 or more", parts)
    expect(all(isinstance(p, int) for p in parts) or len(set(parts)) == 1, "static or equal parts", parts)
    return tuple(TensorType(x.dtype, (*dims[:axis], part, *dims[axis + 1 :])) for part in parts)


def export_split(attrs: dict[str, Any], _in: Types, _out: tuple[TensorType, ...], opset: int) -> dict[str, Any]:
    """Parts of symbolic size are equal: a file only says how many, from opset 18 on explicitly."""
    if all(isinstance(p, int) for p in attrs["split"]):
        return attrs
    return {"axis": attrs["axis"], "num_outputs": len(attrs["split"]) if opset >= 18 else None}


@operator(
    "Split",
    since=2,
    infer=split_type,
    normalize=split_attrs,
    export=export_split,
    flops=no_work,
    inputs_as_attrs={"split": (1, 13)},
)
def split(
    xp: ArrayModule, x: Array, *, axis: int = 0, split: tuple[int, ...] | None = None, num_outputs: int | None = None
) -> tuple[Array, ...]:
    """Cut along an axis into parts of given sizes."""
    parts: list[Array] = []
    start = 0
    for size in split or ():
        parts.append(x[(slice(None),) * axis + (slice(start, start + size),)])
        start += size
    return tuple(parts)


def slice_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Clamp to the data, order by axis, leave out axes that stay whole; an end before element 0 is -1 - size."""
    dims = shape(types, 0)
    starts: tuple[int, ...] = attrs["starts"]
    ends: tuple[int, ...] = attrs["ends"]
    axes: tuple[int, ...] = attrs["axes"] or tuple(range(len(starts)))
    steps: tuple[int, ...] = attrs["steps"] or (1,) * len(starts)
    expect(len(starts) == len(ends) == len(axes) == len(steps), "as many starts as ends, axes and steps", attrs)
    spans: dict[int, tuple[int, int, int]] = {}
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        at = axis_of(axis, len(dims))
        expect(at not in spans and bool(step), "each axis once, in steps other than 0", attrs)
        spans[at] = span(dims[at], start, end, step)
    kept = sorted((a, s) for a, s in spans.items() if s not in ((0, dims[a], 1), (0, INT64_MAX, 1)))
    columns = zip(*(s for _, s in kept), strict=True) if kept else ((), (), ())
    return {"axes": tuple(a for a, _ in kept)} | dict(
        zip(("starts", "ends", "steps"), map(tuple, columns), strict=True)
    )


def span(size: Dim, start: int, end: int, step: int) -> tuple[int, int, int]:
    """Return the one form of (start, end, step) that picks the same elements."""
    if not isinstance(size, int):
        expect(start == 0 and end >= INT64_MAX // 2 and step == 1, "a static axis, or a whole one", size)
        return 0, INT64_MAX, 1
    if step < 0 and end in ALL:
        end = -1 - size
    low, high = (0, size) if step > 0 else (-1, size - 1)
    first = min(max(start + size if start < 0 else start, max(low, 0)), high)
    last = min(max(end + size if end < 0 else end, low), high)
    count = max(-(-(last - first) // step), 0)
    if count <= 1:
        first = max(first, 0)
        return first, first + count, 1
    end = first + (count - 1) * step + (1 if step > 0 else -1)
    return first, end if end >= 0 else -1 - size, step


def slice_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """As many elements along an axis as steps fit."""
    dims = list(shape(types, 0))
    for axis, start, end, step in zip(*(attrs[k] for k in ("axes", "starts", "ends", "steps")), strict=True):
        stop = -1 if end < 0 else end
        dims[axis] = max(-(-(stop - start) // step), 0)
    return (TensorType(tensor(types, 0).dtype, tuple(dims)),)


def export_slice(attrs: dict[str, Any], types: Types, _out: tuple[TensorType, ...], _opset: int) -> dict[str, Any]:
    """A file names at least one axis, and no steps where all are 1."""
    if not attrs["axes"] and shape(types, 0):
        return {"axes": (0,), "starts": (0,), "ends": (INT64_MAX,), "steps": None}
    return attrs | {"steps": None if set(attrs["steps"]) <= {1} else attrs["steps"]}


@operator(
    "Slice",
    since=10,
    infer=slice_type,
    normalize=slice_attrs,
    export=export_slice,
    flops=no_work,
    inputs_as_attrs={"starts": (1, 10), "ends": (2, 10), "axes": (3, 10), "steps": (4, 10)},
)
def slice_(
    xp: ArrayModule,
    x: Array,
    *,
    starts: tuple[int, ...],
    ends: tuple[Dim, ...],
    axes: tuple[int, ...] | None = None,
    steps: tuple[int, ...] | None = None,
) -> Array:
    """Elements from start to end in steps, along some axes."""
    index = [slice(None)] * len(x.shape)
    for axis, start, end, step in zip(axes or (), starts, ends, steps or (), strict=True):
        index[axis] = slice(start, None if isinstance(end, int) and end < 0 else end, step)
    return x[tuple(index)]


def transpose_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Write the permutation out; by default it reverses the axes."""
    rank = len(shape(types, 0))
    perm = tuple(range(rank))[::-1] if attrs["perm"] is None else tuple(attrs["perm"])
    expect(sorted(perm) == list(range(rank)), f"a permutation of {rank} axes", perm)
    return {"perm": perm}


def transpose_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """Permuted sizes."""
    perm: tuple[int, ...] = attrs["perm"]
    return (TensorType(tensor(types, 0).dtype, tuple(shape(types, 0)[i] for i in perm)),)


@operator("Transpose", since=1, infer=transpose_type, normalize=transpose_attrs, flops=no_work)
def transpose(xp: ArrayModule, x: Array, *, perm: tuple[int, ...] | None = None) -> Array:
    """Permute the axes."""
    return xp.transpose(x, perm or ())


def gather_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """The shape of the indices in place of the axis."""
    data, axis = shape(types, 0), attrs["axis"]
    expect(tensor(types, 1).dtype in ("int32", "int64"), "int32 or int64 indices", tensor(types, 1))
    return (TensorType(tensor(types, 0).dtype, data[:axis] + shape(types, 1) + data[axis + 1 :]),)


@operator("Gather", since=1, infer=gather_type, normalize=with_axis, flops=no_work)
def gather(xp: ArrayModule, data: Array, indices: Array, *, axis: int = 0) -> Array:
    """Elements of the data at the indices along an axis."""
    return xp.take(data, indices, axis)


def pad_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Write the pads of all axes out, and the constant as a number of the data's element type."""
    rank, pads = len(shape(types, 0)), tuple(attrs["pads"])
    axes = range(rank) if attrs["axes"] is None else [axis_of(a, rank) for a in attrs["axes"]]
    expect(len(pads) == 2 * len(axes) == 2 * len(set(axes)), f"two pads for each of {len(axes)} axes", pads)
    expect(attrs["mode"] in ("constant", "reflect", "edge", "wrap"), "a known mode", attrs["mode"])
    full = [0] * (2 * rank)
    for i, axis in enumerate(axes):
        full[axis], full[rank + axis] = pads[i], pads[len(axes) + i]
    dtype, value = numpy_dtype(tensor(types, 0).dtype), attrs["constant_value"]
    expect(dtype.kind not in "cOSTU", "numbers or truth values to pad", tensor(types, 0).dtype)
    value = 0 if attrs["mode"] != "constant" or value is None else value
    precise = dtype.type if dtype.kind == "f" else float
    value = whole(value, dtype) if dtype.kind in "iub" else shortest(float(value), precise)
    return {"mode": attrs["mode"], "pads": tuple(full), "constant_value": value}


def pad_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """Sizes grow by the pads; negative ones cut."""
    dims = shape(types, 0)
    pads: tuple[int, ...] = attrs["pads"]
    result: Shape = tuple(d + (pads[i] + pads[len(dims) + i]) for i, d in enumerate(dims))
    left = [d + (min(p, 0) + min(q, 0)) for d, p, q in zip(dims, pads, pads[len(dims) :], strict=False)]
    expect(all(not isinstance(d, int) or d >= 0 for d in left), "negative pads that cut no more than there is", pads)
    if attrs["mode"] != "constant":
        grown = [d for i, d in enumerate(left) if max(pads[i], pads[len(dims) + i]) > 0]
        expect(0 not in grown, "elements to repeat along each axis that grows", dims)
    cut: Shape = tuple(d for i, d in enumerate(dims) if min(pads[i], pads[len(dims) + i]) < 0)
    expect(all(isinstance(d, int) for d in cut), "a static size where pads are negative", dims)
    return (TensorType(tensor(types, 0).dtype, result),)


def export_pad(attrs: dict[str, Any], _in: Types, _out: tuple[TensorType, ...], _opset: int) -> dict[str, Any]:
    """0 is the default; -0.0 isn't."""
    value = attrs["constant_value"]
    return attrs | {"constant_value": None if value == 0 and math.copysign(1, value) > 0 else value}


@operator(
    "Pad",
    since=11,
    infer=pad_type,
    normalize=pad_attrs,
    export=export_pad,
    flops=no_work,
    inputs_as_attrs={"pads": (1, 11), "constant_value": (2, 11), "axes": (3, 18)},
)
def pad(
    xp: ArrayModule,
    x: Array,
    *,
    pads: tuple[int, ...],
    mode: str = "constant",
    constant_value: float | None = None,
    axes: tuple[int, ...] | None = None,
) -> Array:
    """Pad each axis before and after; a negative pad cuts first."""
    rank = len(x.shape)
    ends = [slice(max(-pads[i], 0), x.shape[i] - max(-pads[rank + i], 0)) for i in range(rank)]
    widths = [(max(pads[i], 0), max(pads[rank + i], 0)) for i in range(rank)]
    return xp.pad(x[tuple(ends)], widths, 0 if constant_value is None else constant_value, mode)
