"""What onnxruntime executes: nodes that take equal time have equal keys."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from taso_gym.cost.executed import executed_nodes
from taso_gym.cost.sessions import Runtime

pytest.importorskip("onnxruntime")


def keys(*nodes: NodeProto) -> list[str]:
    """Keys of what is executed for nodes that make y of x."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 8]) for name in "xy")
    weight = numpy_helper.from_array(np.ones((8, 8), np.float32), "w")
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "g", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    feeds = {"x": np.ones((8, 8), np.float32)}
    return [node.key for node in executed_nodes(model.SerializeToString(), feeds, Runtime("cpu", 1))]


def gemm(**attributes: float) -> list[str]:
    """Keys of a Gemm of given attributes with a Relu that is fused to it."""
    return keys(helper.make_node("Gemm", ["x", "w"], ["v"], **attributes), helper.make_node("Relu", ["v"], ["y"]))


def product(**attributes: float) -> list[str]:
    """Keys of onnxruntime's own FusedMatMul of given attributes."""
    return keys(helper.make_node("FusedMatMul", ["x", "x"], ["y"], domain="com.microsoft", **attributes))


def test_defaults_that_are_written_down_are_defaults() -> None:
    assert len(gemm()) == 1 and gemm()[0].startswith("com.microsoft.FusedGemm[")
    assert gemm(alpha=1.0, beta=1.0, transA=0, transB=0) == gemm()
    assert gemm(alpha=2.0) != gemm() != gemm(transB=1)


def test_defaults_of_onnxruntimes_own_operators_are_defaults() -> None:
    assert product(alpha=1.0, transA=0, transB=0, transBatchA=0, transBatchB=0) == product()
    assert product(alpha=2.0) != product() != product(transB=1)
