"""Building a graph node by node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from taso_gym.graph import (
    SINK,
    Graph,
    Leaf,
    ModelInfo,
    Node,
    Weight,
    output_index,
    producer_of,
    sink_signature,
    value_of,
)
from taso_gym.ops import OPERATORS
from taso_gym.signature import HASH_MODULUS, Signature, node_hash, signature, stable_hash
from taso_gym.symbolic import Dim
from taso_gym.tensor import TensorType, ValueType


class GraphBuilder:
    """Builds a graph node by node; the only way to make one from nothing."""

    def __init__(self, opsets: Mapping[str, int]) -> None:
        """Begin an empty graph of these opset imports; see `ModelInfo`."""
        self._opsets = dict(opsets)
        self._nodes: dict[int, Node] = {}
        self._uses: dict[int, list[int]] = {}
        self._leaves: dict[int, Leaf] = {}
        self._inputs: list[int] = []
        self._outputs: list[tuple[str, int]] = []
        self._next_id = 1

    def type_of(self, value: int) -> ValueType:
        """Return the type of a value."""
        leaf = self._leaves.get(value)
        return leaf.type if leaf else self._nodes[producer_of(value)].sig.outputs[output_index(value)]

    def shape_of(self, value: int) -> tuple[Dim, ...]:
        """Return the shape of a tensor value of known rank."""
        t = self.type_of(value)
        assert isinstance(t, TensorType) and t.shape is not None
        return t.shape

    def input(self, name: str, type_: ValueType) -> int:
        """Add a graph input."""
        value = self._leaf(Leaf(name, type_, None, stable_hash("input", name)))
        self._inputs.append(value)
        return value

    def weight(self, name: str, type_: TensorType, weight: Weight) -> int:
        """Add a constant."""
        return self._leaf(Leaf(name, type_._replace(const=True), weight, stable_hash("weight", weight.digest)))

    def weights_of(self, graph: Graph) -> dict[int, int]:
        """Add the constants of another graph that are used there, and return what each of them is here."""
        used = {value: leaf for value, leaf in graph.leaves.items() if leaf.weight and value in graph.uses}
        return {value: self._leaf(leaf) for value, leaf in used.items()}

    def _leaf(self, leaf: Leaf) -> int:
        value = value_of(self._take_id())
        self._leaves[value] = leaf
        return value

    def _take_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def add(self, op_type: str, *inputs: int | None, domain: str = "", name: str | None = None, **attrs: Any) -> int:
        """Add an operator of the table and return its first output; ``name`` is that output's ONNX name.

        Raises:
            TypeInferenceError: it doesn't take these operands or attributes.
        """
        types = [None if v is None else self.type_of(v) for v in inputs]
        sig = signature(OPERATORS[domain, op_type], attrs, types)
        return self.add_signature(sig, inputs, (name,) + (None,) * (len(sig.outputs) - 1))[0]

    def add_signature(
        self, sig: Signature, inputs: Sequence[int | None], names: Sequence[str | None] = ()
    ) -> tuple[int, ...]:
        """Add a node of any signature and return its outputs."""
        node_id = self._take_id()
        operands = tuple(inputs[: len(sig.inputs)])
        own = node_hash(sig, self._sems(operands))
        sems = tuple(hash((own, i)) % HASH_MODULUS for i in range(len(sig.outputs)))
        self._enter(node_id, Node(sig, operands, sems, tuple(names) or (None,) * len(sems), own))
        return tuple(value_of(node_id, i) for i in range(len(sems)))

    def output(self, name: str, value: int) -> None:
        """Make a value the next graph output."""
        self._outputs.append((name, value))

    def build(self) -> Graph:
        """Return the graph; the builder isn't used afterwards."""
        values = tuple(v for _, v in self._outputs)
        sink = sink_signature(tuple(self.type_of(v) for v in values))
        self._enter(SINK, Node(sink, values, (), (), node_hash(sink, self._sems(values))))
        total = sum(n.hash for n in self._nodes.values()) % HASH_MODULUS
        names = tuple(name for name, _ in self._outputs)
        info = ModelInfo(self._opsets, tuple(self._inputs), names)
        uses = {v: tuple(u) for v, u in self._uses.items()}
        return Graph(self._nodes, uses, self._leaves, self._next_id, total, info)

    def _sems(self, inputs: Iterable[int | None]) -> tuple[int, ...]:
        return tuple(0 if v is None else self._sem(v) for v in inputs)

    def _sem(self, value: int) -> int:
        leaf = self._leaves.get(value)
        return leaf.sem if leaf else self._nodes[producer_of(value)].sems[output_index(value)]

    def _enter(self, node_id: int, node: Node) -> None:
        self._nodes[node_id] = node
        for i, value in enumerate(node.inputs):
            if value is not None:
                self._uses.setdefault(value, []).append(value_of(node_id, i))
