"""A graph becomes a file again: constants computed, names restored, everything else as it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, SparseTensorProto, TensorProto, helper

from taso_gym.graph import Graph, Node, Weight, value_of
from taso_gym.onnx_io.folding import fold
from taso_gym.onnx_io.initializers import Initializer, initializer
from taso_gym.onnx_io.naming import Names
from taso_gym.onnx_io.reference import named_node
from taso_gym.onnx_io.sparse import SparseWeight
from taso_gym.onnx_io.structure import FIRST_IR_WITH_OVERRIDES
from taso_gym.onnx_io.template import begin_model, finish_model, pinned_names
from taso_gym.ops.onnx_form import input_count, to_onnx
from taso_gym.signature import OpaqueOperator
from taso_gym.tensor import ValueType, dtype_code
from taso_gym.weights import FilledWeight, array_weight


@dataclass
class Exported:
    """A file in the making.

    Attributes:
        model: everything but the initializers of the main graph.
        initializers: those.
    """

    model: ModelProto
    initializers: list[Initializer] = field(default_factory=list[Initializer])


def export_model(graph: Graph) -> Exported:
    """Return the file of a graph.

    Raises:
        ModelError: an operator that the file's opset doesn't have, or a name that two values need.
    """
    return _Exporter(graph).run()


class _Exporter:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._folded: dict[int, Weight] = {}
        self._uses_left = {v: len(uses) for v, uses in graph.uses.items()}
        self._exported = Exported(begin_model(graph))
        template = self._exported.model
        self._pinned = pinned_names(template)
        self._declared = {info.name for info in template.graph.input}
        self._names = Names(graph, self._pinned, self._declared.union(i.name for i in template.graph.value_info))
        self._small: dict[str, str] = {}
        self._may_add = template.ir_version >= FIRST_IR_WITH_OVERRIDES
        self._foreign: dict[str, ValueType] = {}

    def run(self) -> Exported:
        """Write leaves, then nodes, each followed by what its outputs are called besides."""
        graph, order = self._graph, self._fold()
        constants = {v: leaf.weight for v, leaf in graph.leaves.items() if leaf.weight}
        used = {v: w for v, w in constants.items() if self._uses_left.get(v) or graph.leaves[v].name in self._pinned}
        used |= {v: w for v, w in self._folded.items() if self._uses_left.get(v)}
        self._names.settle([*graph.info.inputs, *used, *_outputs(graph, order)])
        for value in graph.info.inputs:
            if default := graph.info.defaults.get(value):
                self._constant(self._names.of(value), default)
            self._rename(value)
        for value, weight in used.items():
            for name in (self._names.of(value), *self._names.others(value)):
                self._constant(name, weight)
        for node_id in order:
            self._node(node_id, graph.nodes[node_id])
        initializers = {i.tensor.name for i in self._exported.initializers}
        finish_model(self._exported.model, graph, initializers, self._foreign)
        return self._exported

    def _fold(self) -> list[int]:
        """Compute constants; return the other nodes in order. What only computed nodes need is forgotten at once."""
        order: list[int] = []
        for node_id in self._graph.topological_order():
            node = self._graph.nodes[node_id]
            weights = self._weights(node) if node.sig.const else None
            results = None if weights is None else fold(node.sig, weights, self._graph.info.opsets)
            if results is None:
                order.append(node_id)
                continue
            self._folded.update({value_of(node_id, i): weight for i, weight in enumerate(results)})
            for value in node.inputs:
                if value is not None:
                    self._uses_left[value] -= 1
                    if not self._uses_left[value]:
                        self._folded.pop(value, None)
        return order

    def _weights(self, node: Node) -> list[Weight | None] | None:
        """Return the operands of a constant node, or None where one isn't computed."""
        weights: list[Weight | None] = []
        for value in node.inputs:
            weight = None
            if value is not None:
                leaf = self._graph.leaves.get(value)
                weight = leaf.weight if leaf else self._folded.get(value)
                if weight is None:
                    return None
            weights.append(weight)
        return weights

    def _node(self, node_id: int, node: Node) -> None:
        outputs = [value_of(node_id, i) for i in range(len(node.sig.outputs))]
        names = [self._names.of(v) for v in outputs]
        inputs = ["" if v is None else self._names.of(v) for v in node.inputs]
        op = node.sig.op
        if isinstance(op, OpaqueOperator):
            written = named_node(op, inputs[: len(inputs) - len(op.captures)], names)
        else:
            written = self._from_table(node, inputs, names)
            if op.domain:
                self._foreign.update(zip(names, node.sig.outputs, strict=True))
        written.name = next(filter(None, written.output), "")
        self._exported.model.graph.node.append(written)
        for value in outputs:
            self._rename(value)

    def _from_table(self, node: Node, inputs: list[str], names: list[str]) -> NodeProto:
        op = node.sig.op
        assert not isinstance(op, OpaqueOperator)
        opset = self._graph.info.opsets.get(op.domain, 1 if op.domain else 0)
        written, constants = to_onnx(node.sig, opset)
        taken = {i for i, since in op.inputs_as_attrs.values() if opset >= since}
        operands = iter(inputs)
        for i in range(input_count(node.sig, constants)):
            if i in constants:
                written.input.append(self._small_constant(constants[i], names[0]))
            else:
                written.input.append("" if i in taken else next(operands, ""))
        written.output.extend(names)
        return written

    def _small_constant(self, values: NDArray[Any], user: str) -> str:
        """Return the name of a constant that a node needs for an attribute; equal ones are written once."""
        _, weight = array_weight(values)
        if weight.digest not in self._small:
            self._small[weight.digest] = self._names.fresh(f"{user}_attribute")
            self._constant(self._small[weight.digest], weight)
        return self._small[weight.digest]

    def _rename(self, value: int) -> None:
        for name in self._names.others(value):
            self._add("Identity", [self._names.of(value)], name)

    def _constant(self, name: str, weight: Weight) -> None:
        """Write a constant as what it was in the file: a filled or sparse tensor (1, 2), an initializer (3).

        Before IR version 4 an initializer has to be an input, so a new constant is a node (4).
        """
        graph = self._exported.model.graph
        if isinstance(weight, FilledWeight):  # 1
            shape = self._small_constant(np.array(weight.shape, np.int64), name)
            element = TensorProto(data_type=dtype_code(weight.dtype), dims=[1], raw_data=weight.element)
            self._add("ConstantOfShape", [shape], name, element)
        elif isinstance(weight, SparseWeight):  # 2
            sparse = SparseTensorProto.FromString(weight.proto)
            sparse.values.name = name
            graph.sparse_initializer.append(sparse)
        elif self._may_add or name in self._declared:  # 3
            self._exported.initializers.append(initializer(name, weight))
        else:  # 4
            self._add("Constant", [], name, initializer("", weight).whole())

    def _add(self, op_type: str, inputs: list[str], output: str, value: TensorProto | None = None) -> None:
        node = NodeProto(op_type=op_type, name=output, input=inputs, output=[output])
        if value:
            node.attribute.append(helper.make_attribute("value", value))
        self._exported.model.graph.node.append(node)


def _outputs(graph: Graph, order: Iterable[int]) -> Iterator[int]:
    return (value_of(node_id, i) for node_id in order for i in range(len(graph.nodes[node_id].sig.outputs)))
