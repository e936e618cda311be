"""Real graphs as a graph world model takes them: numbered kinds of nodes and edges, and candidates in their order."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from taso_agents.data.graph_store import RowTable
from taso_agents.world_models.graph.dream_graph import PORTS, DreamNode, Nodes, with_codes
from taso_gym.observation import EDGE_FEATURES, NODE_FEATURES

CONSUMERS = next(i for i, f in enumerate(NODE_FEATURES) if f.name == "consumers")
OPERATOR = next(i for i, f in enumerate(NODE_FEATURES) if f.name == "operator")
TIME_SHARE = next(i for i, f in enumerate(NODE_FEATURES) if f.name == "time_share")
INPUT = next(i for i, f in enumerate(EDGE_FEATURES) if f.name == "input")
ROUGH = [
    i for i, f in enumerate(NODE_FEATURES) if f.name in {"operator", "rank", "inputs", "kernel", "stride", "groups"}
]
"""What is left of a node without its sizes."""
OUTPUT = next(i for i, f in enumerate(EDGE_FEATURES) if f.name == "output")


class Spot(NamedTuple):
    """A candidate: ordered as locations are.

    Attributes:
        rule: its substitution.
        nodes: ids of the matched nodes, -1 for constants.
        number: 0, 1, … among those of the same nodes.
    """

    rule: int
    nodes: tuple[int, ...]
    number: int


class SeenGraph(NamedTuple):
    """A real graph without padding, in the numbers of `Kinds`.

    Attributes:
        labels, ids: (n,) of its nodes.
        ends: (e, 2) producer and consumer of each edge, counted without gaps.
        kinds: (e,) of its edges.
        candidates: (c, 2 + P) substitution, location, and the matched nodes, counted without gaps; -1 for none.
    """

    labels: NDArray[np.int32]
    ids: NDArray[np.int32]
    ends: NDArray[np.int32]
    kinds: NDArray[np.int32]
    candidates: NDArray[np.int32]

    @classmethod
    def of(cls, labels: Any, ids: Any, ends: Any, kinds: Any, candidates: Any) -> SeenGraph:
        """Return a graph of anything that makes such arrays."""
        one = [np.asarray(part, np.int32) for part in (labels, ids, kinds)]
        some = np.asarray(candidates, np.int32)
        if some.ndim < 2:  # a list without any
            some = some.reshape(0, 2)
        return cls(one[0], one[1], np.asarray(ends, np.int32).reshape(-1, 2), one[2], some)

    def digest(self) -> bytes:
        """Return bytes that tell it from others."""
        return blake2b(b"|".join(part.tobytes() for part in self), digest_size=16).digest()

    def wired(self) -> Nodes:
        """Return its nodes, yet without codes."""
        ids = self.ids.tolist()
        inputs: dict[int, list[tuple[int, int, int]]] = {x: [] for x in ids}
        uses: dict[int, list[tuple[int, int]]] = {x: [] for x in ids}
        for (source, target), kind in zip(self.ends.tolist(), self.kinds.tolist(), strict=True):
            producer, consumer = ids[source], ids[target]
            inputs[consumer].append((kind % PORTS, kind, producer))
            uses[producer].append((consumer, kind))
        return {
            x: DreamNode(label, tuple((y, kind) for _, kind, y in sorted(inputs[x])), tuple(sorted(uses[x])))
            for x, label in zip(ids, self.labels.tolist(), strict=True)
        }

    def spots(self) -> list[Spot]:
        """Return its candidates in their order."""
        rows = self.candidates[:, 2:]
        nodes_of = np.where(rows >= 0, self.ids[rows], -1).tolist()
        widths = ((rows >= 0) * np.arange(1, rows.shape[1] + 1)).max(1, initial=0).tolist()
        found: list[Spot] = []
        number_of: dict[tuple[int, tuple[int, ...]], int] = {}
        for rule, nodes, width in zip(self.candidates[:, 0].tolist(), nodes_of, widths, strict=True):
            matched = tuple(nodes[:width])
            number = number_of.get((rule, matched), 0)
            number_of[rule, matched] = number + 1
            found.append(Spot(rule, matched, number))
        return found


class Kinds:
    """Numbers for different nodes and edges.

    Attributes:
        nodes: their feature rows, by number.
        edges: those of edges without the input of the consumer, by number: what an edge carries.
        learned: how many of each there were when lessons were last settled; later ones were only looked at.
    """

    def __init__(self, node_width: int, edge_width: int) -> None:
        self.nodes, self.edges = RowTable(node_width), RowTable(edge_width)
        self._rows = [self.nodes.rows(), self.edges.rows()]
        self._rough: list[int] = []
        self.learned = 0, 0

    def settle(self) -> None:
        """Take all that there is by now for learned."""
        self.learned = len(self.nodes), len(self.edges)

    def node_rows(self) -> NDArray[np.float32]:
        """Return the rows of nodes (R, F) by label."""
        if len(self._rows[0]) != len(self.nodes):
            self._rows[0] = self.nodes.rows()
        return self._rows[0]

    def time_percent(self, labels: Sequence[int]) -> float:
        """Return the run time of nodes in % of the start graph's, as their features say it."""
        return 100 * float(self.node_rows()[list(labels), TIME_SHARE].astype(np.float64).sum())

    def rough(self, label: int) -> int:
        """Return a number for what a node is without its sizes."""
        if label >= len(self._rough):
            self._rough = [hash(tuple(row)) for row in self.node_rows()[:, ROUGH].astype(float).tolist()]
        return self._rough[label]

    def edge_rows(self) -> NDArray[np.float32]:
        """Return the rows of what edges carry (R, G)."""
        if len(self._rows[1]) != len(self.edges):
            self._rows[1] = self.edges.rows()
        return self._rows[1]

    def label(self, rows: NDArray[np.float32]) -> list[int]:
        """Return the labels of nodes (R, F): the number of consumers counts for nothing, for uses say it."""
        rows = rows.copy()
        rows[:, CONSUMERS] = 0
        return self.nodes.number(rows).tolist()

    def edge(self, rows: NDArray[np.float32]) -> list[int]:
        """Return the kinds of edges (Q, G): `PORTS` times what they carry, and the input of the consumer."""
        rows = rows.copy()
        ports = np.rint(2 ** (8 * rows[:, INPUT].astype(np.float64)) - 1).astype(np.int64).clip(max=PORTS - 1)
        rows[:, INPUT] = 0
        return (PORTS * self.edges.number(rows) + ports).tolist()


def anchor_of(spot: Spot) -> int:
    """Return the first matched node; -1 if all are constants."""
    return next((x for x in spot.nodes if x >= 0), -1)


def inherit(nodes: Nodes, before: Nodes | None) -> list[set[int]]:
    """Give a graph its codes, those of its predecessor where nothing changed; return which differ, by radius."""
    if before is None:
        return with_codes(nodes, nodes)
    changed: list[int] = []
    for x, node in nodes.items():
        old = before.get(x)
        if old is not None and old[:3] == node[:3]:
            nodes[x] = old
        else:
            changed.append(x)
            if old is not None:
                nodes[x] = node._replace(codes=old.codes)
    return with_codes(nodes, changed)
