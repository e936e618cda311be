"""Models of one node, for holding operators to other implementations."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from operator_samples import Sample

from taso_gym.ops import MICROSOFT
from taso_gym.ops.onnx_form import input_count, to_onnx
from taso_gym.tensor import dtype_code

LATEST = 23


def exported_model(sample: Sample, opset: int = LATEST) -> onnx.ModelProto:
    """Return the model that the normalised signature is written as."""
    sig = sample.signature
    node, constants = to_onnx(sig, 1 if sig.op.domain else opset)
    names = {i: f"x{i}" for i, t in enumerate(sig.inputs) if t is not None} | {i: f"c{i}" for i in constants}
    node.input.extend(names.get(i, "") for i in range(input_count(sig, constants)))
    return _model(sample, node, {names[i]: v for i, v in constants.items()}, opset)


def stated_model(sample: Sample, opset: int = LATEST) -> onnx.ModelProto:
    """Return the model that a sample's author would write: operands and attributes as they are stated."""
    op = sample.op
    small = {k: i for k, (i, _) in op.inputs_as_attrs.items() if k in sample.attrs}
    constants = {i: _constant(sample.attrs[k], sample) for k, i in small.items()}
    names = {i: f"x{i}" for i, t in enumerate(sample.types) if t is not None} | {i: f"c{i}" for i in constants}
    attrs = {k: v for k, v in sample.attrs.items() if k not in small}
    inputs = [names.get(i, "") for i in range(max(names) + 1)]
    node = helper.make_node(op.name, inputs, [], domain=op.domain, **attrs)
    return _model(sample, node, {names[i]: v for i, v in constants.items()}, opset)


def _constant(value: Any, sample: Sample) -> NDArray[Any]:
    if not isinstance(value, list):
        return np.array(value, sample.arrays()[0].dtype)  # type: ignore[union-attr]
    return np.array(value, np.float32 if any(isinstance(v, float) for v in value) else np.int64)


def _model(sample: Sample, node: onnx.NodeProto, constants: dict[str, NDArray[Any]], opset: int) -> onnx.ModelProto:
    outputs = sample.signature.outputs
    node.output.extend(f"y{i}" for i in range(len(outputs)))
    graph = helper.make_graph(
        [node],
        "one_node",
        [_info(f"x{i}", t) for i, t in enumerate(sample.types) if t is not None],
        [_info(f"y{i}", t) for i, t in enumerate(outputs)],
        [numpy_helper.from_array(v, name) for name, v in constants.items()],
    )
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(MICROSOFT, 1)] * bool(sample.op.domain)
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def _info(name: str, t: Any) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype_code(t.dtype), list(t.shape))


def feeds(sample: Sample) -> dict[str, NDArray[Any]]:
    """Return the operands by name."""
    return {f"x{i}": a for i, a in enumerate(sample.arrays()) if a is not None}


def run_onnxruntime(model: onnx.ModelProto, inputs: dict[str, NDArray[Any]]) -> list[Any]:
    """Run a model on the CPU, without any graph optimisation."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def assert_close(found: NDArray[Any], wanted: NDArray[Any]) -> None:
    """Integers and truth values are equal, float32 to 1e-5 of the result's scale: a few roundings of 6e-8 each."""
    assert found.shape == wanted.shape
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
        return
    scale = max(float(np.max(np.abs(wanted), initial=0)), 1.0)
    tolerance = 1e-3 if wanted.dtype == np.float16 else 1e-5
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=0, atol=tolerance * scale)
