"""A file becomes a graph: every node of it, as an operator of the table or as an opaque one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TypeProto, helper

from taso_gym.builder import GraphBuilder
from taso_gym.errors import ModelError, TypeInferenceError
from taso_gym.graph import Graph
from taso_gym.onnx_io.draft import Draft
from taso_gym.onnx_io.inference import Inference
from taso_gym.onnx_io.leaves import Leaves, filled, with_data
from taso_gym.onnx_io.scope import Scope, describe, domain_of, trains
from taso_gym.onnx_io.shape_values import STATED, ShapeValue, constant_value, shape_values, sizes, stated_sizes
from taso_gym.onnx_io.sparse import SparseWeight
from taso_gym.onnx_io.structure import MOST_OPERANDS, Step, in_order, read_opsets
from taso_gym.onnx_io.template import pinned_names, template_of
from taso_gym.onnx_io.tensors import TensorReader
from taso_gym.onnx_io.text import expect_text
from taso_gym.onnx_io.types import UNKNOWN, TypeReader, element_of
from taso_gym.onnx_io.wire import Span
from taso_gym.ops import OPERATORS
from taso_gym.ops.onnx_form import Imported, from_onnx
from taso_gym.signature import OpaqueOperator, Signature, opaque_signature, signature, strip_absent
from taso_gym.symbolic import Dim, Poly
from taso_gym.tensor import TensorType, ValueType, numpy_dtype
from taso_gym.weights import ArrayWeight, FilledWeight

Operands = tuple[int | None, ...]


def import_model(model: ModelProto, reader: TensorReader, spans: Mapping[int, Span]) -> Graph:
    """Return the graph of a model.

    Args:
        model: the file's content; it isn't changed.
        reader: knows where the data of its tensors are.
        spans: initializers (by index) whose data were left in the file.

    Raises:
        ModelError: it isn't a valid model; the message names the node or value.
    """
    expect_text(model)
    opsets = read_opsets(model)
    scope, types = Scope(model, opsets), TypeReader(model)
    leaves = Leaves(model, reader, types, spans)
    nodes = leaves.take_constants(model.graph.node, reader, scope)
    steps = in_order([with_data(n, reader) for n in nodes], [*leaves.inputs, *leaves.defaults, *leaves.weights])
    graph = _Importer(model, reader, scope, types, leaves).run(steps)
    template = template_of(model)
    hasher = blake2b(template, digest_size=16)
    for step in steps:
        hasher.update(step.node.SerializeToString(deterministic=True))
    hasher.update(repr([(name, w.digest) for name, w in leaves.weights.items()]).encode())
    names = ((v, graph.leaves[v].name) for v in graph.info.inputs)
    info = replace(
        graph.info,
        template=template,
        digest=hasher.hexdigest(),
        defaults={v: leaves.defaults[name] for v, name in names if name in leaves.defaults},
        external=reader.used_external,
    )
    return Graph(graph.nodes, graph.uses, graph.leaves, graph.next_id, graph.hash, info)


class _Importer:
    """Takes the nodes in topological order and knows by name what they have computed so far."""

    def __init__(
        self, model: ModelProto, reader: TensorReader, scope: Scope, types: TypeReader, leaves: Leaves
    ) -> None:
        self._outputs, self._reader, self._scope, self._types, self._leaves = (
            model.graph.output,
            reader,
            scope,
            types,
            leaves,
        )
        self._inference = Inference(model, scope.opsets)
        self._draft = Draft(scope.opsets)
        self._values: dict[str, int] = {name: self._draft.input(name, t) for name, t in leaves.inputs.items()}
        self._pinned = pinned_names(model) & leaves.weights.keys()
        for name, weight in leaves.weights.items():
            enter = self._draft.own_weight if name in self._pinned else self._draft.weight
            self._values[name] = enter(name, weight)
        self._shape_values: dict[int, ShapeValue] = {}
        self._used = {output.name for output in model.graph.output}
        self._inferred: Mapping[str, TypeProto] = {}

    def run(self, steps: Sequence[Step]) -> Graph:
        """Enter all nodes and return the graph."""
        self._used.update(name for step in steps for name in step.reads)
        nodes = [step.node for step in steps]
        self._inferred = self._inference.of_model(nodes, self._leaves.inputs, self._leaves.weights)
        for step in steps:
            _expect_few(max(len(step.reads), len(step.node.output)), describe(step.node))
            self._enter(step)
        outputs: list[tuple[str, int]] = []
        for info in self._outputs:
            if info.name not in self._values:
                raise ModelError(f"expected the graph output {info.name!r} to be defined, found no such value")
            value = self._values[info.name]
            declared, found = self._types.read(info.type, info.name), self._draft.type_of(value)
            if UNKNOWN not in (declared, found) and element_of(declared) != element_of(found):
                raise ModelError(
                    f"graph output {info.name!r}: expected {element_of(declared)} as declared, found {found}"
                )
            outputs.append((info.name, value))
        _expect_few(len(outputs), "graph outputs")
        pinned = [self._values[name] for name in self._pinned]
        return self._draft.build(GraphBuilder(self._scope.opsets), outputs, pinned)

    def _enter(self, step: Step) -> None:
        """Make a node's outputs known: as the values of its inputs (1), as constants (2), or as those of a node (3)."""
        node = step.node
        if self._passes_on(node):  # 1
            self._values[node.output[0]] = self._values[node.input[0]]
            return
        inputs = tuple(self._values[name] if name else None for name in node.input)
        if self._is_standard(node, "ConstantOfShape"):  # 2
            shape = self._shape_value(inputs[0])
            if shape is not None and shape.ndim == 1 and shape.dtype != object:
                self._values[node.output[0]] = self._draft.weight(node.output[0], filled(node, shape, self._reader))
                return
        sig, operands = self._known_or_opaque(step, inputs)  # 3
        names = [name or None for name in node.output][: len(sig.outputs)]
        names += [None] * (len(sig.outputs) - len(names))
        outputs = self._with_shapes(node, sig, operands, self._draft.node(sig, operands, names))
        for name, value in zip(names, outputs, strict=True):
            if name:
                self._values[name] = value
                self._types.note(self._inferred.get(name), self._draft.type_of(value))

    def _is_standard(self, node: NodeProto, *op_types: str) -> bool:
        """Whether a node is one of these operators of ONNX, and not a function of the file that goes by its name."""
        return node.op_type in op_types and not domain_of(node.domain) and not self._scope.function(node)

    def _passes_on(self, node: NodeProto) -> bool:
        """Whether a node's first output is its first input and the others aren't used: Identity, inference Dropout.

        What is stored sparse has to pass a node: onnxruntime takes no such initializer as a graph output.
        """
        if not self._is_standard(node, "Identity", "Dropout") or not node.input[0] or not node.output[0]:
            return False
        constant, opset = self._draft.constant(self._values[node.input[0]]), self._scope.opsets[""]
        if constant and isinstance(constant.weight, SparseWeight):
            return False
        return not trains(node, opset, self._is_false) and self._used.isdisjoint(filter(None, node.output[1:]))

    def _is_false(self, name: str) -> bool:
        constant = self._draft.constant(self._values[name]) if name in self._values else None
        return constant is not None and constant.type.shape == () and not constant.weight.array().any()

    def _known_or_opaque(self, step: Step, inputs: Operands) -> tuple[Signature, Operands]:
        """Return a node's signature and operands, as an operator of the table if it is one and fits it."""
        try:
            return self._from_table(step.node, inputs) or self._opaque(step, inputs, suspect=False)
        except (TypeInferenceError, UnicodeDecodeError):
            return self._opaque(step, inputs, suspect=True)

    def _from_table(self, node: NodeProto, inputs: Operands) -> tuple[Signature, Operands] | None:
        if self._scope.function(node) or node.overload or node.device_configurations:
            return None
        form = from_onnx(node, [self._array(v) for v in inputs], self._scope.opsets[domain_of(node.domain)])
        form = form or self._shaped(node, inputs)
        if form is None:
            return None
        operands = tuple(inputs[i] for i in form.operands)
        sig = signature(form.op, form.attrs, [None if v is None else self._draft.type_of(v) for v in operands])
        return None if any(node.output[len(sig.outputs) :]) else (sig, operands)

    def _array(self, value: int | None) -> NDArray[Any] | None:
        """Return a constant of which attributes may be made: none of them is as long as one that takes no memory."""
        constant = self._draft.constant(value)
        if constant is None or isinstance(constant.weight, SparseWeight | FilledWeight):
            return None
        return constant.weight.array()

    def _shaped(self, node: NodeProto, inputs: Operands) -> Imported | None:
        """Return a Reshape or Expand to a shape that is computed, and known in terms of the symbols."""
        if not self._is_standard(node, "Reshape", "Expand"):
            return None
        op = OPERATORS["", node.op_type]
        shape = self._shape_value(inputs[1]) if len(inputs) > 1 and self._scope.opsets[""] >= op.since else None
        if shape is None or shape.ndim != 1:
            return None
        attrs = {a.name: a.i for a in node.attribute}
        return Imported(op, {**attrs, "shape": tuple(_dim(d) for d in shape)}, (0,))

    def _shape_value(self, value: int | None) -> ShapeValue | None:
        if value in self._shape_values:
            return self._shape_values[value]
        constant = self._draft.constant(value)
        return constant_value(constant.type, constant.weight) if constant else None

    def _with_shapes(self, node: NodeProto, sig: Signature, operands: Operands, outputs: Sequence[int]) -> list[int]:
        """Return the outputs of a node; those of shape arithmetic without symbols are constants.

        Truth values aren't: a condition that becomes constant makes onnxruntime inline branches and refuse what is in
        them.
        """
        if self._is_standard(node, "Shape"):
            attrs = {a.name: a.i for a in node.attribute}
            found = sizes(sig.inputs[0], attrs.get("start", 0), attrs.get("end"))
            known = None if found is None else (found,)
        else:
            known = shape_values(sig, [self._shape_value(v) for v in operands])
        result = list(outputs)
        for i, elements in enumerate(known or ()):
            type_ = sig.outputs[i]
            assert isinstance(type_, TensorType)
            if elements.dtype == object or type_.dtype == "bool":
                self._shape_values[outputs[i]] = elements
            elif not self._draft.constant(outputs[i]):
                weight = ArrayWeight(elements.astype(numpy_dtype(type_.dtype)), type_.dtype)
                result[i] = self._draft.weight(node.output[i], weight)
        return result

    def _opaque(self, step: Step, inputs: Operands, *, suspect: bool) -> tuple[Signature, Operands]:
        """Return the signature and operands of a node that is carried along whole."""
        node = step.node
        blank = NodeProto(domain=domain_of(node.domain), op_type=node.op_type, overload=node.overload)
        blank.attribute.extend(sorted(node.attribute, key=lambda a: a.name))
        blank.device_configurations.extend(node.device_configurations)
        blank.input.extend([""] * len(node.input))
        blank.output.extend("present" if name else "" for name in node.output)
        op = OpaqueOperator(
            domain_of(node.domain),
            node.op_type,
            blank.SerializeToString(deterministic=True),
            self._scope.is_pure(node, self._is_false),
            step.captures,
            self._scope.context(node),
        )
        operands = (*inputs, *(self._values[name] for name in step.captures))
        types = strip_absent([None if v is None else self._draft.type_of(v) for v in operands])
        outputs = self._output_types(step, suspect)
        if self._is_standard(node, *STATED):
            attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.type != a.TENSOR}
            known = list(map(self._shape_value, inputs))
            outputs = (self._types.reshaped(outputs[0], stated_sizes(node.op_type, attrs, types[0], known)),)
        return opaque_signature(op, types, outputs), operands

    def _output_types(self, step: Step, suspect: bool) -> tuple[ValueType, ...]:
        node = step.node
        types = [self._types.adopt(self._inferred.get(name), name) for name in node.output]
        named = [(t, name) for t, name in zip(types, node.output, strict=True) if name]
        if not suspect and not any(self._types.has_unknowns(t, name) for t, name in named):
            return tuple(types)
        given = {name: self._draft.type_of(self._values[name]) for name in step.reads}
        weights = {name: c.weight for name in given if (c := self._draft.constant(self._values[name]))}
        inputs = {name: t for name, t in given.items() if name not in weights}
        found = self._inference.of_node(node, inputs, weights, suspect=suspect)
        names = zip(types, node.output, strict=True)
        return tuple(self._types.refine(t, found.get(name), name, given.values()) for t, name in names)


def _dim(value: Dim | np.integer[Any]) -> Dim:
    return value if isinstance(value, Poly) else int(value)


def _expect_few(count: int, what: str) -> None:
    if count > MOST_OPERANDS:
        raise ModelError(f"expected at most {MOST_OPERANDS} inputs and outputs of a node, found {count} in {what}")
