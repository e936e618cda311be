"""Drawing values for the tensors of an instance, and comparing what the two sides make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.rules.rule import Rule, Var
from taso_gym.tensor import numpy_dtype
from taso_substitutions.verify.facts import calls_in
from taso_substitutions.verify.instance import Instance, Side

Arrays = Mapping[str, NDArray[Any]]
Values = Callable[[tuple[int, ...], np.dtype[Any]], NDArray[Any]]
"""Draws the values of a tensor of a shape and element type."""
SPECIALS = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 1e-21, -7e-23, 3e38)
"""What a rule that keeps every bit is tried with besides ordinary numbers; integers with their limits.

The squares of 1e-21 and -7e-23 are denormal in float32.
"""
STYLES = ("normal", "positive", "wide", "zeros")
"""Standard normal; between 0.1 and 3, for logarithms, roots and variances; normal with deviation 20; a third zeros."""


def residues(rule: Rule, instance: Instance, rng: np.random.Generator, prime: int) -> Arrays:
    """Draw integers modulo a prime; constants whose value the rule asks for keep theirs."""

    def values(shape: tuple[int, ...], _dtype: np.dtype[Any]) -> NDArray[Any]:
        return np.asarray(rng.integers(0, prime, shape))

    return _draw(rule, instance, rng, values)


def numbers(rule: Rule, instance: Instance, rng: np.random.Generator, style: str) -> Arrays:
    """Draw numbers of each tensor's element type; see `STYLES`."""

    def values(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        return _number(rng, shape, style).astype(dtype)

    return _draw(rule, instance, rng, values)


def special_numbers(rule: Rule, instance: Instance, rng: np.random.Generator) -> Arrays:
    """Draw numbers among which infinities, NaN, signed zeros and denormal ones, or limits of integers, are strewn."""

    def values(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        ordinary = _number(rng, shape, "normal")
        special = rng.random(shape) < 0.2
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            return np.where(special, rng.choice([limits.min, limits.max], shape), (ordinary * 10).astype(dtype))
        strewn = np.where(special, rng.choice(SPECIALS, shape), ordinary)
        with np.errstate(over="ignore"):
            return strewn.astype(dtype)

    return _draw(rule, instance, rng, values)


def _number(rng: np.random.Generator, shape: tuple[int, ...], style: str) -> NDArray[Any]:
    if style == "positive":
        return np.asarray(rng.uniform(0.1, 3, shape))
    values = np.asarray(rng.normal(0, 20 if style == "wide" else 1, shape))
    return np.where(rng.random(shape) < 1 / 3, 0, values) if style == "zeros" else values


def _draw(rule: Rule, instance: Instance, rng: np.random.Generator, values: Values) -> Arrays:
    bounds = index_bounds(rule, instance)
    arrays: dict[str, NDArray[Any]] = {}
    for name, type_ in instance.leaves():
        dtype, shape = numpy_dtype(type_.dtype), tuple(d for d in type_.shape or () if isinstance(d, int))
        if name in instance.weights:
            arrays[name] = instance.weights[name].array()
        elif name in bounds:
            arrays[name] = rng.integers(-bounds[name], bounds[name], shape)
        elif dtype.kind == "b":
            arrays[name] = rng.random(shape) < 0.5
        else:
            arrays[name] = values(shape, dtype)
    return arrays


def index_bounds(rule: Rule, instance: Instance) -> dict[str, int]:
    """Return the size of the axis that each tensor of indices points into."""
    side, bounds = Side(instance, left=True), dict[str, int]()
    for call in calls_in(rule.lhs):
        if call.op == "Gather" and isinstance(call.args[1], Var):
            sig = side.sign(call)
            size = side.operands(call.args)[0]
            assert size is not None and size.shape is not None
            dim = size.shape[sig.attr("axis")]
            name = call.args[1].name
            bounds[name] = min(bounds.get(name, 1 << 30), dim if isinstance(dim, int) else 1)
    return bounds


def relative_error(
    reference: NDArray[Any], other: NDArray[Any], floor: float = 0.0
) -> tuple[float, tuple[int, ...] | None]:
    """Return the largest difference where the reference is finite, relative to its largest element, and its place.

    The place is None where nothing is finite.

    Args:
        reference: an array of numbers.
        other: another of its shape.
        floor: what the difference is relative to where all elements are smaller.
    """
    finite = np.isfinite(reference)
    if not finite.any():
        return 0.0, None
    scale = max(float(np.abs(reference[finite]).max()), floor) or 1.0
    with np.errstate(invalid="ignore"):
        difference = np.where(finite, np.abs(reference - other), 0.0)
    difference = np.where(np.isnan(difference), np.inf, difference)
    place = np.unravel_index(int(difference.argmax()), difference.shape)
    return float(difference[place]) / scale, tuple(int(i) for i in place)


def different_bits(a: NDArray[Any], b: NDArray[Any]) -> tuple[int, ...] | None:
    """Return the first place at which two arrays differ in a bit (all NaNs are one), or None."""
    if a.dtype.kind != "f":
        different = a != b
    else:
        both_nan = np.isnan(a) & np.isnan(b)
        different = ~both_nan & ((a != b) | (np.signbit(a) != np.signbit(b)))
    places = np.argwhere(different)
    return tuple(int(i) for i in places[0]) if len(places) else None
