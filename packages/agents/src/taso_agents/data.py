"""Episodes to learn a world model from: graphs stored once, as numbers of the feature rows that occur in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taso_gym.atomic import replacing
from taso_gym.errors import CheckpointError

FORMAT = 1


class RowTable:
    """Different rows of floats, numbered in the order in which they are met."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._numbers: dict[bytes, int] = {}

    def number(self, rows: NDArray[np.float32]) -> NDArray[np.int32]:
        """Return the number of each row of (R, width)."""
        different, which = np.unique(rows, axis=0, return_inverse=True)
        numbers = [self._numbers.setdefault(row.tobytes(), len(self._numbers)) for row in different]
        return np.array(numbers, np.int32)[which.reshape(-1)]

    def fill(self, rows: NDArray[np.float32]) -> None:
        """Take the rows of another table, in their order."""
        self._numbers = {row.tobytes(): number for number, row in enumerate(np.ascontiguousarray(rows))}

    def rows(self) -> NDArray[np.float32]:
        """Return all rows by number."""
        return np.frombuffer(b"".join(self._numbers), np.float32).reshape(-1, self.width)


class StoredGraph(NamedTuple):
    """A graph without padding.

    Attributes:
        nodes: (n,) numbers of node rows.
        edges: (e,) numbers of edge rows.
        ends: (e, 2) producer and consumer, counted without gaps.
        globals: (G,).
    """

    nodes: NDArray[np.int32]
    edges: NDArray[np.int32]
    ends: NDArray[np.int32]
    globals: NDArray[np.float32]


class GraphStore:
    """Graphs of observations, equal keys once."""

    def __init__(self, node_width: int, edge_width: int) -> None:
        self.node_rows, self.edge_rows = RowTable(node_width), RowTable(edge_width)
        self.graphs: list[StoredGraph] = []
        self._keys: dict[Any, int] = {}

    def add(self, key: Any, observation: dict[str, NDArray[Any]]) -> int:
        """Store the graph of an observation unless its key is known; return its number."""
        if key not in self._keys:
            node_mask, edge_mask = observation["node_mask"] > 0, observation["edge_mask"] > 0
            compact = np.cumsum(node_mask) - 1
            self._keys[key] = len(self.graphs)
            self.graphs.append(
                StoredGraph(
                    self.node_rows.number(observation["nodes"][node_mask]),
                    self.edge_rows.number(observation["edge_features"][edge_mask]),
                    compact[observation["edges"][edge_mask]].astype(np.int32),
                    observation["globals"].copy(),
                )
            )
        return self._keys[key]

    def batch(self, numbers: Sequence[int]) -> dict[str, Tensor]:
        """Return graphs as what `GraphEncoder` reads of a batch of observations, padded to the largest of them."""
        graphs = [self.graphs[i] for i in numbers]
        node_mask = _prefix_mask([len(g.nodes) for g in graphs])
        edge_mask = _prefix_mask([len(g.edges) for g in graphs])
        result = {"node_mask": node_mask, "edge_mask": edge_mask}
        for name, mask, table, parts in (
            ("nodes", node_mask, self.node_rows, [g.nodes for g in graphs]),
            ("edge_features", edge_mask, self.edge_rows, [g.edges for g in graphs]),
        ):
            result[name] = torch.zeros(*mask.shape, table.width)
            result[name][mask] = torch.from_numpy(table.rows()[np.concatenate(parts)])
        result["edges"] = torch.zeros(*edge_mask.shape, 2, dtype=torch.long)
        result["edges"][edge_mask] = torch.from_numpy(np.concatenate([g.ends for g in graphs])).long()
        result["globals"] = torch.from_numpy(np.stack([g.globals for g in graphs]))
        return result


def _prefix_mask(counts: Sequence[int]) -> Tensor:
    return torch.arange(max(counts))[None, :] < torch.tensor(counts)[:, None]


@dataclass
class EpisodeRecord:
    """One episode of T steps.

    Attributes:
        graphs: T + 1 numbers in the store.
        counts: T + 1 rows of numbers of legal locations (N,).
        actions: T pairs (substitution, location).
        rewards: T.
        exhausted: it ended because no substitution was left, not by NO-OP or the step limit.
    """

    graphs: list[int] = field(default_factory=list)
    counts: list[NDArray[np.int16]] = field(default_factory=list)
    actions: list[tuple[int, int]] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    exhausted: bool = False


class Dataset:
    """Episodes and their graphs.

    Attributes:
        store: the graphs.
        episodes: in the order in which they were played.
    """

    def __init__(self, store: GraphStore, episodes: list[EpisodeRecord] | None = None) -> None:
        self.store, self.episodes = store, episodes or []

    @property
    def steps(self) -> int:
        """Real environment steps that it took."""
        return sum(len(e.actions) for e in self.episodes)

    def depth_histogram(self) -> NDArray[np.int64]:
        """Return how many states were seen after 0, 1, 2, … steps."""
        return np.bincount([d for e in self.episodes for d in range(len(e.graphs))])

    def save(self, path: str | Path) -> None:
        """Write everything as arrays, whole or not at all."""
        store, episodes = self.store, self.episodes
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(
                file,
                format=np.array(FORMAT),
                node_rows=store.node_rows.rows(),
                edge_rows=store.edge_rows.rows(),
                node_counts=_lengths([g.nodes for g in store.graphs]),
                edge_counts=_lengths([g.edges for g in store.graphs]),
                nodes=np.concatenate([g.nodes for g in store.graphs]),
                edges=np.concatenate([g.edges for g in store.graphs]),
                ends=np.concatenate([g.ends for g in store.graphs]),
                globals=np.stack([g.globals for g in store.graphs]),
                lengths=_lengths([e.actions for e in episodes]),
                graphs=np.concatenate([e.graphs for e in episodes]).astype(np.int32),
                counts=np.concatenate([np.stack(e.counts) for e in episodes]),
                actions=np.concatenate([np.array(e.actions, np.int32).reshape(-1, 2) for e in episodes]),
                rewards=np.concatenate([np.array(e.rewards, np.float32) for e in episodes]),
                exhausted=np.array([e.exhausted for e in episodes]),
            )


def load_dataset(path: str | Path) -> Dataset:
    """Read what `Dataset.save` wrote; states that are added later aren't recognised as equal to those in it.

    Raises:
        CheckpointError: the file is missing, damaged or something else.
    """
    try:
        with Path(path).open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        if arrays["format"] != FORMAT:
            raise CheckpointError(f"expected format {FORMAT} in {path}, found {arrays['format']}")
        store = _read_store(arrays)
        return Dataset(store, _read_episodes(arrays))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise CheckpointError(f"expected episodes in {path}: {error}") from error


def _lengths(parts: Sequence[Any]) -> NDArray[np.int32]:
    return np.array([len(p) for p in parts], np.int32)


def _read_store(arrays: dict[str, NDArray[Any]]) -> GraphStore:
    store = GraphStore(arrays["node_rows"].shape[1], arrays["edge_rows"].shape[1])
    store.node_rows.fill(arrays["node_rows"])
    store.edge_rows.fill(arrays["edge_rows"])
    node_ends, edge_ends = np.cumsum(arrays["node_counts"])[:-1], np.cumsum(arrays["edge_counts"])[:-1]
    parts = (
        np.split(arrays["nodes"], node_ends),
        np.split(arrays["edges"], edge_ends),
        np.split(arrays["ends"], edge_ends),
        arrays["globals"],
    )
    store.graphs = [StoredGraph(*graph) for graph in zip(*parts, strict=True)]
    return store


def _read_episodes(arrays: dict[str, NDArray[Any]]) -> list[EpisodeRecord]:
    episodes: list[EpisodeRecord] = []
    step = state = 0
    for length, exhausted in zip(arrays["lengths"].tolist(), arrays["exhausted"].tolist(), strict=True):
        steps, states = slice(step, step + length), slice(state, state + length + 1)
        episodes.append(
            EpisodeRecord(
                arrays["graphs"][states].tolist(),
                list(arrays["counts"][states]),
                [(int(x), int(location)) for x, location in arrays["actions"][steps]],
                arrays["rewards"][steps].tolist(),
                exhausted,
            )
        )
        step, state = steps.stop, states.stop
    return episodes
