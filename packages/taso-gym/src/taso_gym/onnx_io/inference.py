"""ONNX's own checks and shape inference, on the model without its weights."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence

from onnx import ModelProto, NodeProto, TypeProto, checker, defs, shape_inference

from taso_gym.errors import ModelError, one_line
from taso_gym.graph import Weight
from taso_gym.onnx_io.initializers import initializer, type_of
from taso_gym.onnx_io.scope import describe, domain_of, inner_graphs, subgraphs
from taso_gym.onnx_io.structure import FIRST_IR_WITH_OPSETS, FIRST_IR_WITH_OVERRIDES
from taso_gym.onnx_io.types import proto_of
from taso_gym.tensor import ValueType

INLINE_BYTES = 4096
"""Constants up to this size are given to shape inference with their values: shapes, axes, scales."""

UNKNOWN_OPERAND = re.compile(r"Invalid tensor data type 0|Source/Target type=0")
"""What ONNX says where it knows nothing of an operand's type: that is no contradiction."""
DEADLY = frozenset({("", "RegexFullMatch"), ("ai.onnx.ml", "DictVectorizer"), ("ai.onnx.ml", "LabelEncoder")})
"""Operators whose inference ends the process where nothing is known of their operand, so that they are asked alone."""
LONGEST_SHAPE = 1 << 17
"""ONNX's propagation of shape data takes every vector for a shape and makes an entry (145 bytes) for each element, so
it is left out where a vector is longer."""

FAULTS = (shape_inference.InferenceError, checker.ValidationError, ValueError, RuntimeError)
"""What onnx raises about a model: its own errors, and those that come through from its C++ parts."""

Weights = Mapping[str, Weight]


class Inference:
    """Infers types of a file's values; what it is given besides the nodes are types by name."""

    def __init__(self, model: ModelProto, opsets: Mapping[str, int]) -> None:
        """Take the file; its functions, opset imports and the types it declares for unknown operators are used."""
        self._empty = ModelProto(ir_version=max(model.ir_version, FIRST_IR_WITH_OPSETS))
        for domain, version in opsets.items():
            self._empty.opset_import.add(domain=domain, version=version)
        self._empty.functions.extend(model.functions)
        self._empty.graph.name = "probe"
        self._opsets = opsets
        self._declared = {info.name: info for info in (*model.graph.output, *model.graph.value_info)}

    def of_model(
        self, nodes: Sequence[NodeProto], inputs: Mapping[str, ValueType], weights: Weights
    ) -> dict[str, TypeProto]:
        """Return the type of every value that can be inferred, by name.

        Args:
            nodes: in topological order.
            inputs: types of the graph inputs.
            weights: the constants.

        Raises:
            ModelError: a node isn't as its schema says, or gets types or shapes that contradict.
        """
        probe = self._probe(nodes, inputs, weights)
        self._check(probe)
        _leave_out(probe, DEADLY)
        return _infer(probe, self._expect_fit(probe) or probe)

    def of_node(
        self, node: NodeProto, inputs: Mapping[str, ValueType], weights: Weights, *, suspect: bool
    ) -> dict[str, TypeProto]:
        """Return the types of a node's outputs by name as far as they follow from what is known of its inputs.

        Args:
            node: the node.
            inputs: types of its inputs.
            weights: those of its inputs that are constants.
            suspect: something is wrong with its operands or attributes; it may be the node.

        Raises:
            ModelError: the node is suspect, and its types or shapes contradict.
        """
        probe = self._probe([node], inputs, weights)
        if suspect:
            self._expect_fit(probe)
        return _infer(probe, probe)

    def _expect_fit(self, probe: ModelProto) -> ModelProto | None:
        """Return a model with the types that its nodes have, or None where ONNX can't find out."""
        try:
            return shape_inference.infer_shapes(probe, check_type=True, strict_mode=True)
        except FAULTS as error:
            if not self._is_only_a_body(str(error)) and not UNKNOWN_OPERAND.search(str(error)):
                raise ModelError(f"expected types and shapes that fit, found {one_line(error)}") from error
            return None

    def _probe(self, nodes: Sequence[NodeProto], inputs: Mapping[str, ValueType], weights: Weights) -> ModelProto:
        """Return a model without outputs, whose larger weights are inputs."""
        probe = ModelProto()
        probe.CopyFrom(self._empty)
        graph = probe.graph
        graph.node.extend(nodes)
        for node in graph.node:
            node.domain = domain_of(node.domain)  # the checker knows no other name for it
        for name, type_ in inputs.items():
            graph.input.add(name=name).type.CopyFrom(proto_of(type_))
        for name, weight in weights.items():
            type_ = type_of(weight)
            is_small = type_.size_bytes <= INLINE_BYTES
            if is_small:
                graph.initializer.append(initializer(name, weight).whole())
            if not is_small or probe.ir_version < FIRST_IR_WITH_OVERRIDES:
                graph.input.add(name=name).type.CopyFrom(proto_of(type_))
        for node in nodes:
            if not _has_schema(node):
                graph.value_info.extend(self._declared[name] for name in node.output if name in self._declared)
        return probe

    def _check(self, probe: ModelProto) -> None:
        """Hold every node to its schema.

        A whole model is checked at once; only one that fails is looked at node by node, since onnxruntime runs
        operators that ONNX no longer has a schema for.
        """
        try:
            checker.check_model(probe)  # pyright: ignore[reportUnknownMemberType]
        except checker.ValidationError:
            context = checker.C.CheckerContext()
            context.ir_version, context.opset_imports = probe.ir_version, dict(self._opsets)
            for node in probe.graph.node:
                if _has_schema(node) and not subgraphs(node):
                    _check_node(node, context)
        except ValueError as error:  # Python's reader takes what that of C++, and so any runtime, doesn't
            raise ModelError(f"expected a model that ONNX itself can read, found: {one_line(error)}") from error

    def _is_only_a_body(self, message: str) -> bool:
        """Whether inference failed in an operator that ONNX defines by others: it can't cope with all of those."""
        found = re.search(r"op_type:(\w+)", message)
        if not found or not defs.has(found[1]):
            return False
        return not defs.get_schema(found[1], self._opsets.get("", 1)).has_type_and_shape_inference_function


def _leave_out(probe: ModelProto, operators: Container[tuple[str, str]]) -> None:
    kept = [node for node in probe.graph.node if (domain_of(node.domain), node.op_type) not in operators]
    if len(kept) < len(probe.graph.node):
        del probe.graph.node[:]
        probe.graph.node.extend(kept)


def _infer(probe: ModelProto, typed: ModelProto) -> dict[str, TypeProto]:
    """Return the types of all values by name; ``typed`` has those that are known already."""
    try:
        inferred = shape_inference.infer_shapes(probe, data_prop=not _has_long_vectors(typed))
    except FAULTS as error:
        raise ModelError(f"expected types and shapes that fit, found {one_line(error)}") from error
    return {info.name: info.type for info in inferred.graph.value_info}


def _has_long_vectors(model: ModelProto) -> bool:
    graphs = [model.graph, *(inner for node in model.graph.node for inner in inner_graphs(node))]
    infos = (info for graph in graphs for info in (*graph.input, *graph.value_info))
    shapes = (info.type.tensor_type.shape.dim for info in infos)
    return any(len(dims) == 1 and dims[0].dim_value > LONGEST_SHAPE for dims in shapes)


def _has_schema(node: NodeProto) -> bool:
    return defs.has(node.op_type, domain=domain_of(node.domain))


def _check_node(node: NodeProto, context: checker.C.CheckerContext) -> None:
    try:
        checker.check_node(node, context)
    except checker.ValidationError as error:
        raise ModelError(f"expected {describe(node)} as its schema says, found {one_line(error)}") from error
