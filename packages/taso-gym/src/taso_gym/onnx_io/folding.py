"""Computing constants: what depends on no graph input is computed once, when a file is read or written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.errors import ModelError
from taso_gym.graph import Weight
from taso_gym.onnx_io.reference import blank_node, run_opaque
from taso_gym.onnx_io.sparse import SparseWeight
from taso_gym.ops.evaluate import evaluate
from taso_gym.signature import OpaqueOperator, Signature
from taso_gym.tensor import FLOATS, TensorType, ValueType, itemsize_bits, numpy_dtype
from taso_gym.weights import ArrayWeight, FilledWeight

ALWAYS_BYTES = 1 << 20
"""Results up to this size are computed."""
GROWTH = 64
"""A larger result is computed unless it is over this many times its operands: an Expand or Tile stays an operator."""
MOST_FILLED_BYTES = 1 << 26
"""A constant that takes no memory is an operand up to this size: to some operators it is as large as any other."""
_NAMES = """
Abs Add And Cast CastLike Ceil Clip Compress Concat ConstantOfShape CumSum Div Equal Expand EyeLike Flatten Floor
Gather GatherND Greater GreaterOrEqual Less LessOrEqual Max Min Mod Mul Neg NonZero Not Or Range ReduceMax ReduceMin
ReduceProd ReduceSum Reshape Round ScatterElements ScatterND Shape Sign Size Slice Split Sqrt Sub Tile TopK Transpose
Trilu Unsqueeze Where Xor
"""
SHAPE_ARITHMETIC = frozenset(_NAMES.split())
"""Operators that a file computes shapes, masks and indices with; ONNX's reference computes those without an entry in
the operator table, up to `ALWAYS_BYTES`. Not among them is what the reference computes otherwise than onnxruntime:
OneHot as a product, GatherElements of long axes, and Squeeze of an empty list of axes (with others it has an entry)."""
FIRST_OPSET = 7
"""Operators broadcast as they do now from here on; the attributes that say it before are unknown to the reference."""
EXACT = 2.0**53
"""Whole numbers are exact in double up to here."""
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
    if not can_fold(sig, weights, opsets):
        return None
    arrays = [w.array() if w else None for w in weights]
    if _leaves_exact_range(sig, arrays) or _clips_otherwise(sig, arrays):
        return None
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


def can_fold(sig: Signature, weights: Sequence[Weight | None], opsets: Mapping[str, int]) -> bool:
    """Whether an operator on constants is worth computing: known how, and not much larger than its operands."""
    if isinstance(sig.op, OpaqueOperator):
        known = sig.op.domain == "" and sig.op.name in SHAPE_ARITHMETIC and not sig.op.captures
        if not known or opsets.get("", 1) < FIRST_OPSET:
            return False
    if _is_computed_otherwise(sig) or any(isinstance(w, SparseWeight) for w in weights):
        return False
    operands = [(t, w) for t, w in zip(sig.inputs, weights, strict=True) if w and isinstance(t, TensorType)]
    operand_bytes = sum(t.size_bytes for t, w in operands if not isinstance(w, FilledWeight))
    filled_bytes = sum(t.size_bytes for t, w in operands if isinstance(w, FilledWeight))
    sizes = [_size_bytes(t, operand_bytes, sig.op.name) for t in sig.outputs]
    limit = max(ALWAYS_BYTES, 0 if isinstance(sig.op, OpaqueOperator) else GROWTH * operand_bytes)
    return filled_bytes <= max(MOST_FILLED_BYTES, limit) and all(size is not None and size <= limit for size in sizes)


def _is_computed_otherwise(sig: Signature) -> bool:
    """Whether onnxruntime has other results.

    It parses, rounds to 4 bits, takes a scalar for a list, has 0 as the mean of nothing, adds up steps, and puts NaN,
    and what isn't to be sorted, in another order.
    """
    first, result = sig.inputs[:1], sig.outputs[0]
    if not first or not isinstance(first[0], TensorType) or not isinstance(result, TensorType):
        return False
    match sig.op.name:
        case "Cast" | "CastLike":
            return first[0].dtype == "string" or itemsize_bits(result.dtype) < 8
        case "NonZero":
            return first[0].shape == ()
        case "ReduceMean":
            return 0 in (first[0].shape or ())
        case "Range":
            return result.dtype in FLOATS
        case "TopK":
            return first[0].dtype in FLOATS or _is_unsorted(sig)
        case _:
            return False


def _leaves_exact_range(sig: Signature, arrays: Sequence[NDArray[Any] | None]) -> bool:
    """Whether integers may get so large that onnxruntime has other results.

    It reduces them and raises them to powers in double and cuts off at the ends of their type, where NumPy wraps.
    """
    values = arrays[0] if arrays else None
    if values is None or values.dtype.kind not in "iu":
        return False
    sizes = np.abs(values.astype(np.float64))
    with np.errstate(all="ignore"):
        match sig.op.name:
            case "ReduceSum" | "ReduceMean":
                bound = sizes.sum()
            case "ReduceSumSquare" | "ReduceL2":
                bound = (sizes * sizes).sum()
            case "ReduceProd":
                bound = np.maximum(sizes, 1).prod()
            case "Pow" if arrays[1] is not None:
                bound = (sizes ** np.abs(arrays[1].astype(np.float64))).max(initial=0)
            case _:
                return False
    return not bound <= min(EXACT, np.iinfo(values.dtype).max)


def _clips_otherwise(sig: Signature, arrays: Sequence[NDArray[Any] | None]) -> bool:
    """Whether onnxruntime clips floats to something else: infinities though a bound is absent, and never to NaN."""
    values, type_ = arrays[0] if sig.op.name == "Clip" else None, sig.outputs[0]
    if values is None or not isinstance(type_, TensorType) or type_.dtype not in FLOATS:
        return False
    if isinstance(sig.op, OpaqueOperator):
        return True
    bounds = [sig.attr("min"), sig.attr("max")]
    return (None in bounds and bool(np.isinf(values).any())) or any(b is not None and np.isnan(b) for b in bounds)


def _is_unsorted(sig: Signature) -> bool:
    assert isinstance(sig.op, OpaqueOperator)
    return any(a.name == "sorted" and not a.i for a in blank_node(sig.op).attribute)


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
