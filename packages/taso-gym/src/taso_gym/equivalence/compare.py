"""How far two values are apart, in units of their magnitude."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

Value = Any
"""A NumPy array, a map from keys to numbers, a list of either (a sequence), or None (an empty optional)."""

TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""Largest error that counts as rounding, relative to the largest finite magnitude of the output (but see `FILL`).

Sums of thousands of terms in another order differ by a few hundred units in the last place in float32 (1e-4 is 840 of
them; measured on rewritten networks: at most 4e-6). Half-precision results are rounded after every operator: 10 units.
All other types are compared exactly.
"""


FILL = 1e3
"""What is more than so many times as large as 1 and as all other elements fills a mask: errors there are scaled by it.

Beside -1e9 for masked logits all others would look alike.
"""
ADDED = 4
"""Fills differ by at most this factor: a mask, or the sum of several."""


class Difference(NamedTuple):
    """How a value differs from the one that it should be.

    Attributes:
        relative: largest absolute error, divided by the largest finite magnitude of the expected value, by 1 where
            that is 0; what fills a mask (`FILL`) and what doesn't are taken by themselves. Infinite where the two can't
            be compared or differ in what isn't finite.
        absolute: largest absolute error.
        tolerance: the largest relative error that counts as rounding.
        note: what is wrong, or weak about the comparison, where a number doesn't say it.
    """

    relative: float
    absolute: float
    tolerance: float
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether the error is within the tolerance."""
        return self.relative <= self.tolerance


EQUAL = Difference(0.0, 0.0, 0.0)


def compare(expected: Value, found: Value, tolerance: float | None = None) -> Difference:
    """Return the difference of two values.

    Args:
        expected: the right value.
        found: the other.
        tolerance: for floating-point types; by default that of `TOLERANCE`.
    """
    if isinstance(expected, list) or isinstance(found, list):
        return _compare_lists(expected, found, tolerance)
    if isinstance(expected, dict) or isinstance(found, dict):
        return _compare_maps([expected], [found], tolerance)
    if expected is None or found is None:
        return EQUAL if found is expected else _incomparable(f"expected {_kind(expected)}, found {_kind(found)}")
    a, b = np.asarray(expected), np.asarray(found)
    if a.dtype != b.dtype or a.shape != b.shape:
        return _incomparable(f"expected {_array_kind(a)}, found {_array_kind(b)}")
    if a.dtype.name not in TOLERANCE:
        return _compare_exactly(a, b)
    allowed = TOLERANCE[a.dtype.name] if tolerance is None else tolerance
    return compare_floats(a.astype(np.float64), b.astype(np.float64), allowed)


def compare_floats(
    a: NDArray[np.float64], b: NDArray[np.float64], tolerance: float, groups: NDArray[np.intp] | None = None
) -> Difference:
    """Return the difference of float64 arrays of one shape; what isn't finite must be the same at the same place.

    Args:
        a: the right values.
        b: the others.
        tolerance: largest relative error that counts as rounding.
        groups: what is taken by itself, instead of the `groups_of` the two.
    """
    finite = np.isfinite(a)
    if not np.array_equal(np.where(finite, 0, a), np.where(np.isfinite(b), 0, b), equal_nan=True):
        count = int((finite != np.isfinite(b)).sum())
        return _incomparable(f"{count} elements are finite in one only" if count else "infinities or NaN differ")
    groups = (groups_of(a, b) if groups is None else groups)[finite]
    sizes, errors = np.abs(a[finite]), np.abs(a[finite] - b[finite])
    members = [groups == i for i in range(int(groups.max(initial=0)) + 1)]
    relative = max(float(errors[m].max(initial=0.0)) / (float(sizes[m].max(initial=0.0)) or 1.0) for m in members)
    note = "" if finite.any() or not a.size else "nothing finite"
    return Difference(relative, float(errors.max(initial=0.0)), tolerance, note)


def groups_of(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the group of each element: 0, or that of the largest, of the largest of the others, … where these fill."""
    sizes = np.maximum(np.abs(a), np.abs(b))
    sizes = np.where(np.isfinite(sizes), sizes, 0.0)
    groups = np.zeros(sizes.shape, np.intp)
    while (largest := sizes.max(initial=0.0)) > FILL:
        fills = sizes >= largest / ADDED
        others = np.where(fills, 0.0, sizes)
        if sizes[fills].min() / FILL <= max(others.max(), 1.0):
            break
        groups[fills] = groups.max() + 1
        sizes = others
    return groups


def _compare_exactly(a: NDArray[Any], b: NDArray[Any]) -> Difference:
    different = a.view(np.uint8) != b.view(np.uint8) if is_foreign(a.dtype) else a != b  # NaN of 8 bits is NaN
    if a.dtype.kind == "c":
        different &= ~(np.isnan(a) & np.isnan(b))
    if not different.any():
        return EQUAL
    note = f"{int(different.sum())} of {a.size} elements differ"
    if a.dtype.kind not in "iu":
        return _incomparable(note)
    high, low = (each.astype(np.uint64) for each in (np.maximum(a, b), np.minimum(a, b)))
    error = float((high - low).max())  # modulo 2^64, so without overflow; float64 would round first
    scale = float(np.abs(a.astype(np.float64)).max())
    return Difference(error / (scale or 1.0), error, 0.0, note)


def is_foreign(dtype: np.dtype[Any]) -> bool:
    """Whether an element type comes from outside NumPy: bfloat16 and all types below 16 bits but bool and integers."""
    return dtype.isbuiltin == 2


def has_finite(value: Value) -> bool:
    """Whether anything in a value is no infinity or NaN, as is all that holds no floating-point numbers."""
    if isinstance(value, list) or value is None:
        return True
    array = np.asarray(value)
    if not array.size or array.dtype.name not in TOLERANCE:
        return array.size > 0
    return bool(np.isfinite(array.astype(np.float64)).any())


def _compare_lists(expected: Value, found: Value, tolerance: float | None) -> Difference:
    if not (isinstance(expected, list) and isinstance(found, list)):
        return _incomparable(f"expected {_kind(expected)}, found {_kind(found)}")
    a, b = cast(list[Value], expected), cast(list[Value], found)
    if len(a) != len(b):
        return _incomparable(f"expected a sequence of {len(a)}, found one of {len(b)}")
    if any(isinstance(each, dict) for each in (*a, *b)):
        return _compare_maps(a, b, tolerance)
    return worst([compare(x, y, tolerance) for x, y in zip(a, b, strict=True)])


def _compare_maps(a: Sequence[Value], b: Sequence[Value], tolerance: float | None) -> Difference:
    """Return the difference of the values of some maps as one array; ZipMap, which makes them, takes float32."""
    expected: list[float] = []
    found: list[float] = []
    for x, y in zip(a, b, strict=True):
        if not (isinstance(x, dict) and isinstance(y, dict)):
            return _incomparable(f"expected {_kind(x)}, found {_kind(y)}")
        one, other = cast(dict[Any, float], x), cast(dict[Any, float], y)
        if one.keys() != other.keys():
            return _incomparable(f"expected a map of {sorted(one)}, found one of {sorted(other)}")
        expected += one.values()
        found += (other[key] for key in one)
    return compare(np.array(expected, np.float32), np.array(found, np.float32), tolerance)


def worst(differences: Sequence[Difference]) -> Difference:
    """Return the difference that exceeds its tolerance most; none are equal."""
    return max(differences, key=lambda d: (not d.ok, d.relative, d.absolute), default=EQUAL)


def _incomparable(note: str) -> Difference:
    return Difference(math.inf, math.inf, 0.0, note)


def _kind(value: Value) -> str:
    if value is None:
        return "nothing"
    return "a sequence" if isinstance(value, list) else "a map" if isinstance(value, dict) else _array_kind(value)


def _array_kind(value: NDArray[Any]) -> str:
    return f"{value.dtype}{list(value.shape)}"
