"""Types, attributes and work of every operator: against onnx.shape_inference, symbols and normal form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from operator_models import LATEST, exported_model, feeds, run_onnxruntime, stated_model
from operator_samples import SAMPLES, Sample

from taso_gym.errors import ModelError, TypeInferenceError
from taso_gym.ops import evaluate
from taso_gym.ops.evaluate import bind_attr
from taso_gym.ops.onnx_form import conforms, from_onnx, to_onnx
from taso_gym.signature import Signature, signature
from taso_gym.tensor import TensorType, bind, dtype_code, symbol

each = pytest.mark.parametrize("sample", SAMPLES, ids=str)
NOT_INFERRED = {"GroupNormalization"}
"""Operators of whose types onnx 1.23 infers nothing."""


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.op.body], ids=str)
def test_inferred_types_are_those_of_the_result(sample: Sample) -> None:
    sig = sample.signature
    results = evaluate(sample.op, dict(sig.attrs), sample.arrays())
    assert [r.shape for r in results] == [t.shape for t in sig.outputs if isinstance(t, TensorType)]


@pytest.mark.parametrize("sample", [s for s in SAMPLES if not s.op.domain and s.key not in NOT_INFERRED], ids=str)
def test_inferred_types_are_those_of_onnx(sample: Sample) -> None:
    model = stated_model(sample)
    names = [o.name for o in model.graph.output]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    found = [o.type.tensor_type for o in inferred.graph.output]
    ours = [(dtype_code(t.dtype), t.shape) for t in sample.signature.outputs if isinstance(t, TensorType)]
    assert [(t.elem_type, tuple(d.dim_value for d in t.shape.dim)) for t in found] == ours


@pytest.mark.parametrize("sample", [s for s in SAMPLES if not s.op.domain], ids=str)
def test_a_checked_model_holds_the_exported_node(sample: Sample) -> None:
    onnx.checker.check_model(exported_model(sample), full_check=True)


@each
def test_normal_form_stays_as_it_is(sample: Sample) -> None:
    sig = sample.signature
    assert signature(sample.op, dict(sig.attrs), sig.inputs) is sig


NEWER_ATTRIBUTES = {"AveragePool": ("dilations", 19), "Reshape": ("allowzero", 14)}
"""Attributes that came after the operator; there the body's meaning with their defaults is older."""


def needs_opset(sample: Sample) -> int:
    """Return the first opset that can state a sample."""
    name, since = NEWER_ATTRIBUTES.get(sample.key, ("", 0))
    return max(sample.op.since, since if name in sample.attrs else 0)


@each
@pytest.mark.parametrize("opset", [11, 13, 18, 21, LATEST])
def test_a_file_gives_back_the_signature(sample: Sample, opset: int) -> None:
    version = 1 if sample.op.domain else opset
    if version < needs_opset(sample):
        with pytest.raises(ModelError, match="expected"):
            to_onnx(sample.signature, version)
        return
    assert opset < LATEST or conforms(sample.signature, version)
    model = exported_model(sample, opset)
    assert imported(model.graph.node[0], sample.signature, version) is sample.signature


def doubled(operand: Any) -> Any:
    """Return an operand of double in the place of one of float."""
    if isinstance(operand, np.ndarray):
        return operand.astype(np.float64) if operand.dtype == np.float32 else operand
    return operand if operand is None or (operand and isinstance(operand[0], str)) else ("double", operand)


@each
def test_operators_of_double_conform_only_where_onnxruntime_has_a_kernel(sample: Sample) -> None:
    sample = replace(sample, operands=tuple(map(doubled, sample.operands)))
    try:
        conforming = conforms(sample.signature, 1 if sample.op.domain else LATEST)
    except TypeInferenceError:
        return  # not an operator of double at all
    if conforming:
        run_onnxruntime(exported_model(sample), feeds(sample))


def imported(node: onnx.NodeProto, sig: Signature, opset: int) -> Signature:
    """Read a node back whose operands are those of a signature."""
    constants = to_onnx(sig, opset).constants
    found = from_onnx(node, [constants.get(i) for i in range(len(node.input))], opset)
    assert found is not None
    types = [sig.inputs[i] if node.input[i] else None for i in found.operands]
    return signature(found.op, found.attrs, types)


@each
def test_work_is_a_count_and_views_do_none(sample: Sample) -> None:
    sig = sample.signature
    flops = sample.op.flops(sig.inputs, sig.outputs, dict(sig.attrs))  # type: ignore[arg-type]
    assert isinstance(flops, int) and flops >= 0
    assert not sample.op.view or flops == 0


def renamed(sample: Sample, dims: Callable[[int], Any]) -> list[TensorType | None]:
    """Return the operand types with every size of 2 or more replaced."""
    shapes = [() if t is None else tuple(1 if d == 1 else dims(d) for d in t.shape or ()) for t in sample.types]  # type: ignore[arg-type]
    return [t if t is None else t._replace(shape=dims) for t, dims in zip(sample.types, shapes, strict=True)]


def bound(sig: Signature, dims: dict[str, int]) -> tuple[Any, Any, Any]:
    """Return attributes, output types and work with symbols replaced."""
    flops = sig.op.flops(sig.inputs, sig.outputs, dict(sig.attrs))  # type: ignore[union-attr, arg-type]
    outputs = tuple(t.bind(dims) for t in sig.outputs if isinstance(t, TensorType))
    return tuple((k, bind_attr(v, dims)) for k, v in sig.attrs), outputs, bind(flops, dims)


@each
def test_symbolic_inference_agrees_with_concrete(sample: Sample) -> None:
    """Equal sizes become one symbol; whatever is inferred over symbols holds for the sample's and for other sizes."""
    try:
        symbolic = signature(sample.op, sample.attrs, renamed(sample, lambda d: symbol(f"d{d}")))
    except TypeInferenceError:
        return
    for factor in (1, 2, 3):
        types = renamed(sample, lambda d, factor=factor: d * factor)
        dims = {f"d{d}": d * factor for t in sample.types for d in (t.shape or () if t else ()) if isinstance(d, int)}
        concrete = signature(sample.op, sample.attrs, types)
        attrs, outputs, flops = bound(concrete, {})
        assert bound(symbolic, dims) == (attrs, outputs, flops)


MOVED = {"Split", "Slice", "Reshape", "Resize", "Squeeze", "Expand", "Tile", "Gather", "Transpose"}
"""Operators that move or cut the first axis, so that a symbolic one may be refused."""


def has_batch(sample: Sample) -> bool:
    """Whether the first operand's first axis is one that the others don't share."""
    first, *others = sample.types
    shared = [d for t in others if t for d in t.shape or ()]
    return bool(first and first.shape and len(first.shape) > 2 and first.shape[0] not in shared)


@pytest.mark.parametrize("sample", [s for s in SAMPLES if has_batch(s) and s.key not in MOVED], ids=str)
def test_a_symbolic_batch_is_taken(sample: Sample) -> None:
    first, *others = sample.types
    assert first and first.shape
    sig = signature(sample.op, sample.attrs, [first._replace(shape=(symbol("N"), *first.shape[1:])), *others])
    assert bound(sig, {"N": first.shape[0]})[1] == sample.signature.outputs  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("sample", "flops"),
    [
        (Sample("MatMul", ((5, 2, 3), (3, 4))), 5 * 2 * 4 * 3 * 2),
        (Sample("Gemm", ((2, 3), (3, 4), (4,)), {"alpha": 0.5}), 2 * 4 * (3 * 2 + 2)),
        (Sample("Einsum", ((2, 3), (3, 4)), {"equation": "ij,jk->ik"}), 2 * 3 * 4 * 2),
        (Sample("Conv", ((1, 4, 5, 5), (6, 2, 3, 3), (6,)), {"group": 2}), 6 * 3 * 3 * (2 * 3 * 3 * 2 + 1)),
        (Sample("ConvTranspose", ((1, 4, 5, 5), (4, 6, 3, 3))), 4 * 5 * 5 * 6 * 3 * 3 * 2),
        (Sample("MaxPool", ((1, 2, 4, 4),), {"kernel_shape": [2, 2], "strides": [2, 2]}), 2 * 2 * 2 * 4),
        (Sample("ReduceMean", ((2, 3, 4),), {"axes": [1]}), 2 * 3 * 4),
        (Sample("Add", ((2, 1), (3,))), 2 * 3),
        (Sample("Transpose", ((2, 3),)), 0),
        (Sample("Attention", ((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 6))), 2 * 3 * 5 * ((4 + 6) * 2 + 6)),
    ],
    ids=lambda v: v.key if isinstance(v, Sample) else "",
)
def test_work_counts_a_multiply_add_as_two(sample: Sample, flops: int) -> None:
    sig = sample.signature
    assert sample.op.flops(sig.inputs, sig.outputs, dict(sig.attrs)) == flops  # type: ignore[arg-type]
