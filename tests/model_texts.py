"""Small models in ONNX's text form."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from taso_gym.graph import Graph, check
from taso_gym.onnx_io import from_model, to_model
from taso_gym.signature import OpaqueOperator


def parsed(text: str, *, opset: int = 20, ir: int = 9, more: str = "", **weights: Any) -> onnx.ModelProto:
    """Parse a graph (and functions) of these versions; ``weights`` are further initializers."""
    head = f'<ir_version: {ir}, opset_import: ["" : {opset}, "my" : 1, "com.microsoft" : 1]>'
    model = onnx.parser.parse_model(f"{head}\n{text}\n{more}")
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), name) for name, v in weights.items())
    return model


def graph_of(text: str, **options: Any) -> Graph:
    """Parse and import; every invariant is checked, and so is that the digest survives."""
    graph = from_model(parsed(text, **options))
    check(graph)
    again = from_model(to_model(graph))
    check(again)
    assert again.canonical_digest() == graph.canonical_digest()
    return graph


def op_names(graph: Graph) -> list[str]:
    """Return the operators in order, opaque ones in brackets."""
    nodes = (graph.nodes[i] for i in graph.topological_order())
    return [f"[{n.sig.op.name}]" if isinstance(n.sig.op, OpaqueOperator) else n.sig.op.key for n in nodes]


def weight_values(graph: Graph) -> Mapping[str, Any]:
    """Return the constants that the graph uses, by name."""
    return {leaf.name: leaf.weight.array() for v, leaf in graph.leaves.items() if leaf.weight and v in graph.uses}


def run(model: onnx.ModelProto, **feeds: Any) -> list[Any]:
    """Run a model in onnxruntime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)
