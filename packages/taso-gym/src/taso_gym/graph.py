"""The computation graph: immutable records in shallow-copied maps.

A `Node` is (signature, inputs, semantic ids). A `Graph` owns only dicts of references: a rewrite
returns a new one that shares every untouched record, so a fork is free and undo means keeping the parent.

Values and uses are integers: ``value = node_id << 16 | output`` and ``use = node_id << 16 | input``. Graph inputs and
weights are leaves: they have ids and values like nodes, but live in the side table ``leaves``. Node 0 is the sink that
consumes the graph's outputs, so that being an output is an ordinary use.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from taso_gym.errors import ModelError
from taso_gym.signature import (
    HASH_MODULUS,
    OpaqueOperator,
    Signature,
    node_hash,
    opaque_signature,
    stable_hash,
    strip_absent,
)
from taso_gym.tensor import ValueType

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import NDArray

OUTPUT_BITS = 16
OUTPUT_MASK = (1 << OUTPUT_BITS) - 1
SINK = 0


class Weight(Protocol):
    """The value of a constant leaf: something that can be drawn, read or mapped when it is needed, and not before."""

    @property
    def dtype(self) -> str:
        """ONNX's name of its element type."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor."""
        ...

    @property
    def digest(self) -> str:
        """Hash of dtype, shape and content (or of what determines the content), the same in every process."""
        ...

    def array(self) -> NDArray[Any]:
        """Return the value in NumPy's dtype for the leaf's type; the caller doesn't write to it."""
        ...


class Leaf(NamedTuple):
    """A graph input (``weight`` is None) or a constant."""

    name: str
    type: ValueType
    weight: Weight | None
    sem: int


class Node(NamedTuple):
    """An application of an operator.

    Attributes:
        sig: signature.
        inputs: values; None where an optional input is absent.
        sems: semantic id of each output: equal ids mean equal tensors, whatever way they came about. A value that
            replaces another inherits its id, so that consumers' hashes stay.
        names: ONNX name of each output that had one in the file, else None.
        hash: its part of the graph hash: `node_hash` of its signature and its inputs' semantic ids.
    """

    sig: Signature
    inputs: tuple[int | None, ...]
    sems: tuple[int, ...]
    names: tuple[str | None, ...]
    hash: int


@dataclass(frozen=True)
class ModelInfo:
    """What a file says besides its nodes; kept so that it is written back as it was.

    Attributes:
        opsets: domain -> version.
        inputs: values of the graph inputs in order.
        output_names: names of the graph outputs in order (the sink's inputs).
        template: the serialised ``ModelProto`` without nodes and initializers: names, documentation, metadata,
            functions, declared types of inputs and outputs; empty for a graph that was built in Python.
        digest: hash of the file, or of what determines a built-in network.
        defaults: graph input -> the value it has where the caller gives none (an initializer that is also an input).
        external: the file kept its weights in files beside it, and is written back so.
        dims: what `taso_gym.load` was told about symbols; for cost, observation and drawn inputs only.
    """

    opsets: Mapping[str, int]
    inputs: tuple[int, ...] = ()
    output_names: tuple[str, ...] = ()
    template: bytes = b""
    digest: str = ""
    defaults: Mapping[int, Weight] = field(default_factory=dict[int, Weight])
    external: bool = False
    dims: Mapping[str, int] = field(default_factory=dict[str, int])


def value_of(node_id: int, output: int = 0) -> int:
    """Return the value that is an output of a node, or a leaf."""
    return node_id << OUTPUT_BITS | output


def producer_of(value: int) -> int:
    """Return the id of the node or leaf that a value comes from."""
    return value >> OUTPUT_BITS


def output_index(value: int) -> int:
    """Return which output of its producer a value is."""
    return value & OUTPUT_MASK


class Graph:
    """An immutable computation graph; every method is a question.

    Attributes:
        nodes: id -> node, the sink (id 0) among them; in the order in which nodes came to be, not topological.
        uses: value -> uses, exactly the inverse of the nodes' inputs; values without uses are absent.
        leaves: value -> graph input or constant; may hold unused ones.
        next_id: the next free id; ids are never used again.
        hash: sum of the nodes' hashes modulo 2**61 - 1; serves one process and one start graph.
        info: what the file says besides.
    """

    __slots__ = ("hash", "info", "leaves", "next_id", "nodes", "uses")

    def __deepcopy__(self, memo: dict[int, object]) -> Graph:
        """Return itself: weights are held once."""
        return self

    def __init__(
        self,
        nodes: dict[int, Node],
        uses: dict[int, tuple[int, ...]],
        leaves: dict[int, Leaf],
        next_id: int,
        hash_: int,
        info: ModelInfo,
    ) -> None:
        self.nodes, self.uses, self.leaves = nodes, uses, leaves
        self.next_id, self.hash, self.info = next_id, hash_, info

    def __len__(self) -> int:
        """Number of operators; what is computed from weights alone is none, since it is folded on save."""
        return sum([not node.sig.const for node in self.nodes.values()]) - 1

    def __repr__(self) -> str:
        return f"<Graph: {len(self)} operators, {len(self.leaves)} inputs and weights>"

    def __eq__(self, other: object) -> bool:
        """Whether both compute the same from the same weights in the same way, whatever names and order are within."""
        return isinstance(other, Graph) and self.canonical_digest() == other.canonical_digest()

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    @property
    def outputs(self) -> tuple[int, ...]:
        """Values of the graph outputs in order."""
        return tuple(v for v in self.nodes[SINK].inputs if v is not None)

    def type_of(self, value: int) -> ValueType:
        """Return the type of a value."""
        leaf = self.leaves.get(value)
        return leaf.type if leaf else self.nodes[value >> OUTPUT_BITS].sig.outputs[output_index(value)]

    def sem_of(self, value: int) -> int:
        """Return the semantic id of a value."""
        leaf = self.leaves.get(value)
        return leaf.sem if leaf else self.nodes[value >> OUTPUT_BITS].sems[output_index(value)]

    def sems_of(self, inputs: Iterable[int | None]) -> tuple[int, ...]:
        """Return the semantic ids of a node's inputs; 0 for an absent one."""
        return tuple(0 if v is None else self.sem_of(v) for v in inputs)

    def operators(self) -> Iterator[tuple[int, Node]]:
        """Yield (id, node) of every operator; the sink isn't one."""
        return ((i, n) for i, n in self.nodes.items() if i != SINK)

    def topological_order(self) -> list[int]:
        """Return the ids of all operators, producers first, the smallest free id first.

        Raises:
            ModelError: the graph has a cycle.
        """
        waiting = {i: sum(v is not None and v not in self.leaves for v in n.inputs) for i, n in self.nodes.items()}
        ready = [i for i, count in waiting.items() if not count and i != SINK]
        heapq.heapify(ready)
        order: list[int] = []
        while ready:
            node_id = heapq.heappop(ready)
            order.append(node_id)
            for output in range(len(self.nodes[node_id].sig.outputs)):
                for use in self.uses.get(value_of(node_id, output), ()):
                    consumer = producer_of(use)
                    waiting[consumer] -= 1
                    if not waiting[consumer] and consumer != SINK:
                        heapq.heappush(ready, consumer)
        if len(order) + 1 != len(self.nodes):
            stuck = min(i for i in waiting if waiting[i] and i != SINK)
            raise ModelError(
                f"expected a graph without cycles, found one through {self.nodes[stuck].sig.op.key} {stuck}"
            )
        return order

    def canonical_digest(self) -> str:
        """Return a hash of what the graph computes and how, that is the same in other processes.

        A Merkle hash from the named inputs and the weights' digests through the signatures to the outputs. It survives
        save and load unless saving changes weights: those of built-in networks are drawn, constant operators folded.
        """
        digests = {v: self._leaf_digest(v, leaf) for v, leaf in self.leaves.items()}
        for node_id in self.topological_order():
            node = self.nodes[node_id]
            inputs = [0 if v is None else digests[v] for v in node.inputs]
            if node.sig.symmetric:
                inputs[:2] = sorted(inputs[:2])
            own = stable_hash(node.sig.hash, inputs)
            for output in range(len(node.sig.outputs)):
                digests[value_of(node_id, output)] = stable_hash(own, output)
        pairs = [(name, digests[v]) for name, v in zip(self.info.output_names, self.outputs, strict=True)]
        return f"{stable_hash(pairs):016x}"

    def _leaf_digest(self, value: int, leaf: Leaf) -> int:
        if leaf.weight:
            return stable_hash("weight", leaf.weight.digest)
        default = self.info.defaults.get(value)
        return stable_hash("input", leaf.name, leaf.type, *([default.digest] if default else []))

    def to_networkx(self) -> nx.MultiDiGraph[int]:
        """Return a networkx graph: nodes carry ``op`` and ``signature``, edges ``output``, ``input`` and ``type``."""
        import networkx as nx

        result: nx.MultiDiGraph[int] = nx.MultiDiGraph()
        for value, leaf in self.leaves.items():
            if value in self.uses:
                result.add_node(producer_of(value), op="Weight" if leaf.weight else "Input", signature=None)
        for node_id, node in self.operators():
            result.add_node(node_id, op=node.sig.op.key, signature=node.sig)
        for value, uses in self.uses.items():
            for use in uses:
                if producer_of(use) != SINK:
                    result.add_edge(
                        producer_of(value),
                        producer_of(use),
                        output=output_index(value),
                        input=output_index(use),
                        type=self.type_of(value),
                    )
        return result


def check(graph: Graph) -> None:
    """Assert every invariant of a graph: uses invert inputs, no cycle, types agree, the hash equals recomputation."""
    uses: dict[int, list[int]] = {}
    total = 0
    for node_id, node in graph.nodes.items():
        assert len(node.sig.outputs) == len(node.sems) == len(node.names), f"node {node_id}: outputs disagree"
        assert 0 <= node_id < graph.next_id, f"node {node_id}: id was never given out"
        for i, value in enumerate(node.inputs):
            if value is not None:
                uses.setdefault(value, []).append(value_of(node_id, i))
        types = tuple(None if v is None else graph.type_of(v) for v in node.inputs)
        assert node_id == SINK or strip_absent(types) == node.sig.inputs, (
            f"node {node_id}: {types} != {node.sig.inputs}"
        )
        assert node.hash == node_hash(node.sig, graph.sems_of(node.inputs)), f"node {node_id}: its hash differs"
        total += node.hash
    assert {v: sorted(u) for v, u in uses.items()} == {v: sorted(u) for v, u in graph.uses.items()}, "uses disagree"
    assert total % HASH_MODULUS == graph.hash, "hash differs from recomputation"
    graph.topological_order()


SINK_OPERATOR = OpaqueOperator("", "Output", b"", pure=False)
"""Operator of the sink; its signature holds the output types."""


def sink_signature(types: tuple[ValueType | None, ...]) -> Signature:
    """Return the signature of a sink that consumes values of these types."""
    return opaque_signature(SINK_OPERATOR, types, ())
