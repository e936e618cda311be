"""Resize: linear, cubic, and to the element below or above; of the other modes only types are known."""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.errors import ModelError, TypeInferenceError
from taso_gym.ops.interpolation import Axis, resized, weights_of
from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.ops.operator import Attrs, Types, operator, shortest
from taso_gym.ops.shapes import axis_of, expect, shape, tensor
from taso_gym.symbolic import Dim, product
from taso_gym.tensor import TensorType


def resize_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """State scales or sizes of all axes; a region of interest and a kept aspect ratio aren't modelled.

    What the mode doesn't read gets its default.
    """
    dims = shape(types, 0)
    expect(
        attrs["coordinate_transformation_mode"] != "tf_crop_and_resize", "a resize of the whole", "tf_crop_and_resize"
    )
    expect(attrs["keep_aspect_ratio_policy"] == "stretch", "policy 'stretch'", attrs["keep_aspect_ratio_policy"])
    axes = [axis_of(a, len(dims)) for a in (range(len(dims)) if attrs["axes"] is None else attrs["axes"])]
    scales, sizes = attrs["scales"] or None, attrs["sizes"] or None
    given = scales if sizes is None else sizes
    expect(given is not None and len(given) == len(axes), f"scales or sizes of {len(axes)} axes", given)
    full: list[Any] = [1.0] * len(dims) if sizes is None else list(dims)
    for axis, value in zip(axes, given or (), strict=True):
        full[axis] = value if sizes is not None else shortest(float(value))
    expect(all(isinstance(v, int | float) for v in full), "a static size of each axis that stays", full)
    expect(all(map(math.isfinite, full)), "finite scales", full)
    kept = {k: v for k, v in attrs.items() if k not in ("axes", "roi", "keep_aspect_ratio_policy")} | _unread(attrs)
    return kept | {"scales": tuple(full) if sizes is None else None, "sizes": None if sizes is None else tuple(full)}


def _unread(attrs: Attrs) -> dict[str, Any]:
    """Return the defaults of attributes that the mode doesn't read; exporters state them anyway."""
    nearest = {} if attrs["mode"] == "nearest" else {"nearest_mode": "round_prefer_floor"}
    return nearest | ({} if attrs["mode"] == "cubic" else {"cubic_coeff_a": -0.75}) | {"extrapolation_value": 0.0}


def resize_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """The sizes, or floor(size * scale)."""
    if attrs["sizes"] is not None:
        return (TensorType(tensor(types, 0).dtype, attrs["sizes"]),)
    scaled = tuple(scale_dim(d, s) for d, s in zip(shape(types, 0), attrs["scales"], strict=True))
    return (TensorType(tensor(types, 0).dtype, scaled),)


def scale_dim(size: Dim, scale: float) -> Dim:
    """Return floor(size * scale); over symbols for an integral scale only."""
    if isinstance(size, int):
        return resized(size, scale)
    if scale != int(scale):
        raise TypeInferenceError(f"expected an integral scale of a symbolic size, found {scale} of {size}")
    return size * int(scale)


def resize_flops(_types: Types, outputs: tuple[TensorType, ...], attrs: Attrs) -> Dim:
    """Eight operations per element; nothing where elements are copied."""
    return 0 if attrs["mode"] == "nearest" else product(outputs[0].shape or ()) * 8


@operator(
    "Resize",
    since=13,
    infer=resize_type,
    normalize=resize_attrs,
    flops=resize_flops,
    inputs_as_attrs={"roi": (1, 13), "scales": (2, 13), "sizes": (3, 13)},
)
def resize(
    xp: ArrayModule,
    x: Array,
    *,
    roi: tuple[float, ...] | None = None,
    scales: tuple[float, ...] | None = None,
    sizes: tuple[int, ...] | None = None,
    antialias: int = 0,
    axes: tuple[int, ...] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Array:
    """Interpolate along one axis after the other.

    Raises:
        ModelError: only the types are known of this mode.
    """
    whole = getattr(getattr(x, "dtype", None), "kind", "f") in "iu"  # of the modules, NumPy's have element types
    if antialias or exclude_outside or (whole and mode != "nearest"):
        raise ModelError("expected a plain Resize of real numbers, found antialias, exclude_outside or integers")
    for axis, (size, value) in enumerate(zip(x.shape, scales or sizes or (), strict=True)):
        if value == (1 if scales else size):
            continue
        along = Axis.of(size, value, coordinate_transformation_mode)
        x = combined(xp, x, axis, weights_of(along, mode, nearest_mode, cubic_coeff_a))
    return x


def combined(xp: ArrayModule, x: Array, axis: int, weights: NDArray[np.float32]) -> Array:
    """Return sums of elements along an axis, one for each row of weights."""
    before = (slice(None),) * axis
    rows: list[Array] = []
    for row in weights:
        terms = [(x[(*before, slice(i, i + 1))], float(row[i])) for i in np.flatnonzero(row).tolist()]
        parts = [part if weight == 1 else part * weight for part, weight in terms]
        rows.append(reduce(add, parts))
    return xp.concatenate(rows, axis)
