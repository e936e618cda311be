"""What onnxruntime executes: nodes that take equal time have equal keys."""

from __future__ import annotations

import numpy as np
import pytest
from cost_graphs import mlp, weight
from onnx import NodeProto, TensorProto, helper, numpy_helper

from taso_gym.builder import GraphBuilder
from taso_gym.cost import beside
from taso_gym.cost.dims import Dims
from taso_gym.cost.executed import Executed, executed_in, executed_nodes
from taso_gym.cost.node_keys import operator_of, shapes_of
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.runtime import Runtime
from taso_gym.cost.small_model import SmallModel
from taso_gym.graph import Graph
from taso_gym.tensor import TensorType

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


def convolution() -> Graph:
    """A convolution whose 4 MiB of weights onnxruntime puts into blocks."""
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (1, 512, 4, 4)))
    b.output("y", b.add("Conv", x, weight(b, "w", 256, 512, 3, 3), pads=[1, 1, 1, 1]))
    return b.build()


def executed(graph: Graph, runtime: Runtime) -> list[Executed]:
    """What is executed for the regions of a graph."""
    regions = OnnxRuntimeCost(start=graph).regions(graph)
    return [node for region in regions for node in executed_in(SmallModel(region, Dims()), runtime)]


@pytest.mark.parametrize("graph", [mlp(4, 1024), convolution()], ids=["product", "convolution"])
def test_large_weights_are_beside_models_that_are_the_same(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime("cpu", 1)
    apart = executed(graph, runtime)
    monkeypatch.setattr(beside, "LARGE_BYTES", 1 << 40)
    within = executed(graph, runtime)
    assert [node.key for node in apart] == [node.key for node in within]
    ((large, held),) = [pair for pair in zip(apart, within, strict=True) if pair[0].model.weights]
    assert not held.model.weights
    assert len(held.model.content) > 1 << 20 > 100 * len(large.model.content)
    (value,) = large.model.weights.values()
    assert value.tensor_size_in_bytes() > 1 << 20 and value.data_ptr() % 64 == 0
    assert runtime.time(large.model, large.feeds) > 0


def test_operands_that_are_the_same_are_said_to_be() -> None:
    """Reading one value twice takes less than reading two."""
    relu = helper.make_node("Relu", ["x"], ["v"])
    squared = keys(relu, helper.make_node("Mul", ["v", "v"], ["y"]))[-1]
    assert squared == "Mul-14[](float[8, 8], float[8, 8]=0)" and shapes_of(squared) == [(False, [8, 8])] * 2
    assert keys(relu, helper.make_node("Mul", ["v", "x"], ["y"]))[-1] == "Mul-14[](float[8, 8], float[8, 8])"


def test_outputs_besides_the_first_are_said() -> None:
    """A pool that says where the largest values are takes longer."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
    found: list[str] = []
    for outputs in (["y"], ["y", "i"]):
        node = helper.make_node("MaxPool", ["x"], outputs, kernel_shape=[2, 2])
        types = zip(outputs, (TensorProto.FLOAT, TensorProto.INT64), strict=False)
        made = [helper.make_tensor_value_info(name, dtype, None) for name, dtype in types]
        opsets = [helper.make_opsetid("", 20)]
        model = helper.make_model(helper.make_graph([node], "g", [x], made), opset_imports=opsets, ir_version=10)
        feeds = {"x": np.ones((1, 3, 8, 8), np.float32)}
        found += [node.key for node in executed_nodes(model.SerializeToString(), feeds, Runtime("cpu", 1))]
    first, both = found
    assert first.endswith("(float[1, 3, 8, 8])") and both == f"{first} makes 0, 1"
    assert shapes_of(both) == shapes_of(first) == [(False, [1, 3, 8, 8])] and operator_of(both) == "MaxPool"
