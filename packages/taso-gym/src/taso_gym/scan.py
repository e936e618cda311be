"""A loop over the leading axis of values: ONNX's Scan, whose body is a graph."""

from __future__ import annotations

from onnx import GraphProto, ModelProto, NodeProto, compose, helper

from taso_gym.builder import GraphBuilder
from taso_gym.errors import ModelError
from taso_gym.graph import Graph
from taso_gym.onnx_io import to_model
from taso_gym.onnx_io.scope import Scope
from taso_gym.onnx_io.structure import FIRST_IR_WITH_OVERRIDES
from taso_gym.onnx_io.template import pinned_names
from taso_gym.signature import OpaqueOperator, opaque_signature
from taso_gym.tensor import TensorType

FIRST_OPSET = 9
"""In which Scan is over any axis and without a batch of its own."""


def may_scan(graph: Graph) -> bool:
    """Return whether a file may have loops that hold weights: initializers that aren't inputs, nor named elsewhere."""
    template = ModelProto.FromString(graph.info.template)
    has_room = not graph.info.template or (
        template.ir_version >= FIRST_IR_WITH_OVERRIDES and not pinned_names(template)
    )
    return has_room and graph.info.opsets.get("", 0) >= FIRST_OPSET


def scan_over(body: Graph, name: str) -> tuple[OpaqueOperator, dict[str, int]]:
    """Return a loop over a graph, whose inputs and outputs are tensors of known sizes, and the opsets that it takes.

    Args:
        body: it; has all that it reads.
        name: of the body; goes in front of all names within.

    Raises:
        ModelError: the body is larger than a node may be (2 GB with its weights).
    """
    model = to_model(body)
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    node = _scan(model.graph, name)
    return OpaqueOperator("", "Scan", _written(node), pure=True, context=Scope(model, opsets).context(node)), opsets


def add_scan(builder: GraphBuilder, op: OpaqueOperator, body: Graph, stacked: list[int]) -> tuple[int, ...]:
    """Add a loop to a graph, and return its results.

    Args:
        builder: of the graph.
        op: of `scan_over`.
        body: what it is over.
        stacked: for each input of the body a value that has as many of it along a leading axis; so have the results.
    """
    turns = builder.shape_of(stacked[0])[0]
    outputs = (body.type_of(value) for value in body.outputs)
    types = [TensorType(t.dtype, (turns, *(t.shape or ()))) for t in outputs if isinstance(t, TensorType)]
    return builder.add_signature(opaque_signature(op, tuple(map(builder.type_of, stacked)), tuple(types)), stacked)


def _scan(body: GraphProto, name: str) -> NodeProto:
    """Return a Scan over a graph, as an opaque operator has it: without names, inputs and outputs."""
    inputs, outputs = len(body.input), len(body.output)
    compose.add_prefix_graph(body, f"{name}/", inplace=True)  # names outside aren't hidden
    body.name = name
    node = NodeProto(op_type="Scan", input=[""] * inputs, output=["present"] * outputs)
    node.attribute.extend([helper.make_attribute("body", body), helper.make_attribute("num_scan_inputs", inputs)])
    return node


def _written(node: NodeProto) -> bytes:
    try:
        return node.SerializeToString(deterministic=True)
    except Exception as error:  # protocol buffers have several for what is too large
        raise ModelError(f"expected a network of at most 2 GB for a loop, found a larger one: {error}") from error
