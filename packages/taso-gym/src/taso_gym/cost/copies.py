"""A node that copies, and the node of a model several times: how long a run takes as such, and a node within one.

On a GPU, starting and ending a run takes longer than many nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx import helper

from taso_gym.cost.beside import Model, Serialised, parsed


def copied(model: Model, copies: int) -> Serialised:
    """Return a model of one node with so many more of it, which read the same values and whose results nobody reads.

    Without optimisations onnxruntime runs them all, one after the other.
    """
    proto, weights = parsed(model)
    [node] = proto.graph.node
    for copy in range(copies):
        another = proto.graph.node.add()
        another.CopyFrom(node)
        another.name = f"{node.name} {copy}"
        another.output[:] = [name and f"{name} {copy}" for name in node.output]
    return Serialised(proto.SerializeToString(), weights)


def identity(element_type: int, shape: Sequence[int]) -> bytes:
    """Return a model that copies its input ``x``."""
    node = helper.make_node("Identity", ["x"], ["y"])
    types = [helper.make_tensor_value_info(name, element_type, shape) for name in "xy"]
    graph = helper.make_graph([node], "copy", types[:1], types[1:])
    opset = helper.make_opsetid("", 20)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10).SerializeToString()
