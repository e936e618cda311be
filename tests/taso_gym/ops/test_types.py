"""Types, attributes and work of every operator: against onnx.shape_inference, symbols and normal form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import pytest
from operator_models import LATEST, exported_model, stated_model
from operator_samples import SAMPLES, Sample

from taso_gym.errors import ModelError, TypeInferenceError
from taso_gym.ops import evaluate
from taso_gym.ops.evaluate import bind_attr
from taso_gym.ops.onnx_form import from_onnx, to_onnx
from taso_gym.signature import Signature, signature
from taso_gym.tensor import TensorType, bind, dtype_code, symbol

each = pytest.mark.parametrize("sample", SAMPLES, ids=str)
standard = pytest.mark.parametrize("sample", [s for s in SAMPLES if not s.op.domain], ids=str)


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.op.body], ids=str)
def test_inferred_types_are_those_of_the_result(sample: Sample) -> None:
    sig = sample.signature
    results = evaluate(sample.op, dict(sig.attrs), sample.arrays())
    assert [r.shape for r in results] == [t.shape for t in sig.outputs if isinstance(t, TensorType)]


@standard
def test_inferred_types_are_those_of_onnx(sample: Sample) -> None:
    if sample.key == "GroupNormalization":
        pytest.skip("onnx 1.23 infers nothing for it")
    model = stated_model(sample)
    names = [o.name for o in model.graph.output]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    found = [o.type.tensor_type for o in inferred.graph.output]
    ours = [(dtype_code(t.dtype), t.shape) for t in sample.signature.outputs if isinstance(t, TensorType)]
    assert [(t.elem_type, tuple(d.dim_value for d in t.shape.dim)) for t in found] == ours


@each
def test_a_checked_model_holds_the_exported_node(sample: Sample) -> None:
    if not sample.op.domain:
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
    model = exported_model(sample, opset)
    assert imported(model.graph.node[0], sample.signature, version) is sample.signature


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


NEEDS_STATIC = {"Split", "Slice", "Reshape", "Resize", "Squeeze", "Expand", "Tile", "Gather", "Transpose"}
"""Operators that move or cut the first axis, so that a symbolic one may be refused."""


@each
def test_a_symbolic_batch_is_taken(sample: Sample) -> None:
    """A first axis of the first operand that others don't share may be a symbol."""
    first = sample.types[0]
    shared = [d for t in sample.types[1:] if t for d in t.shape or ()]
    if sample.key in NEEDS_STATIC or not first or len(first.shape or ()) < 3 or first.shape[0] in shared:  # type: ignore[index]
        pytest.skip("no batch of its own")
    types = [first._replace(shape=(symbol("N"), *first.shape[1:])), *sample.types[1:]]  # type: ignore[index]
    batch = {"N": first.shape[0]}  # type: ignore[index]
    assert bound(signature(sample.op, sample.attrs, types), batch)[1] == sample.signature.outputs
