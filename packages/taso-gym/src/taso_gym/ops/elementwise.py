"""Element-wise operators."""

from __future__ import annotations

from typing import Any

from taso_gym.ops.operator import operator
from taso_gym.ops.shapes import elementwise, same_as_first

Array = Any


@operator("Add", since=7, infer=elementwise, commutative=True)
def add(xp: Any, a: Array, b: Array) -> Array:
    """a + b."""
    return a + b


@operator("Mul", since=7, infer=elementwise, commutative=True)
def mul(xp: Any, a: Array, b: Array) -> Array:
    """a * b."""
    return a * b


@operator("Relu", since=6, infer=same_as_first)
def relu(xp: Any, x: Array) -> Array:
    """max(x, 0)."""
    return xp.maximum(x, xp.constant(0, x))
