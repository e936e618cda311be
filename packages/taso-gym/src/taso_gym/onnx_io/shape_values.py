"""Shape arithmetic over symbols: what the small integer tensors hold that a file computes from the sizes of others.

Exporters write ``x.reshape(batch, -1, 64)`` as Shape, Gather, Unsqueeze, Concat and Reshape. With the elements known as
dimensions, the Reshape has an attribute for a shape, and where no symbol is left, the elements are a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.ops.evaluate import evaluate
from taso_gym.signature import OpaqueOperator, Signature
from taso_gym.tensor import Dim, TensorType

ShapeValue = NDArray[Any]
"""An int64 array where all elements are known, else an object array of `Dim`; of rank 0 or 1."""

ARITHMETIC = frozenset({"Add", "Concat", "Gather", "Mul", "Reshape", "Slice", "Split", "Squeeze", "Sub", "Unsqueeze"})
"""Operators whose bodies hold for polynomials too: they only move, add and multiply elements."""
MOST_ELEMENTS = 64


def shape_values(sig: Signature, operands: Sequence[ShapeValue | None]) -> tuple[ShapeValue, ...] | None:
    """Return what an operator on small integer tensors yields, or None where that isn't known.

    Args:
        sig: its signature.
        operands: elements of its operands where they are known.
    """
    if any(not _is_small(t) for t in sig.outputs) or any(o is None for o in operands):
        return None
    if sig.op.name == "Cast":
        return tuple(o for o in operands if o is not None)
    if isinstance(sig.op, OpaqueOperator) or sig.op.name not in ARITHMETIC:
        return None
    try:
        results = evaluate(sig.op, dict(sig.attrs), operands)
    except (TypeError, IndexError):  # an index that is a symbol, or out of range: the runtime's to report
        return None
    return tuple(_settled(np.asarray(r)) for r in results)


def _is_small(type_: Any) -> bool:
    if not isinstance(type_, TensorType) or type_.dtype not in ("int64", "int32") or not type_.is_static:
        return False
    return type_.shape in ((), (1,)) or (type_.shape is not None and len(type_.shape) == 1 and _below(type_.shape[0]))


def _below(size: Dim) -> bool:
    return isinstance(size, int) and size <= MOST_ELEMENTS


def constant_value(type_: TensorType, value: NDArray[Any]) -> ShapeValue | None:
    """Return the elements of a constant that can take part in shape arithmetic, else None."""
    return value.astype(np.int64) if _is_small(type_) else None


def sizes(type_: object, start: int = 0, end: int | None = None) -> ShapeValue | None:
    """Return what Shape (of the axes from ``start`` to ``end``) yields, or None where the rank isn't known.

    Size isn't looked through: onnxruntime doesn't do it either, and a condition that becomes constant makes it inline
    branches and refuse what is in them.
    """
    if not isinstance(type_, TensorType) or type_.shape is None:
        return None
    dims = np.empty(len(type_.shape), object)
    dims[:] = type_.shape
    return _settled(dims[start:end])


def _settled(value: NDArray[Any]) -> ShapeValue:
    """Return elements that are all integers as such."""
    return value.astype(np.int64) if all(isinstance(d, int | np.integer) for d in value.reshape(-1)) else value
