"""Random inputs that a model can be expected to run on: token ids within the embedding, masks of 0 and 1, images."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TypeProto

from taso_gym.cost.dims import with_sums
from taso_gym.equivalence.compare import Value
from taso_gym.errors import EquivalenceError
from taso_gym.graph import SINK, Graph, Node, output_index, producer_of, value_of
from taso_gym.signature import OpaqueOperator
from taso_gym.symbolic import Dim, Poly, bind
from taso_gym.tensor import FLOATS, OtherType, TensorType, ValueType, dtype_name, numpy_dtype

PASSES_ON = frozenset(
    ("Cast", "Clip", "Concat", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose")
) | {"Unsqueeze"}
"""Operators whose outputs hold elements of their inputs."""
SEQUENCE_LENGTH = 2
MOST_ELEMENTS = 1 << 30
"""Larger inputs aren't drawn."""
WORDS = ("", "a", "Zebra", "größer", "10")


class Sizes(NamedTuple):
    """Sizes for the open dimensions of one draw: on the leading axis, on a spatial axis of an image, on any other.

    ``binary``: integers without a known bound are 0 or 1, else small ones of both signs.
    """

    leading: int
    spatial: int
    other: int
    binary: bool


ROUNDS: tuple[tuple[Sizes, ...], ...] = (
    (Sizes(1, 64, 8, False), Sizes(2, 96, 5, False), Sizes(3, 32, 16, False)),
    (Sizes(1, 64, 8, True), Sizes(2, 96, 5, True), Sizes(3, 32, 16, True)),
    (Sizes(1, 224, 128, True), Sizes(1, 256, 64, True), Sizes(2, 320, 32, True)),
    (Sizes(1, 299, 1, True),),
)
"""What is tried, one round after the other, until the first model runs."""


@dataclass(frozen=True)
class InputKind:
    """What an input is for, as far as the graph shows.

    Attributes:
        name, type: of the input.
        bound: its elements index an axis of this size, or None.
        is_mask: integers that are only converted to floats.
    """

    name: str
    type: ValueType
    bound: int | None = None
    is_mask: bool = False


def input_kinds(graph: Graph) -> list[InputKind]:
    """Return the inputs that a caller has to give, in order."""
    return [
        kind_of(graph, value, graph.leaves[value].name)
        for value in graph.info.inputs
        if value not in graph.info.defaults
    ]


def kind_of(graph: Graph, value: int, name: str) -> InputKind:
    """Return what a value is for, found by following it to where it indexes something."""
    type_ = graph.type_of(value)
    if not isinstance(type_, TensorType) or numpy_dtype(type_.dtype).kind not in "iu":
        return InputKind(name, type_)
    bounds: list[int] = []
    is_mask = False
    for node, index in _readers(graph, value):
        if node.sig.op.name in ("Gather", "GatherElements") and index == 1:
            data, axis = node.sig.inputs[0], _axis(node)
            if isinstance(data, TensorType) and data.shape and isinstance(size := data.shape[axis], int):
                bounds.append(size)
        elif node.sig.op.name == "Cast" and isinstance(result := node.sig.outputs[0], TensorType):
            is_mask |= numpy_dtype(result.dtype).kind not in "iu"
    return InputKind(name, type_, min(bounds, default=None), is_mask)


def _readers(graph: Graph, value: int) -> Iterator[tuple[Node, int]]:
    """Yield the nodes (and at which input) that read the elements of a value, itself or passed on."""
    waiting, seen = [value], {value}
    while waiting:
        for use in graph.uses.get(waiting.pop(), ()):
            if producer_of(use) == SINK:
                continue
            node = graph.nodes[producer_of(use)]
            yield node, output_index(use)
            if node.sig.op.name in PASSES_ON:
                outputs = {value_of(producer_of(use), i) for i in range(len(node.sig.outputs))} - seen
                seen |= outputs
                waiting.extend(outputs)


def _axis(node: Node) -> int:
    if isinstance(node.sig.op, OpaqueOperator):
        return next((a.i for a in NodeProto.FromString(node.sig.op.proto).attribute if a.name == "axis"), 0)
    return node.sig.attr("axis")


def bind_sizes(types: list[ValueType], sizes: Sizes, given: Mapping[str, int]) -> dict[str, int]:
    """Return a size for every symbol of some types: the given one, else what its first place asks for.

    A symbol that is called the sum of others ("past + 1") gets that.
    """
    found: dict[str, int] = {}
    for type_ in types:
        shape = (type_.shape or ()) if isinstance(type_, TensorType) else ()
        for axis, dim in enumerate(shape):
            size = sizes.leading if axis == 0 else sizes.spatial if axis >= 2 and len(shape) >= 4 else sizes.other
            found.update({s: size for s in _symbols(dim) if s not in found})
    found |= {name: size for name, size in given.items() if name in found}
    return with_sums(found)


def _symbols(dim: Dim) -> list[str]:
    return sorted(dim.symbols) if isinstance(dim, Poly) else []


def draw(
    kind: InputKind, dims: Mapping[str, int], rng: np.random.Generator, *, binary: bool, whole: int | None = None
) -> Value:
    """Return a random value for an input; its floating-point numbers are whole and at most ``whole``, if that is given.

    Raises:
        EquivalenceError: it is a map, of an unknown type, or too large.
    """
    if isinstance(kind.type, OtherType):
        return _draw_other(kind.name, TypeProto.FromString(kind.type.proto), rng)
    shape = tuple(bind(d, dims) for d in (kind.type.shape or ()))
    sizes = tuple(d for d in shape if isinstance(d, int))
    assert len(sizes) == len(shape), f"{kind} isn't bound by {dims}"
    elements = math.prod(sizes)
    if elements > MOST_ELEMENTS:
        raise EquivalenceError(
            f"expected an input of at most {MOST_ELEMENTS} elements, found {elements} in {kind.name!r}"
        )
    if whole is not None and kind.type.dtype in FLOATS:
        return rng.integers(-whole, whole + 1, sizes).astype(numpy_dtype(kind.type.dtype))
    return draw_tensor(kind.type.dtype, sizes, rng, bound=kind.bound, binary=binary or kind.is_mask)


def draw_defaults(graph: Graph, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Return other values for the inputs that have floating-point numbers as defaults: parts of these, else of 1.

    They keep their sign and are no larger: variances stay positive, and what many layers give stays finite.
    """
    found: dict[str, NDArray[Any]] = {}
    for value, default in graph.info.defaults.items():
        if default.dtype in FLOATS:
            array = default.array()
            parts = rng.uniform(0.5, 1, array.shape)
            found[graph.leaves[value].name] = (parts * array if array.any() else parts).astype(array.dtype)
    return found


def draw_tensor(
    dtype: str, shape: tuple[int, ...], rng: np.random.Generator, *, bound: int | None = None, binary: bool = False
) -> NDArray[Any]:
    """Return a random tensor: normal floats, integers below ``bound``, of 0 and 1 if ``binary``, else small ones."""
    stored = numpy_dtype(dtype)
    if dtype == "string":
        return np.array(np.array(WORDS, object)[rng.integers(0, len(WORDS), shape)], object)  # a scalar is no array
    if stored.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if stored.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(stored)
    if bound is not None:
        return rng.integers(0, max(bound, 1), shape).astype(stored)
    if dtype == "uint8" and not binary:
        return rng.integers(0, 256, shape).astype(stored)
    if dtype.startswith(("int", "uint")):
        low, high = (0, 2) if binary else (0 if dtype.startswith("u") else -3, 4)
        if dtype.endswith("2") and not dtype.endswith("32"):
            low, high = 0, 2
        return rng.integers(low, high, shape).astype(stored)
    return np.asarray(rng.standard_normal(shape)).astype(stored)


def _draw_other(name: str, proto: TypeProto, rng: np.random.Generator) -> Value:
    kind = proto.WhichOneof("value")
    if kind == "optional_type":
        return _draw_other(name, proto.optional_type.elem_type, rng)
    if kind == "sequence_type":
        return [_draw_other(name, proto.sequence_type.elem_type, rng) for _ in range(SEQUENCE_LENGTH)]
    if kind != "tensor_type":
        raise EquivalenceError(f"expected a tensor or sequence as input {name!r}, found {kind or 'an unknown type'}")
    shape = tuple(d.dim_value if d.dim_value > 0 else SEQUENCE_LENGTH for d in proto.tensor_type.shape.dim)
    return draw_tensor(dtype_name(proto.tensor_type.elem_type), shape, rng)
