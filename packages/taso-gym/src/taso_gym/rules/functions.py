"""The functions that a rule's expressions may call: a table that matcher, sampler and prover read alike.

Shapes are tuples of dimensions; a dimension may be a polynomial over symbols. What can't be computed is `Undefined`,
which makes a condition "not shown" and a right side unavailable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from taso_gym.errors import ModelError, TypeInferenceError
from taso_gym.graph import Weight
from taso_gym.ops.interpolation import Axis, weights_of
from taso_gym.ops.shapes import broadcast as broadcast_shapes
from taso_gym.tensor import Dim, Shape, TensorType, product

MAX_ITEMS = 4096
"""Longest list that an expression may make."""


class Undefined(Exception):  # noqa: N818 - no error of the user's: the answer is "not shown"
    """An expression that has no value for this match."""


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


def as_list(value: Any) -> tuple[Any, ...]:
    """Return a list of an expression; raises `Undefined` for anything else."""
    if not isinstance(value, tuple):
        raise Undefined(f"expected a list, found {value}")
    return value  # pyright: ignore[reportUnknownVariableType]


def item(items: Sequence[Any], index: Any) -> Any:
    """Return an item, counted from the end where negative; raises `Undefined` where there is none."""
    if not isinstance(index, int) or not -len(items) <= index < len(items):
        raise Undefined(f"no item {index} among {len(items)}")
    return items[index]


def _shape(a: Operand) -> Shape:
    if a.type.shape is None:
        raise Undefined("a shape of unknown rank")
    return a.type.shape


def _dim(a: Operand, axis: Any) -> Dim:
    return item(_shape(a), axis)


def _dims(operands: Operand | tuple[Operand, ...], axis: Any) -> tuple[Dim, ...]:
    return tuple(_dim(a, axis) for a in ((operands,) if isinstance(operands, Operand) else operands))


def _size(a: Operand) -> Dim:
    return product(_shape(a))


def _rank(a: Operand) -> int:
    return len(_shape(a))


def _dtype(a: Operand) -> str:
    return a.type.dtype


def _const(operands: Operand | tuple[Operand, ...]) -> bool:
    return all(a.type.const for a in ((operands,) if isinstance(operands, Operand) else operands))


def _count(operands: Operand | tuple[Operand, ...]) -> int:
    return 1 if isinstance(operands, Operand) else len(operands)


def _value(a: Operand) -> float | NDArray[Any]:
    """The one value that all elements have, else all of them; undefined for what isn't a weight."""
    if a.weight is None:
        raise Undefined("the value of something that isn't a weight")
    splat: float | None = getattr(a.weight, "splat", None)
    return a.weight.array() if splat is None else splat


def _number(value: Any) -> int | float:
    if not isinstance(value, int | float):
        raise Undefined(f"expected a number, found {value}")
    return value


def _length(value: Any) -> int:
    return len(as_list(value))


def _reduced(array: NDArray[Any], reduce: Callable[[NDArray[Any]], Any]) -> float:
    if not array.size:
        raise Undefined("the extreme of no elements")
    return float(reduce(array))


def _extreme(choose: Callable[..., Any], reduce: Callable[[NDArray[Any]], Any]) -> Callable[..., Any]:
    def apply(*values: Any) -> Any:
        if len(values) == 1 and isinstance(values[0], np.ndarray):
            return _reduced(values[0], reduce)  # pyright: ignore[reportUnknownArgumentType]
        items = as_list(values[0]) if len(values) == 1 and isinstance(values[0], tuple) else values
        if not items:
            raise Undefined("the extreme of no numbers")
        return choose(_number(v) for v in items)

    return apply


def _absolute(value: NDArray[Any] | float) -> Any:
    return np.abs(value) if isinstance(value, np.ndarray) else abs(_number(value))


def _sqrt(value: Any) -> float:
    if _number(value) < 0:
        raise Undefined(f"the square root of {value}")
    return math.sqrt(value)


def _prod(items: Any) -> Dim:
    return product(as_list(items))


def _sum(items: Any) -> Dim:
    total: Dim = 0
    for item in as_list(items):
        total = total + item
    return total


def _permute(items: Any, perm: Any) -> tuple[Any, ...]:
    return tuple(item(as_list(items), i) for i in as_list(perm))


def _inverse(perm: Any) -> tuple[int, ...]:
    if sorted(as_list(perm)) != list(range(len(perm))):
        raise Undefined(f"{perm} is no permutation")
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


def _range(begin: Any, end: Any = None) -> tuple[int, ...]:
    first, last = (0, begin) if end is None else (begin, end)
    if not isinstance(first, int) or not isinstance(last, int):
        raise Undefined("a range with unknown ends")
    if last - first > MAX_ITEMS:
        raise Undefined(f"a list of over {MAX_ITEMS} items")
    return tuple(range(first, last))


def _broadcast(*shapes: Any) -> Shape:
    result: Shape = ()
    try:
        for shape in shapes:
            result = broadcast_shapes(result, as_list(shape))
    except TypeInferenceError as error:
        raise Undefined(str(error)) from error
    return result


def _replace(items: Any, index: Any, new: Any) -> tuple[Any, ...]:
    item(as_list(items), index)
    at = index % len(items)
    return (*items[:at], new, *items[at + 1 :])


def _insert(items: Any, index: Any, new: Any) -> tuple[Any, ...]:
    if not isinstance(index, int) or not 0 <= index <= len(as_list(items)):
        raise Undefined(f"no place {index} in {items}")
    return (*items[:index], new, *items[index:])


def _delete(items: Any, index: Any) -> tuple[Any, ...]:
    item(as_list(items), index)
    at = index % len(items)
    return (*items[:at], *items[at + 1 :])


def _without(items: Any, indices: Any) -> tuple[Any, ...]:
    dropped = {index % max(len(items), 1) for index in as_list(indices) if item(as_list(items), index) is not None}
    return tuple(kept for i, kept in enumerate(items) if i not in dropped)


def _plus(a: Any, b: Any) -> tuple[Any, ...]:
    if len(as_list(a)) != len(as_list(b)):
        raise Undefined(f"lists of unequal length, {a} and {b}")
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _interpolation(size: Any, to: Any, at: Any) -> tuple[float, ...]:
    if not isinstance(size, int) or not isinstance(to, int | float) or not isinstance(at, str):
        raise Undefined(f"an axis of {size} elements resized by {to}, {at}")
    if size < 1:
        raise Undefined(f"an axis of {size} elements")
    axis = Axis.of(size, to, at)
    if not 0 < size * axis.count <= MAX_ITEMS:
        raise Undefined(f"a list of no or over {MAX_ITEMS} items")
    try:
        return tuple(weights_of(axis, "linear").reshape(-1).tolist())
    except ModelError as error:
        raise Undefined(str(error)) from error


def _keeps_order(shape: Any, perm: Any) -> bool:
    moved = [i for i in as_list(perm) if item(as_list(shape), i) != 1]
    return moved == sorted(moved)


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
        "min": Function(("value",), _extreme(min, np.min), variadic=True),
        "max": Function(("value",), _extreme(max, np.max), variadic=True),
        "abs": Function(("value",), _absolute),
        "sqrt": Function(("value",), _sqrt),
        "prod": Function(("value",), _prod),
        "sum": Function(("value",), _sum),
        "permute": Function(("value", "value"), _permute),
        "compose": Function(("value", "value"), _permute),
        "inverse": Function(("value",), _inverse),
        "range": Function(("value", "value"), _range, optional=1),
        "broadcast": Function(("value",), _broadcast, variadic=True),
        "replace": Function(("value", "value", "value"), _replace),
        "insert": Function(("value", "value", "value"), _insert),
        "delete": Function(("value", "value"), _delete),
        "without": Function(("value", "value"), _without),
        "plus": Function(("value", "value"), _plus),
        "keeps_order": Function(("value", "value"), _keeps_order),
        "interpolation": Function(("value", "value", "value"), _interpolation),
    }
)
"""Name -> function.

``shape(a)``, ``rank(a)``, ``dim(a, i)``, ``size(a)`` (number of elements), ``dtype(a)``, ``const(a)`` and
``value(a)`` ask about a tensor; ``count(xs)``, ``dims(xs, i)`` and ``const(xs)`` about all of ``*xs``.
``permute(s, p)`` takes items in the order ``p``; ``compose(p, q)`` is the permutation of a Transpose by ``p`` and then
one by ``q``. ``insert(s, i, d)``, ``replace(s, i, d)`` and ``delete(s, i)`` edit a list, ``without(s, [i, j])`` drops
several items, ``plus(s, t)`` adds item by item. ``keeps_order(s, p)``: a Transpose by ``p`` of shape ``s`` moves no
data, since the axes that aren't of size 1 stay in order.
``interpolation(n, f, m)`` lists the rows of the matrix by which a linear Resize makes floor(n f) elements of n along an
axis; m is its ``coordinate_transformation_mode``. A whole number is the new size instead of the scale.
"""
