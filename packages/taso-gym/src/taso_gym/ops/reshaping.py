"""Operators that give the elements another shape, or repeat them."""

from __future__ import annotations

import math
from typing import Any

from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.ops.operator import Attrs, Types, no_work, operator
from taso_gym.ops.shapes import axes_of, axis_of, broadcast, broadcasts_to, exact_groups, expect, shape, tensor
from taso_gym.symbolic import Dim, Shape, floor_div, product
from taso_gym.tensor import TensorType


def missing_dim(whole: Shape, known: Shape) -> Dim:
    """Return the size that a -1 stands for: the product of ``whole`` divided by that of ``known``.

    Equal sizes are cancelled first. Where the division can't be carried out over symbols, the quotient is a symbol
    named by the expression itself; a file that runs at all makes it exact.
    """
    rest = list(known)
    left: list[Dim] = []
    for dim in whole:
        if dim in rest:
            rest.remove(dim)
        else:
            left.append(dim)
    expect(product(rest) != 0, "no size of 0 beside a -1", known)
    return floor_div(product(left), product(rest))


ALLOWZERO_SINCE = 14
"""Opset from which on a Reshape may say that a size of 0 is meant."""


def reshape_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Replace 0 by the size that stands there and -1 by the size that is missing; a 0 that is left is meant."""
    dims, given = shape(types, 0), tuple(attrs["shape"])
    if not attrs["allowzero"]:
        expect(all(i < len(dims) for i, d in enumerate(given) if d == 0), "0 only for an axis that exists", given)
        given = tuple(dims[i] if d == 0 else d for i, d in enumerate(given))
    expect(given.count(-1) <= 1, "at most one -1", given)
    if -1 in given:
        at = given.index(-1)
        given = (*given[:at], missing_dim(dims, given[:at] + given[at + 1 :]), *given[at + 1 :])
    return {"shape": given, "allowzero": int(0 in given)}


def reshape_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """As many elements as before, in a shape that a file can state."""
    dims = shape(types, 0)
    target: Shape = attrs["shape"]
    others = [target[:i] + target[i + 1 :] for i in range(len(target))]
    missing = any(not isinstance(d, int) and missing_dim(dims, o) == d for d, o in zip(target, others, strict=True))
    expect(missing or product(dims) == product(target), f"a shape of as many elements as {dims}", target)
    stated_shape(dims, target)
    return (TensorType(tensor(types, 0).dtype, target),)


def stated_shape(dims: Shape, target: Shape) -> tuple[int, ...]:
    """Return a shape as a file states it: 0 for a symbolic size that stays in place, -1 for one other.

    Raises:
        TypeInferenceError: two symbolic sizes move, or one does and a size is 0.
    """
    if 0 in target:
        expect(all(isinstance(d, int) for d in target), "static sizes beside a size of 0", target)
    stated = [d if isinstance(d, int) else 0 if i < len(dims) and dims[i] == d else -1 for i, d in enumerate(target)]
    expect(stated.count(-1) <= 1, f"at most one symbolic size to move from {dims}", target)
    return tuple(stated)


def export_reshape(attrs: dict[str, Any], types: Types, _out: tuple[TensorType, ...], opset: int) -> dict[str, Any]:
    """Symbolic sizes are written as 0 and -1; a 0 needs ``allowzero``, or is one of these before there was it."""
    dims, target = shape(types, 0), attrs["shape"]
    stated = stated_shape(dims, target)
    if attrs["allowzero"] and opset < ALLOWZERO_SINCE:
        copied = tuple(d or (0 if dims[i : i + 1] == (0,) else -1) for i, d in enumerate(stated))
        if copied.count(-1) == 0 or (copied.count(-1) == 1 and 0 not in copied):
            return attrs | {"shape": copied, "allowzero": 0}
    return attrs | {"shape": stated}


@operator(
    "Reshape",
    since=5,
    infer=reshape_type,
    normalize=reshape_attrs,
    export=export_reshape,
    flops=no_work,
    inputs_as_attrs={"shape": (1, 5)},
    view=True,
)
def reshape(xp: ArrayModule, x: Array, *, shape: tuple[int, ...], allowzero: int = 0) -> Array:
    """The elements in another shape, in row-major order."""
    return xp.reshape(x, shape)


def flatten_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Make the axis non-negative; it may be the rank."""
    rank = len(shape(types, 0))
    return {"axis": rank if attrs["axis"] == rank else axis_of(attrs["axis"], rank)}


def flatten_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """A matrix: the axes before, and those from the axis on."""
    dims, axis = shape(types, 0), attrs["axis"]
    return (TensorType(tensor(types, 0).dtype, (product(dims[:axis]), product(dims[axis:]))),)


@operator("Flatten", since=1, infer=flatten_type, normalize=flatten_attrs, flops=no_work, view=True)
def flatten(xp: ArrayModule, x: Array, *, axis: int = 1) -> Array:
    """The elements as a matrix."""
    return xp.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


def squeeze_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Name the axes: by default all of size 1."""
    dims = shape(types, 0)
    if not attrs["axes"]:
        expect(tensor(types, 0).is_static, "static sizes, or axes", dims)
        expect(attrs["axes"] is None or 1 not in dims, "axes, which onnxruntime takes an empty list of for all", dims)
        return {"axes": tuple(i for i, d in enumerate(dims) if d == 1)}
    return {"axes": axes_of(attrs["axes"], len(dims))}


def squeeze_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """Without the axes, which have size 1."""
    dims = shape(types, 0)
    axes: tuple[int, ...] = attrs["axes"]
    expect(all(dims[a] == 1 for a in axes), f"size 1 at the axes {axes}", dims)
    kept = tuple(d for i, d in enumerate(dims) if i not in axes)
    return (TensorType(tensor(types, 0).dtype, kept),)


def export_axes(attrs: dict[str, Any], _in: Types, _out: tuple[TensorType, ...], _opset: int) -> dict[str, Any]:
    """No axes are left out: in a file they'd mean all."""
    return attrs | {"axes": attrs["axes"] or None}


@operator(
    "Squeeze",
    since=1,
    infer=squeeze_type,
    normalize=squeeze_attrs,
    export=export_axes,
    flops=no_work,
    inputs_as_attrs={"axes": (1, 13)},
    view=True,
)
def squeeze(xp: ArrayModule, x: Array, *, axes: tuple[int, ...] | None = None) -> Array:
    """Remove axes of size 1."""
    return x[tuple(0 if i in (axes or ()) else slice(None) for i in range(len(x.shape)))]


def unsqueeze_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Count the axes in the result."""
    return {"axes": axes_of(attrs["axes"], len(shape(types, 0)) + len(attrs["axes"]))}


def unsqueeze_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """With size 1 at the axes."""
    rest = iter(shape(types, 0))
    rank = len(shape(types, 0)) + len(attrs["axes"])
    return (TensorType(tensor(types, 0).dtype, tuple(1 if i in attrs["axes"] else next(rest) for i in range(rank))),)


@operator(
    "Unsqueeze",
    since=1,
    infer=unsqueeze_type,
    normalize=unsqueeze_attrs,
    flops=no_work,
    inputs_as_attrs={"axes": (1, 13)},
    view=True,
)
def unsqueeze(xp: ArrayModule, x: Array, *, axes: tuple[int, ...]) -> Array:
    """Insert axes of size 1."""
    return x[tuple(None if i in axes else slice(None) for i in range(len(x.shape) + len(axes)))]


def expand_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Write the result's shape out."""
    return {"shape": broadcast(shape(types, 0), tuple(attrs["shape"]))}


def expand_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """The given shape, in which symbolic sizes are those that the data has already."""
    export_expand(dict(attrs), types, (), 0)
    return (TensorType(tensor(types, 0).dtype, attrs["shape"]),)


def export_expand(attrs: dict[str, Any], types: Types, _out: tuple[TensorType, ...], _opset: int) -> dict[str, Any]:
    """A symbolic size is written as 1, which keeps it."""
    dims = shape(types, 0)
    target: Shape = attrs["shape"]
    broadcasts_to(dims, target)
    own = (1,) * (len(target) - len(dims)) + dims
    stated = tuple(d if isinstance(d, int) else 1 for d in target)
    expect(all(isinstance(d, int) or d == o for d, o in zip(target, own, strict=True)), f"sizes of {dims}", target)
    return {"shape": stated}


@operator(
    "Expand",
    since=8,
    infer=expand_type,
    normalize=expand_attrs,
    export=export_expand,
    flops=no_work,
    inputs_as_attrs={"shape": (1, 8)},
)
def expand(xp: ArrayModule, x: Array, *, shape: tuple[int, ...]) -> Array:
    """Repeat axes of size 1."""
    return xp.broadcast_to(x, shape)


def tile_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """Each size times its repeats."""
    dims, repeats = shape(types, 0), attrs["repeats"]
    expect(len(repeats) == len(dims) and min(repeats, default=0) >= 0, f"{len(dims)} repeats of 0 or more", repeats)
    return (TensorType(tensor(types, 0).dtype, tuple(d * r for d, r in zip(dims, repeats, strict=True))),)


@operator("Tile", since=6, infer=tile_type, flops=no_work, inputs_as_attrs={"repeats": (1, 6)})
def tile(xp: ArrayModule, x: Array, *, repeats: tuple[int, ...]) -> Array:
    """The tensor several times along each axis."""
    dims = tuple(x.shape)
    spread = xp.reshape(x, tuple(n for d in dims for n in (1, d)))
    repeated = xp.broadcast_to(spread, tuple(n for d, r in zip(dims, repeats, strict=True) for n in (r, d)))
    return xp.reshape(repeated, tuple(d * r for d, r in zip(dims, repeats, strict=True)))


def depth_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Check the order of the channels."""
    expect(attrs["mode"] in ("DCR", "CRD"), "mode DCR or CRD", attrs["mode"])
    return attrs


def depth_to_space_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """(batch, channels / b², height b, width b)."""
    dims, b = shape(types, 0), attrs["blocksize"]
    expect(len(dims) == 4, "data of rank 4", dims)
    return (TensorType(tensor(types, 0).dtype, (dims[0], exact_groups(dims[1], b * b), dims[2] * b, dims[3] * b)),)


@operator("DepthToSpace", since=1, infer=depth_to_space_type, normalize=depth_attrs, flops=no_work)
def depth_to_space(xp: ArrayModule, x: Array, *, blocksize: int, mode: str = "DCR") -> Array:
    """Channels become blocks of pixels."""
    (n, c, h, w), b = x.shape, blocksize
    if mode == "DCR":
        blocks = xp.transpose(xp.reshape(x, (n, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2))
    else:
        blocks = xp.transpose(xp.reshape(x, (n, c // (b * b), b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return xp.reshape(blocks, (n, c // (b * b), h * b, w * b))


def space_to_depth_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """(batch, channels b², height / b, width / b)."""
    dims, b = shape(types, 0), attrs["blocksize"]
    expect(len(dims) == 4, "data of rank 4", dims)
    result = (dims[0], dims[1] * (b * b), exact_groups(dims[2], b), exact_groups(dims[3], b))
    return (TensorType(tensor(types, 0).dtype, result),)


@operator("SpaceToDepth", since=1, infer=space_to_depth_type, flops=no_work)
def space_to_depth(xp: ArrayModule, x: Array, *, blocksize: int) -> Array:
    """Blocks of pixels become channels."""
    (n, c, h, w), b = x.shape, blocksize
    blocks = xp.reshape(x, (n, c, h // b, b, w // b, b))
    return xp.reshape(xp.transpose(blocks, (0, 3, 5, 1, 2, 4)), (n, c * b * b, h // b, w // b))
