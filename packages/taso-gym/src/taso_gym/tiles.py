"""Chains of elementwise operators, tile by tile: a loop (Scan) whose values stay in the cache.

Where what an operator of a chain writes is larger than the cache, the next one reads it from memory. In a loop over
tiles only what goes into the chain and comes out of it is. A turn takes some microseconds by itself, and what is in a
loop isn't fused with what is around it: whether it is faster has to be measured.

A chain is an operator with all before it that is for this chain alone, and whose results have the shape of the last
one's. So nothing else lies between its parts. Each element is computed by the same operators of the same elements,
if not by the same instructions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from taso_gym.builder import GraphBuilder
from taso_gym.graph import Graph, producer_of, value_of
from taso_gym.ops import Operator
from taso_gym.scan import add_scan, may_scan, scan_over
from taso_gym.signature import signature
from taso_gym.tensor import TensorType

ELEMENTWISE = frozenset(
    (
        *("Abs", "Add", "And", "Cast", "Ceil", "Clip", "Cos", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu"),
        *("Greater", "HardSigmoid", "HardSwish", "IsNaN", "LeakyRelu", "Less", "Log", "Max", "Min", "Mish", "Mul"),
        *("Neg", "Not", "Or", "PRelu", "Pow", "Reciprocal", "Relu", "Selu", "Sigmoid", "Sign", "Sin", "Softplus"),
        *("Sqrt", "Sub", "Sum", "Tanh", "Where", "ms.BiasGelu", "ms.FastGelu", "ms.Gelu", "ms.QuickGelu"),
    )
)
"""Operators each element of whose result depends on one element of each operand."""
SMALLEST = 4
"""There may be so many times as many tiles as are needed, so that all are of one size."""


class Chain(NamedTuple):
    """Operators to be computed tile by tile.

    Attributes:
        nodes: their ids, producers first; the last one's result is the chain's.
        tiles: how many.
        axis: the last of the leading axes that are cut: taken as one, ``tiles`` divides it.
    """

    nodes: tuple[int, ...]
    tiles: int
    axis: int


def chains(graph: Graph, most: int, tile: int) -> list[Chain]:
    """Return the chains of a graph whose values are too large.

    Args:
        graph: it.
        most: bytes of a value that isn't.
        tile: bytes of a value's tile, or less.
    """
    if not may_scan(graph):
        return []
    found = (_cut(graph, nodes, most, tile) for nodes in _groups(graph) if len(nodes) > 1)
    return [chain for chain in found if chain]


def in_tiles(graph: Graph, chosen: Iterable[Chain]) -> Graph:
    """Return a graph with chains of its as loops.

    Raises:
        TypeInferenceError: an operator of a chain doesn't take its operands' tiles.
    """
    return _Tiled(graph, chosen).build()


def _groups(graph: Graph) -> Iterator[tuple[int, ...]]:
    """Yield groups of elementwise operators: each one with all before it that nothing else needs."""
    groups: dict[int, list[int]] = {}
    last: dict[int, int] = {}
    for node_id in reversed(graph.topological_order()):
        if not (shape := _shape(graph, node_id)):
            continue
        users = {producer_of(use) for use in graph.uses.get(value_of(node_id), ())}
        ends = {last.get(user) for user in users}
        end = ends.pop() if len(ends) == 1 else None
        last[node_id] = node_id if end is None or _shape(graph, end) != shape else end
        groups.setdefault(last[node_id], []).append(node_id)
    return (tuple(reversed(nodes)) for nodes in groups.values())


def _shape(graph: Graph, node_id: int) -> tuple[int, ...]:
    """Return the shape of what an elementwise operator computes; empty of others, constants, and where it is open."""
    sig = graph.nodes[node_id].sig
    if not isinstance(sig.op, Operator) or sig.op.key not in ELEMENTWISE or sig.const:
        return ()
    return _sizes(sig.outputs[0]) if sig.outputs[0].is_static else ()


def _sizes(t: object) -> tuple[int, ...]:
    assert isinstance(t, TensorType)
    return tuple(size for size in t.shape or () if isinstance(size, int))


def _cut(graph: Graph, nodes: tuple[int, ...], most: int, tile: int) -> Chain | None:
    """Return operators in tiles; None where their values aren't too large, or can't be cut alike."""
    shape, types = _shape(graph, nodes[-1]), [graph.nodes[node_id].sig.outputs[0] for node_id in nodes]
    largest = max(t.size_bytes for t in types if isinstance(t, TensorType))
    if largest <= most:
        return None
    fewest = max(-(-largest // tile), 2)
    operands = {value for node_id in nodes for value in graph.nodes[node_id].inputs if value is not None}
    outside = operands - {value_of(node_id) for node_id in nodes}
    for axis in reversed(range(len(shape))):
        rows = math.prod(shape[: axis + 1])
        count = next((n for n in range(fewest, SMALLEST * fewest + 1) if rows % n == 0), None)
        if count and all(_fits(graph, value, shape, axis) for value in outside):
            return Chain(nodes, count, axis)
    return None


def _fits(graph: Graph, value: int, shape: tuple[int, ...], axis: int) -> bool:
    """Return whether an operand is cut as the result is, or is a weight that isn't cut."""
    t = graph.type_of(value)
    if not isinstance(t, TensorType) or not t.is_static:
        return False
    lead = _split(_sizes(t), len(shape), axis)[0]
    return lead == shape[: axis + 1] or _is_whole(graph, value, len(shape), axis)


def _is_whole(graph: Graph, value: int, rank: int, axis: int) -> bool:
    leaf = graph.leaves.get(value)
    return bool(leaf and leaf.weight) and math.prod(_split(_sizes(graph.type_of(value)), rank, axis)[0]) == 1


def _split(sizes: tuple[int, ...], rank: int, axis: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sizes of an operand along the axes of the result that are cut, and along the others."""
    full = (1,) * (rank - len(sizes)) + sizes
    return full[: axis + 1], full[axis + 1 :]


class _Tiled:
    """A graph with loops, in the making."""

    def __init__(self, graph: Graph, chosen: Iterable[Chain]) -> None:
        self._graph, self._chains = graph, {chain.nodes[-1]: chain for chain in chosen}
        self._bodies = {end: _Body(graph, chain) for end, chain in self._chains.items()}
        self._loops = {end: scan_over(body.graph, "tile") for end, body in self._bodies.items()}
        opsets = dict(graph.info.opsets)
        for _, taken in self._loops.values():
            opsets |= taken
        self._builder = GraphBuilder(opsets)
        self._values: dict[int, int] = {}
        self._stacked: dict[tuple[int, tuple[int, ...]], int] = {}

    def build(self) -> Graph:
        """Return it."""
        graph, builder, values = self._graph, self._builder, self._values
        for value in graph.info.inputs:
            values[value] = builder.input(graph.leaves[value].name, graph.type_of(value))
        values |= builder.weights_of(graph)
        inside = {node_id for chain in self._chains.values() for node_id in chain.nodes}
        for node_id in graph.topological_order():
            if node_id in self._chains:
                values[value_of(node_id)] = self._loop(node_id)
            elif node_id not in inside:
                node = graph.nodes[node_id]
                inputs = [None if v is None else values[v] for v in node.inputs]
                outputs = builder.add_signature(node.sig, inputs, node.names)
                values |= {value_of(node_id, i): v for i, v in enumerate(outputs)}
        for name, value in zip(graph.info.output_names, graph.outputs, strict=True):
            builder.output(name, values[value])
        built = builder.build()
        defaults = {values[value]: weight for value, weight in graph.info.defaults.items()}
        info = replace(graph.info, inputs=built.info.inputs, opsets=built.info.opsets, defaults=defaults)
        return Graph(built.nodes, built.uses, built.leaves, built.next_id, built.hash, info)

    def _loop(self, end: int) -> int:
        """Add the loop over a chain's tiles, and return what it computes."""
        builder, body, (op, _) = self._builder, self._bodies[end], self._loops[end]
        count = self._chains[end].tiles
        for value, shape in body.operands:
            if (value, shape) not in self._stacked:
                self._stacked[value, shape] = builder.add("Reshape", self._values[value], shape=(count, *shape))
        stacked = [self._stacked[operand] for operand in body.operands]
        result = add_scan(builder, op, body.graph, stacked)[0]
        node = self._graph.nodes[end]
        return builder.add("Reshape", result, shape=_shape(self._graph, end), name=node.names[0])


class _Body:
    """What a chain does with a tile.

    Attributes:
        operands: the values that it takes tiles of, and their tiles' shapes.
        graph: it.
    """

    def __init__(self, graph: Graph, chain: Chain) -> None:
        self._whole, self._chain, self._rank = graph, chain, len(_shape(graph, chain.nodes[-1]))
        self._builder = GraphBuilder(graph.info.opsets)
        self.operands: list[tuple[int, tuple[int, ...]]] = []
        values: dict[int, int] = {}
        for node_id in chain.nodes:
            node = graph.nodes[node_id]
            assert isinstance(node.sig.op, Operator)
            for value in node.inputs:
                if value is not None and value not in values:
                    values[value] = self._operand(value)
            inputs = [None if v is None else values[v] for v in node.inputs]
            types = [None if v is None else self._builder.type_of(v) for v in inputs]
            sig = signature(node.sig.op, dict(node.sig.attrs), types)
            values[value_of(node_id)] = self._builder.add_signature(sig, inputs)[0]
        self._builder.output("result", values[value_of(chain.nodes[-1])])
        self.graph = self._builder.build()

    def _operand(self, value: int) -> int:
        """Add an operand from outside, and return it."""
        t, builder, axis = self._whole.type_of(value), self._builder, self._chain.axis
        lead, tail = _split(_sizes(t), self._rank, axis)
        assert isinstance(t, TensorType)
        if _is_whole(self._whole, value, self._rank, axis):
            leaf = self._whole.leaves[value]
            assert leaf.weight
            held = builder.weight(leaf.name, t, leaf.weight)
            return held if len(_sizes(t)) <= len(tail) else builder.add("Reshape", held, shape=tail)
        shape = (math.prod(lead) // self._chain.tiles, *tail)
        self.operands.append((value, shape))
        return builder.input(f"operand {len(self.operands)}", TensorType(t.dtype, shape))
