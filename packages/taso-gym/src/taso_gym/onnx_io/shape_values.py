"""Shape arithmetic over symbols: what the small integer tensors hold that a file computes from the sizes of others.

Exporters write ``x.reshape(batch, -1, 64)`` as Shape, Gather, Unsqueeze, Concat and Reshape. With the elements known as
dimensions, the Reshape has an attribute for a shape, and where no symbol is left, the elements are a constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.errors import TypeInferenceError
from taso_gym.graph import Weight
from taso_gym.ops.evaluate import evaluate
from taso_gym.ops.reshaping import reshape_attrs
from taso_gym.signature import OpaqueOperator, Signature
from taso_gym.symbolic import Dim, Poly, bounds
from taso_gym.tensor import TensorType, ValueType

ShapeValue = NDArray[Any]
"""An int64 array where all elements are known, truth values as 0 and 1, else an object array of `Dim`; of rank 0 or 1.
"""

ARITHMETIC = frozenset({"Add", "Concat", "Gather", "Mul", "Reshape", "Slice", "Split", "Squeeze", "Sub", "Unsqueeze"})
"""Operators whose bodies hold for polynomials too: they only move, add and multiply elements."""
CHOICES = frozenset({"Cast", "Equal", "Where"})
"""Operators by which exporters choose sizes: those that are -1 in what is expanded to stay as they are."""
MOST_ELEMENTS = 64
MOST_TERMS, MOST_DEGREE = 64, 16
"""What an element has that is known; products of products would grow without end."""
SIZES = TensorType("int64", None)


def shape_values(sig: Signature, operands: Sequence[ShapeValue | None]) -> tuple[ShapeValue, ...] | None:
    """Return what an operator on small integer tensors yields, or None where that isn't known.

    Args:
        sig: its signature.
        operands: elements of its operands where they are known.
    """
    if any(not _is_small(t) for t in sig.outputs) or any(o is None for o in operands):
        return None
    known, name = [o for o in operands if o is not None], sig.op.name
    if isinstance(sig.op, OpaqueOperator) or name not in ARITHMETIC | CHOICES:
        return None
    try:
        results = _chosen(name, sig.outputs[0], known) if name in CHOICES else evaluate(sig.op, dict(sig.attrs), known)
    except (TypeError, IndexError, TypeInferenceError):  # an index that is a symbol, or out of range: the runtime's
        return None
    found = [None if r is None else _settled(np.asarray(r), t) for r, t in zip(results, sig.outputs, strict=True)]
    settled = tuple(elements for elements in found if elements is not None)
    return settled if len(settled) == len(found) else None


STATED = {"Reshape": 1, "ConstantOfShape": 0, "Resize": 3, "Range": 1}
"""Operators whose output has sizes that an operand states, and which operand; that of a Range is where it ends."""


def stated_sizes(
    name: str, attrs: Mapping[str, Any], type_: ValueType | None, operands: Sequence[ShapeValue | None]
) -> ShapeValue | None:
    """Return the sizes of an operator's output that its operands state, below 1 where they leave one open.

    Args:
        name: of `STATED`.
        attrs: the attributes that it has.
        type_: of its first operand.
        operands: elements of its operands where they are known.
    """
    stated = operands[STATED[name]] if len(operands) > STATED[name] else None
    if name == "Range":
        return _steps(*operands)
    if name == "Reshape" and stated is not None and isinstance(type_, TensorType) and type_.shape is not None:
        return _without_gaps(stated, attrs.get("allowzero", 0), type_)
    stretches = "axes" not in attrs and attrs.get("keep_aspect_ratio_policy", b"stretch") == b"stretch"
    return stated if name != "Resize" or stretches else None


def _without_gaps(stated: ShapeValue, allow_zero: int, type_: TensorType) -> ShapeValue | None:
    """Return a shape that something is reshaped to, with the sizes that 0 and -1 stand for where these are known."""
    attrs = {"shape": tuple(d if isinstance(d, Poly) else int(d) for d in stated), "allowzero": allow_zero}
    found = np.empty(len(stated), object)
    try:
        found[:] = reshape_attrs(attrs, (type_,))["shape"]
    except TypeInferenceError:
        return stated
    return _settled(found)


def _steps(start: ShapeValue | None, limit: ShapeValue | None, delta: ShapeValue | None) -> ShapeValue | None:
    """Return how many numbers a Range counts, as a shape, if it counts by one and never backwards."""
    if start is None or limit is None or delta is None or any(v.size != 1 for v in (start, limit, delta)):
        return None
    count = limit.item() - start.item()
    return _settled(np.array([count], object)) if delta.item() == 1 and bounds(count, 0)[0] >= 0 else None


def _chosen(name: str, type_: ValueType, known: Sequence[ShapeValue]) -> tuple[ShapeValue | None]:
    """Return what one of `CHOICES` yields, or None where it depends on the sizes that symbols stand for."""
    if name == "Equal":
        different = _truth(np.asarray(np.subtract(*known)))  # of two scalars numpy gives no array
        return (None if different is None else 1 - different,)
    if name == "Where":
        return (np.where(known[0] != 0, known[1], known[2]),)
    return (_truth(known[0]) if isinstance(type_, TensorType) and type_.dtype == "bool" else known[0],)


def _truth(values: ShapeValue) -> ShapeValue | None:
    """Return which elements aren't 0, as 0 and 1."""
    signs = [_sign(d) for d in values.reshape(-1)]
    return None if None in signs else np.array([s != 0 for s in signs], np.int64).reshape(values.shape)


def _sign(value: Any) -> int | None:
    """Return the sign of a dimension, or None where it depends on its symbols: of what is counted there may be none."""
    low, high = bounds(value, 0)
    return 1 if low > 0 else -1 if high < 0 else 0 if low == high == 0 else None


def _is_small(type_: Any) -> bool:
    if not isinstance(type_, TensorType) or type_.dtype not in ("int64", "int32", "bool") or not type_.is_static:
        return False
    return type_.shape in ((), (1,)) or (type_.shape is not None and len(type_.shape) == 1 and _below(type_.shape[0]))


def _below(size: Dim) -> bool:
    return isinstance(size, int) and size <= MOST_ELEMENTS


def constant_value(type_: TensorType, weight: Weight) -> ShapeValue | None:
    """Return the elements of a constant that can take part in shape arithmetic, else None."""
    return weight.array().astype(np.int64) if _is_small(type_) else None


def sizes(type_: object, start: int = 0, end: int | None = None) -> ShapeValue | None:
    """Return what Shape (of the axes from ``start`` to ``end``) yields, or None where the rank isn't known.

    Size isn't looked through: onnxruntime doesn't do it either, and conditions that become constant by it make
    onnxruntime inline branches and refuse what is in them.
    """
    if not isinstance(type_, TensorType) or type_.shape is None:
        return None
    dims = np.empty(len(type_.shape), object)
    dims[:] = type_.shape
    return _settled(dims[start:end])


def _settled(value: NDArray[Any], type_: ValueType = SIZES) -> ShapeValue | None:
    """Return elements that are all integers as such, or None where one is too large: as an integer, it would wrap."""
    most = np.iinfo(np.int32 if isinstance(type_, TensorType) and type_.dtype == "int32" else np.int64).max
    elements = value.reshape(-1)
    if not all(_is_bounded(d, most) for d in elements):
        return None
    return value.astype(np.int64) if all(isinstance(d, int | np.integer) for d in elements) else value


def _is_bounded(value: Any, most: int) -> bool:
    if not isinstance(value, Poly):
        return -most <= value <= most
    return len(value.terms) <= MOST_TERMS and all(len(m) <= MOST_DEGREE and abs(c) <= most for m, c in value.terms)
