"""Computing constants: what depends on no graph input is computed once, when a file is read or written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.errors import ModelError
from taso_gym.graph import Weight
from taso_gym.onnx_io.reference import run_opaque
from taso_gym.onnx_io.sparse import SparseWeight
from taso_gym.ops.evaluate import evaluate
from taso_gym.signature import OpaqueOperator, Signature
from taso_gym.tensor import TensorType, ValueType, numpy_dtype
from taso_gym.weights import ArrayWeight, FilledWeight

ALWAYS_BYTES = 1 << 20
"""Results up to this size are computed."""
GROWTH = 64
"""A larger result is computed unless it is over this many times its operands: an Expand or Tile stays an operator."""
_NAMES = """
Abs Add And Cast CastLike Ceil Clip Compress Concat ConstantOfShape CumSum Div Equal Expand EyeLike Flatten Floor
Gather GatherElements GatherND Greater GreaterOrEqual Less LessOrEqual Max Min Mod Mul Neg NonZero Not OneHot Or
Range ReduceMax ReduceMin ReduceProd ReduceSum Reshape Round ScatterElements ScatterND Shape Sign Size Slice Split
Sqrt Squeeze Sub Tile TopK Transpose Trilu Unsqueeze Where Xor
"""
SHAPE_ARITHMETIC = frozenset(_NAMES.split())
"""Operators that a file computes shapes, masks and indices with; ONNX's reference computes those without an entry in
the operator table, up to `ALWAYS_BYTES`."""
BOUNDED = frozenset({"NonZero", "Compress"})
MOST_PER_BYTE = 64
"""The size of these depends on the data; it is at most the operand's rank (below 8) times 8 bytes for each element."""


UNFIT = (ModelError, ArithmeticError, LookupError, TypeError, ValueError)
"""What operators raise about operands that they can't be computed on."""


def fold(sig: Signature, weights: Sequence[Weight | None], opsets: Mapping[str, int]) -> list[Weight] | None:
    """Return the outputs of a pure operator on constants, or None where it is better left.

    An operator that fails on its operands is left, too: that is for the runtime to report. So is one whose results
    aren't as inferred: onnx's reference has texts of numbers in another type, and writes them otherwise.

    Args:
        sig: its signature.
        weights: its operands; None where an optional one is absent.
        opsets: opset imports of the file.
    """
    if not can_fold(sig, weights):
        return None
    arrays = [w.array() if w else None for w in weights]
    try:
        if isinstance(sig.op, OpaqueOperator):
            values = run_opaque(sig.op, arrays, opsets)
        else:
            values = evaluate(sig.op, dict(sig.attrs), arrays)
    except UNFIT:
        return None
    found: list[Weight] = []
    for type_, value in zip(sig.outputs, values, strict=True):
        weight = _constant(type_, np.asarray(value))
        if weight is None:
            return None
        found.append(weight)
    return found


def can_fold(sig: Signature, weights: Sequence[Weight | None]) -> bool:
    """Whether an operator on constants is worth computing: known how, and not much larger than its operands."""
    if isinstance(sig.op, OpaqueOperator):
        known = sig.op.domain == "" and sig.op.name in SHAPE_ARITHMETIC and not sig.op.captures
    else:
        known = sig.op.body is not None
    stored = [t for t, w in zip(sig.inputs, weights, strict=True) if w and not isinstance(w, FilledWeight)]
    if not known or any(isinstance(w, SparseWeight) for w in weights):
        return False
    operand_bytes = sum(t.size_bytes for t in stored if isinstance(t, TensorType))
    sizes = [_size_bytes(t, operand_bytes, sig.op.name) for t in sig.outputs]
    limit = max(ALWAYS_BYTES, 0 if isinstance(sig.op, OpaqueOperator) else GROWTH * operand_bytes)
    return all(size is not None and size <= limit for size in sizes)


def _size_bytes(t: ValueType, operand_bytes: int, op_type: str) -> int | None:
    """Return the most bytes that a result can have, or None where that isn't known."""
    if not isinstance(t, TensorType):
        return None
    if t.is_static:
        return t.size_bytes
    return MOST_PER_BYTE * operand_bytes if op_type in BOUNDED else None


def _constant(type_: ValueType, value: NDArray[Any]) -> Weight | None:
    """Return a computed value as a weight, or None where it isn't of the type that was inferred."""
    assert isinstance(type_, TensorType), f"an operator with a result of type {type_} was computed"
    fits = value.dtype == numpy_dtype(type_.dtype) and (not type_.is_static or value.shape == type_.shape)
    return ArrayWeight(value, type_.dtype) if fits else None
