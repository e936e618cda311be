"""What onnxruntime executes: nodes that take equal time have equal keys."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from taso_gym.cost.executed import executed_nodes
from taso_gym.cost.sessions import Runtime

pytest.importorskip("onnxruntime")


def keys(**attributes: float) -> list[str]:
    """Keys of what is executed for a Gemm of given attributes with a Relu that is fused to it."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8]) for name in "xy")
    nodes = [helper.make_node("Gemm", ["x", "w"], ["v"], **attributes), helper.make_node("Relu", ["v"], ["y"])]
    weight = numpy_helper.from_array(np.ones((8, 8), np.float32), "w")
    graph = helper.make_graph(nodes, "g", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    feeds = {"x": np.ones((1, 8), np.float32)}
    return [node.key for node in executed_nodes(model.SerializeToString(), feeds, Runtime("cpu", 1))]


def test_defaults_that_are_written_down_are_defaults() -> None:
    assert len(keys()) == 1 and keys()[0].startswith("com.microsoft.FusedGemm[")
    assert keys(alpha=1.0, beta=1.0, transA=0, transB=0) == keys()
    assert keys(alpha=2.0) != keys() != keys(transB=1)


def product_keys(**attributes: float) -> list[str]:
    """Keys of what is executed for onnxruntime's own FusedMatMul of given attributes."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 8]) for name in "xy")
    node = helper.make_node("FusedMatMul", ["x", "x"], ["y"], domain="com.microsoft", **attributes)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=opsets, ir_version=10)
    feeds = {"x": np.ones((8, 8), np.float32)}
    return [node.key for node in executed_nodes(model.SerializeToString(), feeds, Runtime("cpu", 1))]


def test_defaults_of_onnxruntimes_own_operators_are_defaults() -> None:
    assert product_keys(alpha=1.0, transA=0, transB=0, transBatchA=0, transBatchB=0) == product_keys()
    assert product_keys(alpha=2.0) != product_keys() != product_keys(transB=1)
