"""Between a node of a file and an operator with attributes: small inputs become attributes, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, NodeProto, defs, helper

from taso_gym.errors import ModelError
from taso_gym.ops.operator import OPERATORS, Operator
from taso_gym.tensor import TensorType, numpy_dtype

SCALAR_INPUTS = frozenset({"min", "max", "constant_value"})
"""Inputs taken as attributes that hold one number of the first operand's element type; the others are lists."""

_READABLE = {
    AttributeProto.INT,
    AttributeProto.FLOAT,
    AttributeProto.STRING,
    AttributeProto.INTS,
    AttributeProto.FLOATS,
    AttributeProto.STRINGS,
}


class Imported(NamedTuple):
    """A node of a file as an operator of the table.

    Attributes:
        op: the operator.
        attrs: attributes as the node states them, not normalised; small inputs that shape the result are among them.
        operands: indices of the node's inputs that stay operands (some of which may be absent).
    """

    op: Operator
    attrs: dict[str, Any]
    operands: tuple[int, ...]


class Exported(NamedTuple):
    """An operator as a node of a file.

    Attributes:
        node: without name, inputs and outputs.
        constants: values of the inputs that are attributes of the operator, by input index.
    """

    node: NodeProto
    constants: dict[int, NDArray[Any]]


class Applied(Protocol):
    """What `to_onnx` reads of a `taso_gym.signature.Signature`."""

    @property
    def op(self) -> Any:
        """An `Operator`."""

    @property
    def attrs(self) -> Any:
        """Normalised attributes as pairs."""

    @property
    def inputs(self) -> Any:
        """Types of the operands."""

    @property
    def outputs(self) -> Any:
        """Types of the outputs."""


def from_onnx(node: NodeProto, constants: Sequence[NDArray[Any] | None], opset: int) -> Imported | None:
    """Return a node as an operator of the table, or None where it has to stay opaque.

    That is where the table has no entry for it or only one for later opsets, where it has attributes that the entry
    doesn't know, or where an input that shapes the result isn't constant. Whether the operands fit (their number,
    their types, the number of outputs that are used) is for `taso_gym.signature.signature` and the caller to find.

    Args:
        node: the node.
        constants: value of each input, None where it isn't constant or absent.
        opset: version of the node's domain.
    """
    op = OPERATORS.get(("" if node.domain == "ai.onnx" else node.domain, node.op_type))
    if op is None or opset < op.since:
        return None
    attrs: dict[str, Any] = {}
    for attribute in node.attribute:
        if attribute.name not in op.defaults or attribute.type not in _READABLE or attribute.ref_attr_name:
            return None
        attrs[attribute.name] = _plain(helper.get_attribute_value(attribute))
    taken = {i: name for name, (i, since) in op.inputs_as_attrs.items() if opset >= since}
    for i, name in taken.items():
        if i < len(node.input) and node.input[i]:
            value = constants[i]
            if value is None or name in attrs or (name in SCALAR_INPUTS and value.size != 1):
                return None
            attrs[name] = value.item() if name in SCALAR_INPUTS else tuple(value.reshape(-1).tolist())
    if op.name == "Split" and "split" not in attrs:
        attrs.setdefault("num_outputs", len(node.output))
    return Imported(op, attrs, tuple(i for i in range(len(node.input)) if i not in taken))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return value if isinstance(value, int | float | str) else tuple(_plain(v) for v in value)


def to_onnx(sig: Applied, opset: int) -> Exported:
    """Return an operator as a node for a file of this opset (of the operator's domain).

    Attributes that have their default are left out.

    Raises:
        ModelError: the opset is older than the operator or one of its attributes.
    """
    op: Operator = sig.op
    if opset < op.since:
        raise ModelError(f"expected opset {op.since} or later for {op.key}, found {opset}")
    node = NodeProto(op_type=op.name, domain=op.domain)
    constants: dict[int, NDArray[Any]] = {}
    schema = defs.get_schema(op.name, opset, op.domain) if defs.has(op.name, opset, op.domain) else None
    for name, value in op.export(dict(sig.attrs), sig.inputs, sig.outputs, opset).items():
        index, since = op.inputs_as_attrs.get(name, (-1, 0))
        if value is None or value == op.defaults[name]:
            continue
        if index >= 0 and opset >= since:
            constants[index] = _as_input(name, value, sig.inputs)
            continue
        if schema is not None and name not in schema.attributes:
            raise ModelError(f"expected an opset in which {op.key} has the attribute {name!r}, found {opset}")
        kind: Any = None if schema is None else schema.attributes[name].type
        node.attribute.append(helper.make_attribute(name, value, attr_type=kind and int(kind)))
    return Exported(node, dict(sorted(constants.items())))


NO_DOUBLE = frozenset(
    [
        "Attention",
        "AveragePool",
        "BiasGelu",
        "Conv",
        "ConvTranspose",
        "Elu",
        "Erf",
        "FusedConv",
        "FusedGemm",
        "Gelu",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "HardSigmoid",
        "HardSwish",
        "InstanceNormalization",
        "LRN",
        "LeakyRelu",
        "Mish",
        "MultiHeadAttention",
        "PRelu",
        "Resize",
        "Selu",
        "SkipLayerNormalization",
        "Softplus",
    ]
)
"""Operators, also of com.microsoft, that onnxruntime has no kernel for double of on a CPU."""


def conforms(sig: Applied, opset: int) -> bool:
    """Whether the operands' number and element types are those that the operator has in this opset, and a kernel for.

    Of operators that onnx has no schema of (com.microsoft), as far as is known.
    """
    op: Operator = sig.op
    if op.name in NO_DOUBLE and any(t is not None and t.dtype == "double" for t in sig.inputs):
        return False
    if not defs.has(op.name, opset, op.domain):
        return bool(op.domain)
    least, allowed = _operand_types(op.name, opset, op.domain)
    types: Sequence[TensorType | None] = sig.inputs
    given = zip(types, [*allowed, *[allowed[-1]] * len(types)], strict=False) if allowed else ()
    constants = len([i for i, since in op.inputs_as_attrs.values() if opset >= since])
    return len(types) + constants >= least and all(t is None or f"tensor({t.dtype})" in names for t, names in given)


@cache
def _operand_types(name: str, opset: int, domain: str) -> tuple[int, list[frozenset[str]]]:
    """Return the least number of inputs, and the type strings that each may have."""
    schema: Any = defs.get_schema(name, opset, domain)
    return schema.min_input, [frozenset(i.types) for i in schema.inputs]


def _as_input(name: str, value: Any, inputs: Sequence[TensorType]) -> NDArray[Any]:
    if name in SCALAR_INPUTS:
        return np.array(value, dtype=numpy_dtype(inputs[0].dtype))
    return np.array(value, dtype=np.float32 if any(isinstance(v, float) for v in value) else np.int64)


def input_count(sig: Applied, constants: Mapping[int, object]) -> int:
    """Return how many inputs the exported node has, absent ones between included."""
    return max([len(sig.inputs), *(i + 1 for i in constants)])
