"""What a file says besides its nodes and weights: kept when it is read, written back around the nodes."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from itertools import chain

from onnx import GraphProto, ModelProto, ValueInfoProto, helper

from taso_gym.graph import Graph
from taso_gym.onnx_io.scope import domain_of, inner_nodes
from taso_gym.onnx_io.types import proto_of
from taso_gym.tensor import TensorType, ValueType

GRAPH_CONTENT = ("node", "initializer", "sparse_initializer")


def template_of(model: ModelProto) -> bytes:
    """Return a model without nodes and initializers, serialised."""
    result = ModelProto()
    _copy(model, result, ("graph",))
    _copy(model.graph, result.graph, GRAPH_CONTENT)
    result.graph.SetInParent()
    return result.SerializeToString(deterministic=True)


def _copy(source: ModelProto | GraphProto, target: ModelProto | GraphProto, left_out: tuple[str, ...]) -> None:
    """Copy all fields but some; the large ones are never touched."""
    for field, value in source.ListFields():
        if field.name in left_out:
            continue
        if hasattr(value, "extend"):  # a repeated field
            getattr(target, field.name).extend(value)
        else:
            setattr(target, field.name, value)


def begin_model(graph: Graph) -> ModelProto:
    """Return the model that the graph's nodes and weights are to be entered into."""
    if graph.info.template:
        return ModelProto.FromString(graph.info.template)
    model = ModelProto(producer_name="taso-gym")
    for domain, version in graph.info.opsets.items():
        model.opset_import.add(domain=domain, version=version)
    model.ir_version = helper.find_min_ir_version_for(list(model.opset_import), ignore_unknown=True)
    model.graph.name = "graph"
    for value in graph.info.inputs:
        model.graph.input.append(_value_info(graph, graph.leaves[value].name, value))
    for name, value in zip(graph.info.output_names, graph.outputs, strict=True):
        model.graph.output.append(_value_info(graph, name, value))
    return model


def _value_info(graph: Graph, name: str, value: int) -> ValueInfoProto:
    return ValueInfoProto(name=name, type=proto_of(graph.type_of(value)))


def pinned_names(model: ModelProto) -> set[str]:
    """Return names of initializers that something else than a node refers to: annotations, training information."""
    names = {entry.value for a in model.graph.quantization_annotation for entry in a.quant_parameter_tensor_names}
    names |= {a.tensor_name for a in model.graph.quantization_annotation}
    for training in model.training_info:
        for binding in (*training.initialization_binding, *training.update_binding):
            names |= {binding.key, binding.value}
        names.update(name for node in training.algorithm.node for name in node.input)
    return names


def finish_model(
    model: ModelProto, graph: Graph, initializers: Collection[str], foreign: Mapping[str, ValueType]
) -> None:
    """Make the rest of a model agree with its nodes, which are all there.

    Args:
        model: the model; changed in place.
        graph: where it comes from.
        initializers: names of the initializers that will be added.
        foreign: types that ONNX can't infer, since the operators aren't its own, by name; they are declared, or
            readers would know nothing of what follows either.
    """
    _add_domains(model)
    inputs = {graph.leaves[v].name for v in graph.info.inputs}
    computed = {name for node in model.graph.node for name in node.output}
    for infos, known in ((model.graph.input, inputs.union(initializers)), (model.graph.value_info, computed)):
        for i in reversed(range(len(infos))):
            if infos[i].name not in known:
                del infos[i]
    sparse = {weight.values.name for weight in model.graph.sparse_initializer}
    _drop_annotations(model, inputs.union(initializers, sparse, computed))
    named = {d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim}
    for info, value in zip(model.graph.output, graph.outputs, strict=True):
        type_, kind, tensor = graph.type_of(value), info.type.WhichOneof("value"), info.type.tensor_type
        if kind is None or (kind == "tensor_type" and not tensor.elem_type):
            info.type.CopyFrom(proto_of(type_, named))
        elif isinstance(type_, TensorType) and type_.shape is not None and not tensor.HasField("shape"):
            tensor.shape.CopyFrom(proto_of(type_, named).tensor_type.shape)
    declared = {"", *(info.name for info in (*model.graph.output, *model.graph.value_info))}
    for name, type_ in foreign.items():
        if name not in declared:
            model.graph.value_info.add(name=name).type.CopyFrom(proto_of(type_, named))


def _drop_annotations(model: ModelProto, known: Container[str]) -> None:
    """Drop what is said of values that aren't there any more, behind an Identity for one."""
    annotations = model.graph.quantization_annotation
    for i in reversed(range(len(annotations))):
        if annotations[i].tensor_name not in known:
            del annotations[i]


def _add_domains(model: ModelProto) -> None:
    """Import the domains of operators that rewrites brought in, those in subgraphs, too."""
    known = {domain_of(o.domain) for o in model.opset_import} or {""}  # none: a file older than imports
    for node in chain(model.graph.node, *map(inner_nodes, model.graph.node)):
        if domain_of(node.domain) not in known:
            known.add(domain_of(node.domain))
            model.opset_import.add(domain=node.domain, version=1)
