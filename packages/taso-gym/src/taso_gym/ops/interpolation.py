"""What Resize reads along one axis: which elements make a new one, and by how much each counts.

Coordinates are worked out in float32, as onnxruntime does it, so that the weights are the same to the bit. What isn't
here isn't modelled: antialiased and cropped resizes, and rounding to the nearest, which onnxruntime does with a
tolerance of its own where two elements are equally near.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taso_gym.errors import ModelError

COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
"""Values of ``coordinate_transformation_mode`` that are modelled."""
HALF = np.float32(0.5)


def resized(size: int, scale: float) -> int:
    """Return floor(size * scale), the product being rounded to float32 as onnxruntime does it."""
    return int(np.floor(np.float32(size) * np.float32(scale)))


@dataclass(frozen=True)
class Axis:
    """An axis that is resized.

    Attributes:
        size, count: its elements before and after.
        scale: what Resize states, or ``count / size``.
        at: ``coordinate_transformation_mode``.
    """

    size: int
    count: int
    scale: float
    at: str

    @classmethod
    def of(cls, size: int, to: float, at: str) -> Axis:
        """Return an axis that is resized to so many elements, an integer, or by a scale, a float."""
        return cls(size, to, to / size, at) if isinstance(to, int) else cls(size, resized(size, to), to, at)


def weights_of(axis: Axis, mode: str, rounding: str = "", coefficient: float = -0.75) -> NDArray[np.float32]:
    """Return the matrix ``[count, size]`` that an axis is resized by.

    Args:
        axis: the axis.
        mode: "linear", "cubic" or "nearest".
        rounding: ``nearest_mode``, "floor" or "ceil", where that is the mode.
        coefficient: ``cubic_coeff_a``.

    Raises:
        ModelError: what isn't modelled.
    """
    if mode == "linear":
        return _linear(axis, _positions(axis))
    if mode == "cubic":
        return _cubic(axis, _positions(axis), np.float32(coefficient))
    if mode != "nearest" or rounding not in ("floor", "ceil"):
        raise ModelError(
            f"expected a Resize linear, cubic or nearest by floor or ceil, found {mode} {rounding}".rstrip()
        )
    where = _positions(axis)
    return _nearest(axis, np.floor(where) if rounding == "floor" else np.ceil(where))


def _positions(axis: Axis) -> NDArray[np.float32]:
    """Return where on an axis the elements of the resized one lie."""
    size, count, at, scale = axis.size, axis.count, axis.at, np.float32(axis.scale)
    if at not in COORDINATES:
        raise ModelError(f"expected a Resize by {', '.join(sorted(COORDINATES))}, found {at}")
    if size == count > 1 and scale != 1:  # onnxruntime copies where all sizes stay
        raise ModelError(f"expected a Resize whose scale changes the size, found {size} by {scale}")
    new = np.arange(count, dtype=np.float32)
    if at == "align_corners":
        return new * np.float32(size - 1) / np.float32(max(count - 1, 1))
    if at == "asymmetric":
        return new / scale
    if at == "pytorch_half_pixel" and count == 1:
        return new
    return (new + HALF) / scale - HALF


def _linear(axis: Axis, where: NDArray[np.float32]) -> NDArray[np.float32]:
    where = np.clip(where, np.float32(0), np.float32(axis.size - 1))
    below = np.floor(where).astype(np.int64)
    share = where - below.astype(np.float32)
    weights, rows = np.zeros((axis.count, axis.size), np.float32), np.arange(axis.count)
    weights[rows, below] = 1 - share
    weights[rows, np.minimum(below + 1, axis.size - 1)] += share
    return weights


def _cubic(axis: Axis, where: NDArray[np.float32], a: np.float32) -> NDArray[np.float32]:
    """Weights of the four elements around a place, by their distance (Keys 1981); the outermost ones are repeated."""
    below = np.floor(where)
    weights, rows = np.zeros((axis.count, axis.size), np.float32), np.arange(axis.count)
    for step in (-1, 0, 1, 2):
        d = np.abs(where - below - np.float32(step))
        if step in (0, 1):
            weight = ((a + 2) * d - (a + 3)) * d * d + 1
        else:
            weight = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        weights[rows, np.clip(below.astype(np.int64) + step, 0, axis.size - 1)] += weight
    return weights


def _nearest(axis: Axis, where: NDArray[np.float32]) -> NDArray[np.float32]:
    weights = np.zeros((axis.count, axis.size), np.float32)
    weights[np.arange(axis.count), np.clip(where, 0, axis.size - 1).astype(np.int64)] = 1
    return weights
