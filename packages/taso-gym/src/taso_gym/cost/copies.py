"""The node of a model several times: on a GPU, starting and ending a run takes longer than many nodes."""

from __future__ import annotations

from onnx import ModelProto

from taso_gym.cost.beside import Serialised


def copied(model: bytes | Serialised, copies: int) -> Serialised:
    """Return a model of one node with so many more of it, which read the same values and whose results nobody reads.

    Without optimisations onnxruntime runs them all, one after the other.
    """
    content, weights = model if isinstance(model, Serialised) else Serialised(model, {})
    assert isinstance(content, bytes)
    proto = ModelProto.FromString(content)
    [node] = proto.graph.node
    for copy in range(copies):
        another = proto.graph.node.add()
        another.CopyFrom(node)
        another.name = f"{node.name} {copy}"
        another.output[:] = [name and f"{name} {copy}" for name in node.output]
    return Serialised(proto.SerializeToString(), weights)
