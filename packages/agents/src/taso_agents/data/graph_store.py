"""Graphs of observations with their candidates, stored once, as numbers of the feature rows that occur in them."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class RowTable:
    """Different rows of floats, numbered in the order in which they are met."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._numbers: dict[bytes, int] = {}

    def number(self, rows: NDArray[np.float32]) -> NDArray[np.int32]:
        """Return the number of each row of (R, width)."""
        data, size = np.ascontiguousarray(rows, np.float32).tobytes(), 4 * self.width
        numbers = self._numbers
        each = [numbers.setdefault(data[i : i + size], len(numbers)) for i in range(0, len(data), size)]
        return np.array(each, np.int32)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._numbers)

    def fill(self, rows: NDArray[np.float32]) -> None:
        """Take the rows of another table, in their order."""
        self._numbers = {row.tobytes(): number for number, row in enumerate(np.ascontiguousarray(rows))}

    def rows(self) -> NDArray[np.float32]:
        """Return all rows by number."""
        return np.frombuffer(b"".join(self._numbers), np.float32).reshape(-1, self.width)


class StoredGraph(NamedTuple):
    """A graph without padding, and what can be done to it.

    Attributes:
        nodes: (n,) numbers of node rows.
        places: (n,) rows that they had in the observation: a node keeps its row while it lives.
        ids: (n,) what the order of locations follows: a new node's is larger than any before.
        edges: (e,) numbers of edge rows.
        ends: (e, 2) producer and consumer, counted without gaps.
        globals: (G,).
        candidates: (c, 2 + P) substitution, location, and the matched nodes, counted without gaps; negative for none.
        changes: (c,) what each candidate would change the cost by, in % of the start graph's.
    """

    nodes: NDArray[np.int32]
    places: NDArray[np.int16]
    ids: NDArray[np.int32]
    edges: NDArray[np.int32]
    ends: NDArray[np.int32]
    globals: NDArray[np.float32]
    candidates: NDArray[np.int16]
    changes: NDArray[np.float32]

    def change_of(self, action: tuple[int, int]) -> float:
        """Return what an action (substitution, location) changes the cost by, in %; 0 if it is no candidate's."""
        return float(self.changes[(self.candidates[:, :2] == action).all(1)].sum())


class GraphStore:
    """Graphs of observations, equal ones once."""

    def __init__(self, node_width: int, edge_width: int) -> None:
        self.node_rows, self.edge_rows = RowTable(node_width), RowTable(edge_width)
        self.graphs: list[StoredGraph] = []
        self._numbers: dict[bytes, int] = {}

    def add(self, observation: dict[str, NDArray[Any]], changes: NDArray[np.float32]) -> int:
        """Store the graph of an observation with its candidates' cost changes (c,); return its number."""
        return self.take(self._stored(observation, changes))

    def take(self, graph: StoredGraph) -> int:
        """Return the number of a graph whose rows are numbered by this store, which is new unless it is known."""
        key = blake2b(b"".join(part.tobytes() for part in graph), digest_size=16).digest()
        number = self._numbers.setdefault(key, len(self.graphs))
        if number == len(self.graphs):
            self.graphs.append(graph)
        return number

    def _stored(self, observation: dict[str, NDArray[Any]], changes: NDArray[np.float32]) -> StoredGraph:
        node_mask, edge_mask = observation["node_mask"] > 0, observation["edge_mask"] > 0
        compact = np.cumsum(node_mask) - 1
        candidates = observation["matches"][observation["match_mask"] > 0]
        matched = np.where(candidates[:, 2:] < 0, -1, compact[candidates[:, 2:]])
        assert len(changes) == len(candidates)
        return StoredGraph(
            self.node_rows.number(observation["nodes"][node_mask]),
            np.flatnonzero(node_mask).astype(np.int16),
            observation["ids"][node_mask].astype(np.int32),
            self.edge_rows.number(observation["edge_features"][edge_mask]),
            compact[observation["edges"][edge_mask]].astype(np.int32),
            observation["globals"].copy(),
            np.concatenate([candidates[:, :2], matched], 1).astype(np.int16),
            changes.copy(),
        )

    def batch(self, numbers: Sequence[int]) -> dict[str, Tensor]:
        """Return graphs as what `GraphEncoder` reads of a batch of observations, padded to the largest of them.

        Besides there are ``places`` and ``ids`` (B, N); of candidates ``matches``, ``match_mask`` and ``changes``.
        """
        graphs = [self.graphs[i] for i in numbers]
        node_mask = _prefix_mask([len(g.nodes) for g in graphs])
        edge_mask = _prefix_mask([len(g.edges) for g in graphs])
        match_mask = _prefix_mask([len(g.candidates) for g in graphs])
        node_rows, edge_rows = self.node_rows.rows(), self.edge_rows.rows()
        return {
            "node_mask": node_mask,
            "edge_mask": edge_mask,
            "match_mask": match_mask,
            "nodes": _pad(node_mask, node_rows[np.concatenate([g.nodes for g in graphs])]),
            "places": _pad(node_mask, np.concatenate([g.places for g in graphs]).astype(np.int64)),
            "ids": _pad(node_mask, np.concatenate([g.ids for g in graphs]).astype(np.int64)),
            "edge_features": _pad(edge_mask, edge_rows[np.concatenate([g.edges for g in graphs])]),
            "edges": _pad(edge_mask, np.concatenate([g.ends for g in graphs]).astype(np.int64)),
            "matches": _pad(match_mask, np.concatenate([g.candidates for g in graphs]).astype(np.int64)),
            "changes": _pad(match_mask, np.concatenate([g.changes for g in graphs])),
            "globals": torch.from_numpy(np.stack([g.globals for g in graphs])),
        }


def _prefix_mask(counts: Sequence[int]) -> Tensor:
    return torch.arange(max(counts))[None, :] < torch.tensor(counts)[:, None]


def _pad(mask: Tensor, values: NDArray[Any]) -> Tensor:
    """Return values, one for each true entry of a mask, where these are; zero elsewhere."""
    given = torch.from_numpy(values)
    result = given.new_zeros(*mask.shape, *given.shape[1:])
    result[mask] = given
    return result
