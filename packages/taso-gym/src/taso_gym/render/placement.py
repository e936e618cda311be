"""Where each operator stands in a picture: layers by depth, and columns that keep wires short and straight.

A value that passes layers on its way takes a column of its own there, shared by all its consumers (Sugiyama et al.
1981, with barycentres for order and place).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from taso_gym.graph import Graph, producer_of

Point = tuple[float, float]
Stop = tuple[int, int]
"""(node id, layer): the node itself in its own layer, its value on the way in later ones."""

SWEEPS = 3


@dataclass(frozen=True)
class Placement:
    """Columns and layers.

    Attributes:
        layers: layer of each operator and graph input, by id.
        columns: column of each stop.
        wires: (producer, consumer), once each.
    """

    layers: Mapping[int, int]
    columns: Mapping[Stop, float]
    wires: tuple[tuple[int, int], ...]

    def place(self, node_id: int) -> Point:
        """Return (column, layer) of a node."""
        layer = self.layers[node_id]
        return self.columns[node_id, layer], layer

    def route(self, producer: int, consumer: int) -> tuple[Point, ...]:
        """Return the points that a wire passes."""
        between = range(self.layers[producer], self.layers[consumer])
        return (*((self.columns[producer, layer], layer) for layer in between), self.place(consumer))


def place(graph: Graph) -> Placement:
    """Place the operators and graph inputs of a graph."""
    producers = _producers(graph)
    layers = _layers(graph, producers)
    last = dict(layers)
    for node_id, before in producers.items():
        for producer in before:
            last[producer] = max(last[producer], layers[node_id] - 1)
    above: dict[Stop, list[Stop]] = {}
    for node_id, before in producers.items():
        layer = layers[node_id]
        above[node_id, layer] = [(producer, layer - 1) for producer in before]
        for passed in range(layer + 1, last[node_id] + 1):
            above[node_id, passed] = [(node_id, passed - 1)]
    wires = tuple((producer, node_id) for node_id, before in producers.items() for producer in before)
    return Placement(layers, _columns(above), wires)


def _producers(graph: Graph) -> dict[int, tuple[int, ...]]:
    """Return the producers of each operator and graph input, weights left out, in topological order."""
    known = {producer_of(value): () for value in graph.info.inputs}
    result: dict[int, tuple[int, ...]] = dict(known)
    for node_id in graph.topological_order():
        inputs = (producer_of(v) for v in graph.nodes[node_id].inputs if v is not None)
        result[node_id] = tuple(dict.fromkeys(i for i in inputs if i in result))
    return result


def _layers(graph: Graph, producers: dict[int, tuple[int, ...]]) -> dict[int, int]:
    """Return the longest way from a source; sources and constants stand right above their first consumer."""
    layers: dict[int, int] = {}
    for node_id, before in producers.items():
        layers[node_id] = 1 + max((layers[p] for p in before), default=-1)
    first: dict[int, int] = {}
    for node_id in reversed(producers):
        node = graph.nodes.get(node_id)
        if (node is None or node.sig.const) and node_id in first:
            layers[node_id] = first[node_id] - 1
        for producer in producers[node_id]:
            first[producer] = min(first.get(producer, layers[node_id]), layers[node_id])
    return layers


def _columns(above: Mapping[Stop, list[Stop]]) -> dict[Stop, float]:
    below: dict[Stop, list[Stop]] = {stop: [] for stop in above}
    rows: dict[int, list[Stop]] = {}
    for stop, before in above.items():
        rows.setdefault(stop[1], []).append(stop)
        for other in before:
            below[other].append(stop)
    columns = dict.fromkeys(above, 0.0)
    down = sorted(rows)
    for sweep in range(2 * SWEEPS + 1):
        neighbours, order = (above, down) if sweep % 2 == 0 else (below, down[::-1])
        for layer in order:
            _settle(rows[layer], neighbours, columns)
    return columns


def _settle(row: list[Stop], neighbours: Mapping[Stop, list[Stop]], columns: dict[Stop, float]) -> None:
    """Move the stops of a layer towards the mean column of their neighbours, one column apart at least."""
    wanted = {s: sum(columns[n] for n in near) / len(near) if (near := neighbours[s]) else columns[s] for s in row}
    row.sort(key=wanted.__getitem__)
    for stop in row:
        columns[stop] = wanted[stop]
    for left, right in pairwise(row):
        columns[right] = max(columns[right], columns[left] + 1)
    shift = sum(wanted[s] - columns[s] for s in row) / len(row)
    for stop in row:
        columns[stop] += shift
