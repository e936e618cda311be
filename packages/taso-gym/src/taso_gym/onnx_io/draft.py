"""The graph while a file is read: equal nodes are merged, constants computed, and what nothing needs is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from taso_gym.builder import GraphBuilder
from taso_gym.graph import Graph, Weight
from taso_gym.onnx_io.folding import fold
from taso_gym.onnx_io.initializers import type_of
from taso_gym.onnx_io.types import UNKNOWN
from taso_gym.signature import OpaqueOperator, Signature
from taso_gym.tensor import TensorType, ValueType, itemsize_bits


class _Input(NamedTuple):
    name: str
    type: ValueType


class Constant(NamedTuple):
    """A weight with the name that it has in the file."""

    name: str
    weight: Weight

    @property
    def type(self) -> TensorType:
        """Its type."""
        return type_of(self.weight)


class _Draft(NamedTuple):
    """An application of an operator; ``outputs`` are values."""

    sig: Signature
    inputs: tuple[int | None, ...]
    names: tuple[str | None, ...]
    outputs: range


class Draft:
    """Values are integers, counted from 0: they have nothing to do with those of the graph that `build` returns."""

    def __init__(self, opsets: Mapping[str, int]) -> None:
        """Begin an empty draft of a file with these opset imports."""
        self._opsets = opsets
        self._origins: list[_Input | Constant | _Draft] = []
        self._nodes: list[_Draft] = []
        self._weights: dict[str, int] = {}
        self._merged: dict[tuple[Signature | OpaqueOperator, tuple[int | None, ...]], Sequence[int]] = {}

    def input(self, name: str, type_: ValueType) -> int:
        """Add a graph input."""
        self._origins.append(_Input(name, type_))
        return len(self._origins) - 1

    def weight(self, name: str, weight: Weight) -> int:
        """Return the constant of this type and content, which keeps the first name that it is given."""
        value = self._weights.setdefault(weight.digest, len(self._origins))
        return self.own_weight(name, weight) if value == len(self._origins) else value

    def own_weight(self, name: str, weight: Weight) -> int:
        """Return a constant that is merged with no other."""
        self._origins.append(Constant(name, weight))
        return len(self._origins) - 1

    def constant(self, value: int | None) -> Constant | None:
        """Return the constant that a value is, or None."""
        origin = None if value is None else self._origins[value]
        return origin if isinstance(origin, Constant) else None

    def type_of(self, value: int) -> ValueType:
        """Return the type of a value."""
        origin = self._origins[value]
        return origin.sig.outputs[value - origin.outputs.start] if isinstance(origin, _Draft) else origin.type

    def node(self, sig: Signature, inputs: Sequence[int | None], names: Sequence[str | None]) -> Sequence[int]:
        """Apply an operator and return its outputs, which may be constants, or those of an equal node."""
        inputs = tuple(inputs[: len(sig.inputs)])
        if not _is_pure(sig):
            return self._added(sig, inputs, names)
        alike = (*sorted(inputs[:2], key=str), *inputs[2:]) if sig.symmetric else inputs  # in either order
        key = sig.op if isinstance(sig.op, OpaqueOperator) else sig, alike
        if key not in self._merged or not all(map(_may_be_renamed, sig.outputs)):
            self._merged[key] = self._folded(sig, inputs, names) or self._added(sig, inputs, names)
        return self._merged[key]

    def _folded(self, sig: Signature, inputs: tuple[int | None, ...], names: Sequence[str | None]) -> list[int] | None:
        constants = [self.constant(v) for v in inputs]
        if not all(c or v is None for c, v in zip(constants, inputs, strict=True)):
            return None
        folded = fold(sig, [c.weight if c else None for c in constants], self._opsets)
        if folded is None:
            return None
        return [self.weight(n or "", w) for n, w in zip(names, folded, strict=True)]

    def _added(self, sig: Signature, inputs: tuple[int | None, ...], names: Sequence[str | None]) -> range:
        outputs = range(len(self._origins), len(self._origins) + len(sig.outputs))
        draft = _Draft(sig, inputs, tuple(names), outputs)
        self._nodes.append(draft)
        self._origins.extend([draft] * len(outputs))
        return outputs

    def build(self, builder: GraphBuilder, outputs: Sequence[tuple[str, int]], pinned: Iterable[int]) -> Graph:
        """Enter all inputs, and of the rest what the outputs and the impure nodes need.

        Args:
            builder: an empty graph.
            outputs: names and values of the graph outputs.
            pinned: constants that stay though no node needs them.
        """
        live, kept = {*pinned, *(value for _, value in outputs)}, list[_Draft]()
        for node in reversed(self._nodes):
            if not _is_pure(node.sig) or not live.isdisjoint(node.outputs):
                kept.append(node)
                live.update(v for v in node.inputs if v is not None)
        values: dict[int, int] = {}
        for value, origin in enumerate(self._origins):
            if isinstance(origin, _Input):
                values[value] = builder.input(origin.name, origin.type)
            elif isinstance(origin, Constant) and value in live:
                values[value] = builder.weight(origin.name, origin.type, origin.weight)
        for node in reversed(kept):
            inputs = [None if v is None else values[v] for v in node.inputs]
            values.update(zip(node.outputs, builder.add_signature(node.sig, inputs, node.names), strict=True))
        for name, value in outputs:
            builder.output(name, values[value])
        return builder.build()


def _may_be_renamed(type_: ValueType) -> bool:
    """Whether a value of a type can have a second name when it is written, by an Identity.

    Older opsets have none for sequences and optionals, no opset for maps, and onnxruntime none for parts of a byte.
    """
    return itemsize_bits(type_.dtype) >= 8 if isinstance(type_, TensorType) else type_ == UNKNOWN


def _is_pure(sig: Signature) -> bool:
    return not isinstance(sig.op, OpaqueOperator) or sig.op.pure
