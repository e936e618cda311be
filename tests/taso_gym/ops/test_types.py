"""Types, attributes and work of every operator: against onnx.shape_inference, symbols and normal form."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from operator_models import LATEST, exported_model, feeds, run_onnxruntime, stated_model
from operator_samples import SAMPLES, Sample

from taso_gym.errors import ModelError, TypeInferenceError
from taso_gym.ops import OPERATORS, evaluate
from taso_gym.ops.evaluate import bind_attr
from taso_gym.ops.onnx_form import conforms, from_onnx, to_onnx
from taso_gym.signature import Signature, signature
from taso_gym.symbolic import bind, symbol
from taso_gym.tensor import TensorType, dtype_code

each = pytest.mark.parametrize("sample", SAMPLES, ids=str)
NOT_INFERRED = {"GroupNormalization"}
"""Operators of whose types onnx 1.23 infers nothing."""


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
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


NEWER_ATTRIBUTES = {"AveragePool": ("dilations", 19)}
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


def test_an_infinity_bounds_whole_numbers_as_none_does() -> None:
    """A rule may say 1e999 of an integer's bound."""
    int8 = TensorType("int8", (2,))
    clip = signature(OPERATORS["", "Clip"], {"min": -math.inf, "max": math.inf}, [int8])
    assert (clip.attr("min"), clip.attr("max")) == (-128, 127)
    padded = signature(OPERATORS["", "Pad"], {"pads": (1, 0), "constant_value": math.inf}, [int8])
    assert padded.attr("constant_value") == 127
    truth = signature(OPERATORS["", "Pad"], {"pads": (1, 0), "constant_value": math.inf}, [TensorType("bool", (2,))])
    assert truth.attr("constant_value") == 1
    with pytest.raises(TypeInferenceError, match="expected a number of type int8, found nan"):
        signature(OPERATORS["", "Clip"], {"min": math.nan}, [int8])


@pytest.mark.parametrize(
    ("name", "attrs", "types", "message"),
    [
        ("Pad", {"pads": (1, 1)}, [TensorType("string", (1,))], "numbers or truth values to pad, found string"),
        ("Pad", {"pads": (1, 1)}, [TensorType("complex64", (1,))], "numbers or truth values to pad, found complex64"),
        ("Pad", {"pads": (-5, 4)}, [TensorType("float", (3,))], "negative pads that cut no more than there is"),
        ("Squeeze", {"axes": ()}, [TensorType("float", (1, 3))], "axes, which onnxruntime takes an empty list of"),
        ("Gemm", {"alpha": 0.5}, [TensorType("int32", (1, 1))] * 2, "whole factors of whole numbers"),
    ],
)
def test_what_is_computed_otherwise_elsewhere_is_refused(
    name: str, attrs: dict[str, Any], types: list[TensorType | None], message: str
) -> None:
    with pytest.raises(TypeInferenceError, match=message):
        signature(OPERATORS["", name], attrs, types)


def test_a_scale_of_zero_is_one() -> None:
    """Of ONNX's Attention; com.microsoft's takes 0 for none."""
    image = TensorType("float", (1, 1, 2, 4))
    assert signature(OPERATORS["", "Attention"], {"scale": 0.0}, [image] * 3).attr("scale") == 0
    assert signature(OPERATORS["", "Attention"], {}, [image] * 3).attr("scale") == 0.5


def test_equal_arithmetic_is_equal_work() -> None:
    """Else `--objective flops` would be lowered by another name."""
    x = Sample("Relu", ((2, 5),)).signature.inputs

    def flops(op: Any, attrs: dict[str, Any], types: Any = x) -> int:
        sig = signature(op, attrs, types)
        return op.flops(sig.inputs, sig.outputs, dict(sig.attrs))

    tanh = flops(OPERATORS["", "Gelu"], {"approximate": "tanh"})
    assert tanh == flops(OPERATORS["com.microsoft", "FastGelu"], {}) == 90
    product = [TensorType("float", (2, 3)), TensorType("float", (3, 5))]
    for name in ("Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid"):
        alone = flops(OPERATORS["", "Gemm"], {}, product) + flops(OPERATORS["", name], {})
        assert flops(OPERATORS["com.microsoft", "FusedGemm"], {"activation": name}, product) == alone
    for mode, work in (("nearest", 0), ("linear", 8 * 40)):
        image = [TensorType("float", (1, 1, 2, 5))]
        assert flops(OPERATORS["", "Resize"], {"mode": mode, "scales": (1.0, 1.0, 2.0, 2.0)}, image) == work
