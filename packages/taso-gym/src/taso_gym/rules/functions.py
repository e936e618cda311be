"""The functions that a rule's expressions may call: a table that matcher, sampler and prover read alike.

Shapes are tuples of dimensions; a dimension may be a polynomial over symbols. What can't be computed is `Undefined`,
which makes a condition "not shown" and a right side unavailable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from taso_gym.errors import ModelError, TypeInferenceError
from taso_gym.graph import Weight
from taso_gym.ops.interpolation import Axis, weights_of
from taso_gym.ops.shapes import broadcast as broadcast_shapes
from taso_gym.rules.lists import (
    Undefined,
    as_list,
    composed,
    deleted,
    inserted,
    inverse,
    item,
    merged_perm,
    merged_sizes,
    permuted,
    plus,
    product_of,
    replaced,
    sum_of,
    whole_numbers,
    without,
)
from taso_gym.symbolic import Dim, Shape, product
from taso_gym.tensor import TensorType

MAX_WEIGHTS = 1 << 17
"""Most weights of a matrix that resizes an axis: 256 elements to 512."""


class Operand(NamedTuple):
    """What a tensor variable is bound to: its type, and its value where it is a weight."""

    type: TensorType
    weight: Weight | None = None


@dataclass(frozen=True)
class Function:
    """One row of the table.

    Attributes:
        parameters: "tensor" (a tensor variable), "tensors" (a tensor variable or ``*xs``) or "value" for each.
        apply: computes it; a tensor comes as `Operand`, ``*xs`` as a tuple of them.
        optional: how many parameters at the end may be left out.
        variadic: the last parameter may be repeated.
    """

    parameters: tuple[str, ...]
    apply: Callable[..., Any]
    optional: int = 0
    variadic: bool = False

    def accepts(self, count: int) -> bool:
        """Whether it takes that many arguments."""
        return len(self.parameters) - self.optional <= count and (self.variadic or count <= len(self.parameters))

    def parameter(self, index: int) -> str:
        """Return the kind of an argument."""
        return self.parameters[min(index, len(self.parameters) - 1)]


def _shape(a: Operand) -> Shape:
    """The sizes of all axes, a list."""
    if a.type.shape is None:
        raise Undefined("a shape of unknown rank")
    return a.type.shape


def _dim(a: Operand, axis: Any) -> Dim:
    """The size of an axis, which is counted from the end where negative."""
    return item(_shape(a), axis)


def _dims(xs: Operand | tuple[Operand, ...], axis: Any) -> tuple[Dim, ...]:
    """The size of an axis of each tensor, a list: `dims(xs, 1)`."""
    return tuple(_dim(a, axis) for a in ((xs,) if isinstance(xs, Operand) else xs))


def _size(a: Operand) -> Dim:
    """The number of elements."""
    return product(_shape(a))


def _rank(a: Operand) -> int:
    """The number of axes."""
    return len(_shape(a))


def _dtype(a: Operand) -> str:
    """The element type, a string: `dtype(x) == "float16"`."""
    return a.type.dtype


def _const(xs: Operand | tuple[Operand, ...]) -> bool:
    """Whether it is a constant: a weight, or computed from weights only; of `*xs`, whether all are."""
    return all(a.type.const for a in ((xs,) if isinstance(xs, Operand) else xs))


def _count(xs: Operand | tuple[Operand, ...]) -> int:
    """The number of tensors that `*xs` stands for."""
    return 1 if isinstance(xs, Operand) else len(xs)


def _value(a: Operand) -> float | NDArray[Any]:
    """The elements of a weight: one number where all are equal; undefined for what isn't a weight."""
    if a.weight is None:
        raise Undefined("the value of something that isn't a weight")
    splat: float | None = getattr(a.weight, "splat", None)
    return a.weight.array() if splat is None else splat


def _number(value: Any) -> int | float:
    if not isinstance(value, int | float):
        raise Undefined(f"expected a number, found {value}")
    return value


def _length(value: Any) -> int:
    """The number of items of a list."""
    return len(as_list(value))


def _reduced(array: NDArray[Any], reduce: Callable[[NDArray[Any]], Any]) -> float:
    if not array.size:
        raise Undefined("the extreme of no elements")
    return float(reduce(array))


def _extreme(what: str, choose: Callable[..., Any], reduce: Callable[[NDArray[Any]], Any]) -> Callable[..., Any]:
    def apply(*values: Any) -> Any:
        if len(values) == 1 and isinstance(values[0], np.ndarray):
            return _reduced(values[0], reduce)  # pyright: ignore[reportUnknownArgumentType]
        items = as_list(values[0]) if len(values) == 1 and isinstance(values[0], tuple) else values
        if not items:
            raise Undefined("the extreme of no numbers")
        return choose(_number(v) for v in items)

    apply.__doc__ = f"The {what} of numbers, of a list, or of all elements of a `value(a)`."
    return apply


def _absolute(value: NDArray[Any] | float) -> Any:
    """The absolute value of a number, or of each element of a `value(a)`."""
    return np.abs(value) if isinstance(value, np.ndarray) else abs(_number(value))


def _sqrt(value: Any) -> float:
    """The square root of a number."""
    if _number(value) < 0:
        raise Undefined(f"the square root of {value}")
    return math.sqrt(value)


def _broadcast(*shapes: Any) -> Shape:
    """The shape that tensors of these shapes have together; undefined where they don't fit."""
    result: Shape = ()
    try:
        for shape in shapes:
            result = broadcast_shapes(result, as_list(shape))
    except TypeInferenceError as error:
        raise Undefined(str(error)) from error
    return result


def _interpolation(size: Any, to: Any, at: Any, mode: Any = "linear", a: Any = -0.75) -> tuple[float, ...]:
    """The rows, joined, of the matrix by which a Resize makes floor(size · to) elements of `size` along an axis.

    `at`, `mode` and `a` are its `coordinate_transformation_mode`, `mode`, which is linear or cubic, and
    `cubic_coeff_a`; a whole number `to` is the new size itself instead of the scale.
    """
    if not isinstance(size, int) or not isinstance(to, int | float) or mode not in ("linear", "cubic"):
        raise Undefined(f"an axis of {size} elements resized by {to}, {mode}")
    if size < 1:
        raise Undefined(f"an axis of {size} elements")
    axis = Axis.of(size, to, at)
    if not 0 < size * axis.count <= MAX_WEIGHTS:
        raise Undefined(f"no or over {MAX_WEIGHTS} weights")
    try:
        return tuple(weights_of(axis, mode, coefficient=a).reshape(-1).tolist())
    except ModelError as error:
        raise Undefined(str(error)) from error


def _keeps_order(shape: Any, perm: Any) -> bool:
    """Whether a Transpose of this shape moves no data: the axes that aren't of size 1 stay in order."""
    return len(merged_sizes(shape, perm)) <= 1


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "shape": Function(("tensor",), _shape),
        "rank": Function(("tensor",), _rank),
        "dim": Function(("tensor", "value"), _dim),
        "dims": Function(("tensors", "value"), _dims),
        "size": Function(("tensor",), _size),
        "dtype": Function(("tensor",), _dtype),
        "const": Function(("tensors",), _const),
        "value": Function(("tensor",), _value),
        "count": Function(("tensors",), _count),
        "len": Function(("value",), _length),
        "min": Function(("value",), _extreme("least", min, np.min), variadic=True),
        "max": Function(("value",), _extreme("largest", max, np.max), variadic=True),
        "abs": Function(("value",), _absolute),
        "sqrt": Function(("value",), _sqrt),
        "prod": Function(("value",), product_of),
        "sum": Function(("value",), sum_of),
        "permute": Function(("value", "value"), permuted),
        "compose": Function(("value", "value"), composed),
        "merged_sizes": Function(("value", "value"), merged_sizes),
        "merged_perm": Function(("value", "value"), merged_perm),
        "inverse": Function(("value",), inverse),
        "range": Function(("value", "value"), whole_numbers, optional=1),
        "broadcast": Function(("value",), _broadcast, variadic=True),
        "replace": Function(("value", "value", "value"), replaced),
        "insert": Function(("value", "value", "value"), inserted),
        "delete": Function(("value", "value"), deleted),
        "without": Function(("value", "value"), without),
        "plus": Function(("value", "value"), plus),
        "keeps_order": Function(("value", "value"), _keeps_order),
        "interpolation": Function(("value",) * 5, _interpolation, optional=2),
    }
)
"""Name -> function; the docstring of what computes it is its line in docs/rules.md."""
