"""What a file gives its nodes to begin with: graph inputs, initializers, and what Constant nodes hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper

from taso_gym.errors import ModelError
from taso_gym.graph import Weight
from taso_gym.onnx_io.inference import INLINE_BYTES
from taso_gym.onnx_io.initializers import type_of
from taso_gym.onnx_io.scope import Scope, describe, domain_of, inner_tensors
from taso_gym.onnx_io.sparse import sparse_weight
from taso_gym.onnx_io.structure import FIRST_IR_WITH_OVERRIDES
from taso_gym.onnx_io.tensors import TensorReader, size_bytes, strings, tensor_type
from taso_gym.onnx_io.types import TypeReader
from taso_gym.onnx_io.wire import Span
from taso_gym.symbolic import Shape
from taso_gym.tensor import TensorType, ValueType
from taso_gym.weights import ArrayWeight, FilledWeight

MOST_INNER_BYTES = 2_000_000_000
"""Protocol buffers end at 2 GiB, and a node is one message."""


class Leaves:
    """Inputs and constants of a file by name.

    Attributes:
        inputs: types of the graph inputs in order.
        weights: the constants.
        defaults: values of inputs that have one: an initializer that is an input too can be overridden by the caller,
            and is no constant. (Before IR version 4 every initializer had to be an input, and none can be.)
    """

    def __init__(self, model: ModelProto, reader: TensorReader, types: TypeReader, spans: Mapping[int, Span]) -> None:
        """Read them.

        Raises:
            ModelError: an initializer isn't as it should be, or a name is defined twice.
        """
        self.inputs: dict[str, ValueType] = {}
        self.weights: dict[str, Weight] = {}
        self.defaults: dict[str, Weight] = {}
        for i, tensor in enumerate(model.graph.initializer):
            self._enter(tensor.name, reader.read(tensor, f"initializer {tensor.name!r}", spans.get(i)))
        for sparse in model.graph.sparse_initializer:
            self._enter(sparse.values.name, sparse_weight(sparse, f"sparse initializer {sparse.values.name!r}"))
        for info in model.graph.input:
            declared = types.read(info.type, info.name)
            if not info.name or info.name in self.inputs:
                raise ModelError(f"expected graph inputs with a name each, found {info.name!r} twice or empty")
            if info.name in self.weights:
                _expect_fit(info.name, type_of(self.weights[info.name]), declared)
                if model.ir_version < FIRST_IR_WITH_OVERRIDES:
                    continue
                self.defaults[info.name] = self.weights.pop(info.name)
            self.inputs[info.name] = declared

    def take_constants(self, nodes: Sequence[NodeProto], reader: TensorReader, scope: Scope) -> list[NodeProto]:
        """Add the values of Constant nodes and return the other nodes."""
        others: list[NodeProto] = []
        for node in nodes:
            if node.op_type != "Constant" or domain_of(node.domain) or scope.function(node):
                others.append(node)
            elif len(node.output) == 1:
                self._enter(node.output[0], constant(node, reader))
        return others

    def _enter(self, name: str, weight: Weight) -> None:
        if not name or name in self.weights or name in self.inputs:
            raise ModelError(f"expected each constant to have a name of its own, found {name!r} twice or empty")
        self.weights[name] = weight


def _expect_fit(name: str, found: TensorType, declared: ValueType) -> None:
    if not (isinstance(declared, TensorType) and declared.dtype == found.dtype and _fits(declared.shape, found.shape)):
        raise ModelError(f"initializer {name!r}: expected {declared} as the graph input of that name, found {found}")


def _fits(declared: Shape | None, found: Shape | None) -> bool:
    if declared is None or found is None or len(declared) != len(found):
        return declared is None
    return all(not isinstance(d, int) or d == f for d, f in zip(declared, found, strict=True))


CONSTANT_KINDS = {
    "value_float": AttributeProto.FLOAT,
    "value_floats": AttributeProto.FLOATS,
    "value_int": AttributeProto.INT,
    "value_ints": AttributeProto.INTS,
    "value_string": AttributeProto.STRING,
    "value_strings": AttributeProto.STRINGS,
}


def constant(node: NodeProto, reader: TensorReader) -> Weight:
    """Return what a Constant node holds.

    Raises:
        ModelError: not exactly one value, or one of another kind than its name says.
    """
    where = describe(node)
    if len(node.attribute) != 1:
        raise ModelError(f"expected one value in {where}, found {len(node.attribute)}")
    attribute = node.attribute[0]
    if attribute.name == "sparse_value":
        return sparse_weight(attribute.sparse_tensor, where)
    if attribute.name == "value" and attribute.HasField("t"):
        return reader.read(attribute.t, where)
    if attribute.name in CONSTANT_KINDS and attribute.type != (kind := CONSTANT_KINDS[attribute.name]):
        found = AttributeProto.AttributeType.Name(attribute.type)
        raise ModelError(
            f"expected {attribute.name} of type {AttributeProto.AttributeType.Name(kind)} in {where}, found {found}"
        )
    if attribute.ref_attr_name:
        raise ModelError(
            f"expected a value in {where}, found a reference to {attribute.ref_attr_name!r} outside a function"
        )
    value = helper.get_attribute_value(attribute)
    match attribute.name:
        case "value_float" | "value_floats":
            return ArrayWeight(np.asarray(value, np.float32), "float")
        case "value_int" | "value_ints":
            return ArrayWeight(np.asarray(value, np.int64), "int64")
        case "value_string":
            return ArrayWeight(strings([value], ()), "string")
        case "value_strings":
            return ArrayWeight(strings(list(value), (len(value),)), "string")
        case _:
            raise ModelError(f"expected a value in {where}, found the attribute {attribute.name!r}")


def filled(node: NodeProto, shape: NDArray[np.int64], reader: TensorReader) -> Weight:
    """Return what a ConstantOfShape node yields for a known shape; a large one takes no memory.

    Raises:
        ModelError: a negative size, or a value that isn't one number.
    """
    where = describe(node)
    dims = tuple(int(d) for d in shape)
    tensors = [a.t for a in node.attribute if a.name == "value"]
    tensor = tensors[0] if tensors else TensorProto(data_type=TensorProto.FLOAT, dims=[1], float_data=[0.0])
    dtype, _ = tensor_type(tensor, where)
    element = reader.read(tensor, where).array()
    if element.size != 1 or any(d < 0 for d in dims):
        raise ModelError(f"expected one number and sizes of 0 or more in {where}, found {element} and {list(dims)}")
    if size_bytes(dtype, dims) > INLINE_BYTES:
        return FilledWeight(element.tobytes(), dtype, dims)
    return ArrayWeight(np.full(dims, element.reshape(-1)[0], element.dtype), dtype)


def with_data(node: NodeProto, reader: TensorReader) -> NodeProto:
    """Return a node whose attributes and subgraphs hold their external data.

    Raises:
        ModelError: they can't be read, or are more than a message can hold.
    """
    outside = [t for t in inner_tensors(node) if t.data_location == TensorProto.EXTERNAL]
    if not outside:
        return node
    size = sum(size_bytes(*tensor_type(t, f"{t.name!r} in {describe(node)}")) for t in outside)
    if size > MOST_INNER_BYTES:
        raise ModelError(
            f"expected at most {MOST_INNER_BYTES} bytes of weights in the subgraphs of a node, found {size} in "
            f"{describe(node)}"
        )
    result = NodeProto()
    result.CopyFrom(node)
    for tensor in inner_tensors(result):
        if tensor.data_location == TensorProto.EXTERNAL:
            tensor.CopyFrom(reader.inlined(tensor, f"{tensor.name!r} in {describe(node)}"))
    return result
