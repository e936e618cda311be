"""Feature rows of nodes and edges, computed once for each kind of node or edge and gathered in every step.

A node's row depends on its signature and context (`CostModel.context`), its number of consumers and whether it is a
graph output; an edge's on the type it carries and the ports that it joins. Few kinds occur, so an observer holds row
numbers and one `take` makes an array.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import log2, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from taso_gym.cost.dims import Dims, size_bytes
from taso_gym.cost_model import Cost, CostModel
from taso_gym.ops import OPERATORS
from taso_gym.signature import OpaqueOperator, Signature
from taso_gym.tensor import TensorType, ValueType, itemsize_bits

OPERATOR_NUMBERS = {key: i + 2 for i, key in enumerate(sorted(OPERATORS))}
"""(domain, op type) -> number in column 0 of ``nodes``; 0 is a graph input, 1 an operator without an entry."""

FAMILIES: dict[str, str] = {
    "input": "",
    "arithmetic": "Add Sub Mul Div Pow Neg Min Max And Or Not Equal IsNaN Less Greater Where Sum",
    "unary": "Sqrt Exp Log Erf Abs Reciprocal Floor Ceil Sign Sin Cos Cast",
    "activation": (
        "Relu LeakyRelu PRelu Sigmoid Tanh Gelu Clip HardSigmoid HardSwish Mish Elu Selu Softplus "
        "QuickGelu FastGelu BiasGelu"
    ),
    "matmul": "MatMul Gemm Einsum FusedMatMul FusedGemm Attention MultiHeadAttention",
    "convolution": "Conv ConvTranspose FusedConv",
    "pooling": "AveragePool MaxPool GlobalAveragePool GlobalMaxPool",
    "normalization": (
        "BatchNormalization LayerNormalization InstanceNormalization GroupNormalization RMSNormalization "
        "LpNormalization LRN Softmax LogSoftmax SkipLayerNormalization"
    ),
    "reduction": "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL2 ReduceSumSquare",
    "movement": "Concat Split Slice Transpose Expand Gather Pad Tile Resize DepthToSpace SpaceToDepth",
    "view": "Reshape Flatten Squeeze Unsqueeze Identity",
    "other": "",
}
"""Family -> op types in it, of any domain; the rest are "other"."""

_FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names.split()}


def family_of(sig: Signature) -> str:
    """Return the family of an operator."""
    return _FAMILY_OF.get(sig.op.name, "other")


class Feature(NamedTuple):
    """A column of a feature array.

    Attributes:
        name, meaning: for people.
        high: largest value; the smallest is 0.
    """

    name: str
    meaning: str
    high: float = 1.0


NODE_FEATURES: tuple[Feature, ...] = (
    Feature("operator", "number of the operator (`OPERATOR_NUMBERS`): a category", len(OPERATOR_NUMBERS) + 1),
    *(Feature(f"is_{family}", f"1 if the operator's family is {family}") for family in FAMILIES),
    Feature("rank", "rank of the first output / 8"),
    *(
        Feature(f"dim_{i}", f"log2(1 + dimension {i} of the first output) / 24, 0 if there is none")
        for i in range(-4, 0)
    ),
    Feature("elements", "log2(1 + elements of all outputs) / 40"),
    Feature("flops", "log2(1 + floating-point operations) / 50"),
    Feature("bytes_moved", "log2(1 + bytes read and written) / 50"),
    Feature("time", "log2(1 + run time in picoseconds) / 50"),
    Feature("time_share", "run time / run time of the start graph, at most 1"),
    Feature("const_inputs", "part of the inputs that is constant"),
    Feature("const_bytes", "log2(1 + bytes of the constant inputs) / 50"),
    Feature("inputs", "log2(1 + number of inputs) / 8"),
    Feature("consumers", "log2(1 + number of uses by operators) / 8"),
    Feature("is_output", "1 if an output is a graph output"),
    Feature("kernel", "log2(elements of the spatial window) / 12, for convolution and pooling"),
    Feature("stride", "log2(product of the strides) / 12"),
    Feature("groups", "log2(groups of a convolution) / 12"),
    Feature("element_bits", "bits of an element of the first output / 64"),
)
"""Columns of ``nodes``."""

EDGE_FEATURES: tuple[Feature, ...] = (
    Feature("input", "log2(1 + input of the consumer) / 8"),
    Feature("output", "log2(1 + output of the producer) / 8"),
    Feature("rank", "rank / 8"),
    *(Feature(f"dim_{i}", f"log2(1 + dimension {i}) / 24, 0 if there is none") for i in range(-4, 0)),
    Feature("elements", "log2(1 + elements) / 40"),
    Feature("element_bits", "bits of an element / 64"),
)
"""Columns of ``edge_features``."""


def highs(features: Sequence[Feature]) -> NDArray[np.float32]:
    """Return the upper bounds of columns, (F,)."""
    return np.array([f.high for f in features], np.float32)


@dataclass(frozen=True)
class Scale:
    """What features are relative to.

    Attributes:
        cost: the cost model.
        dims: values of symbolic dimensions.
        start: cost of the start graph.
    """

    cost: CostModel
    dims: Dims
    start: Cost


class FeatureTable:
    """Rows of one kind, numbered in the order in which they are first asked for; row 0 is the padding, all zeros."""

    def __init__(self, features: Sequence[Feature]) -> None:
        """Begin with the padding row alone; room is doubled when it runs out."""
        self._high = highs(features)
        self._rows = np.zeros((64, len(features)), np.float32)
        self._numbers: dict[Any, int] = {}

    def __len__(self) -> int:
        """Number of rows, the padding row among them."""
        return len(self._numbers) + 1

    def find(self, key: Any) -> int | None:
        """Return the number of a key's row, or None."""
        return self._numbers.get(key)

    def add(self, key: Any, row: Sequence[float]) -> int:
        """Number a new row; its values are cut to the columns' bounds."""
        number = len(self)
        if number == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[number] = np.clip(np.array(row, np.float32), 0.0, self._high)
        self._numbers[key] = number
        return number

    def take(self, numbers: NDArray[np.int32], out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """Return the rows of these numbers as a fresh array, or write them to ``out``."""
        return self._rows.take(numbers, axis=0, out=out, mode="clip")


class Features:
    """The two tables of one start graph; shared by all that play it, since rows are only ever added."""

    def __init__(self, scale: Scale) -> None:
        """Begin with empty tables."""
        self.scale = scale
        self.nodes = FeatureTable(NODE_FEATURES)
        self.edges = FeatureTable(EDGE_FEATURES)

    def node(self, kind: Signature | ValueType, context: Hashable, consumers: int, is_output: bool) -> int:
        """Return the row number of an operator (by signature and context) or graph input (by type)."""
        key = (kind, context, consumers, is_output)
        found = self.nodes.find(key)
        return self.nodes.add(key, _node_row(*key, self.scale)) if found is None else found

    def edge(self, type_: ValueType, output: int, input_: int) -> int:
        """Return the row number of an edge."""
        key = (type_, output, input_)
        found = self.edges.find(key)
        return self.edges.add(key, _edge_row(type_, output, input_, self.scale)) if found is None else found


def _node_row(
    kind: Signature | ValueType, context: Hashable, consumers: int, is_output: bool, scale: Scale
) -> list[float]:
    if isinstance(kind, Signature):
        number = 1 if isinstance(kind.op, OpaqueOperator) else OPERATOR_NUMBERS[kind.op.domain, kind.op.name]
        family = family_of(kind)
        outputs, inputs = kind.outputs, kind.inputs
        work, window = _work(kind, context, scale), _window(kind, family, scale.dims)
    else:
        number, family = 0, "input"
        outputs, inputs = (kind,), ()
        work, window = (0.0,) * 4, (0.0,) * 3
    sizes = [_sizes(t) for t in scale.dims.bind(outputs)]
    constants = [t for t in scale.dims.bind(inputs) if t is not None and t.const]
    return [
        float(number),
        *(float(family == f) for f in FAMILIES),
        *_shape_row(sizes[0] if sizes else []),
        log2(1 + sum(map(prod, sizes))) / 40,
        *work,
        len(constants) / max(len(inputs), 1),
        log2(1 + sum(map(size_bytes, constants))) / 50,
        log2(1 + len(inputs)) / 8,
        log2(1 + consumers) / 8,
        float(is_output),
        *window,
        _bits(outputs[0]) if outputs else 0.0,
    ]


def _edge_row(type_: ValueType, output: int, input_: int, scale: Scale) -> list[float]:
    sizes = _sizes(scale.dims.bind([type_])[0])
    ports = (log2(1 + input_) / 8, log2(1 + output) / 8)
    return [*ports, *_shape_row(sizes), log2(1 + prod(sizes)) / 40, _bits(type_)]


def _sizes(type_: ValueType | None) -> list[int]:
    """Return the dimensions of a bound type; none for a scalar, and a 0 for what has no known rank."""
    if not isinstance(type_, TensorType) or type_.shape is None:
        return [0]
    return [d for d in type_.shape if isinstance(d, int)]


def _shape_row(sizes: list[int]) -> list[float]:
    """Return rank and last four dimensions."""
    last = [log2(1 + d) / 24 for d in sizes[-4:]]
    return [len(sizes) / 8, *[0.0] * (4 - len(last)), *last]


def _bits(type_: ValueType) -> float:
    return itemsize_bits(type_.dtype) / 64 if isinstance(type_, TensorType) else 0.0


def _work(sig: Signature, context: Hashable, scale: Scale) -> tuple[float, ...]:
    """Return FLOPs, bytes and run time, and its share of the start graph's."""
    cost = scale.cost.node(sig, context)
    logs = (log2(1 + x) / 50 for x in (cost.flops, cost.bytes_moved, cost.time_ps))
    return (*logs, cost.time_ps / max(scale.start.time_ps, 1))


def _window(sig: Signature, family: str, dims: Dims) -> tuple[float, ...]:
    """Return spatial window, strides and groups of convolution and pooling."""
    attrs = dict(sig.attrs)
    kernel: Sequence[int] = attrs.get("kernel_shape") or ()
    if family == "convolution" and len(sig.inputs) > 1:
        kernel = _sizes(dims.bind(sig.inputs)[1])[2:]
    numbers = (prod(kernel), prod(attrs.get("strides") or ()), attrs.get("group", 1))
    return tuple(log2(max(n, 1)) / 12 for n in numbers)
