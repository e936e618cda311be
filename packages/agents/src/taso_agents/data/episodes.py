"""Episodes to learn a world model from, and their file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taso_agents.data.graph_store import GraphStore, StoredGraph
from taso_gym.atomic import replacing
from taso_gym.checks import check_path
from taso_gym.errors import CheckpointError

FORMAT = 3
DIGITS = 4
"""Of costs in % of the start graph's, which are told apart."""
RAGGED = {
    "nodes": "node",
    "places": "node",
    "ids": "node",
    "edges": "edge",
    "ends": "edge",
    "candidates": "candidate",
    "changes": "candidate",
}
"""Array of a graph -> what it has a row for."""


@dataclass
class EpisodeRecord:
    """One episode of T steps.

    Attributes:
        graphs: T + 1 numbers in the store.
        counts: T + 1 rows of numbers of legal locations (N,).
        actions: T pairs (substitution, location).
        rewards: T.
        exhausted: it ended because no substitution was left, not by NO-OP or the step limit.
        origins: T arrays: for each candidate after a step its number before it, -1 for a new one.
    """

    graphs: list[int] = field(default_factory=list)
    counts: list[NDArray[np.int16]] = field(default_factory=list)
    actions: list[tuple[int, int]] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    exhausted: bool = False
    origins: list[NDArray[np.int16]] = field(default_factory=list)


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

    def seen(self) -> Tensor:
        """Return which substitutions were ever legal, (N,) bool."""
        return torch.from_numpy(np.any([np.any(e.counts, 0) for e in self.episodes], 0))

    def depth_histogram(self) -> NDArray[np.int64]:
        """Return how many states were seen after 0, 1, 2, … steps."""
        return np.bincount([d for e in self.episodes for d in range(len(e.graphs))])

    def digests(self) -> list[str]:
        """Return for each episode what tells it from others in any store: the graph it begins with, and its steps."""
        node_rows, edge_rows = self.store.node_rows.rows(), self.store.edge_rows.rows()
        found: list[str] = []
        for e in self.episodes:
            first = self.store.graphs[e.graphs[0]]
            begins = node_rows[first.nodes], first.ids, edge_rows[first.edges], first.ends, *first[-2:]
            steps = np.array(e.actions, np.int32), np.array(e.rewards, np.float32), np.stack(e.counts)
            told = b"|".join(part.tobytes() for part in (*begins, *steps))
            found.append(blake2b(told, digest_size=16).hexdigest())
        return found

    def cheapest(self) -> list[tuple[int, int]]:
        """Return the actions that lead to the cheapest graph of all episodes, the first of equals."""
        best, actions = 0.0, list[tuple[int, int]]()
        for episode in self.episodes:
            graphs = (self.store.graphs[number] for number in episode.graphs)
            changes = [g.change_of(action) for g, action in zip(graphs, episode.actions, strict=False)]
            costs = np.cumsum(changes).round(DIGITS)
            if costs.min() < best:
                best, actions = costs.min(), episode.actions[: int(costs.argmin()) + 1]
        return actions

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything as arrays; `dataset_of` makes a dataset of them."""
        store, episodes = self.store, self.episodes
        return {
            "format": np.array(FORMAT),
            "node_rows": store.node_rows.rows(),
            "edge_rows": store.edge_rows.rows(),
            "node_counts": _lengths([g.nodes for g in store.graphs]),
            "edge_counts": _lengths([g.edges for g in store.graphs]),
            "candidate_counts": _lengths([g.candidates for g in store.graphs]),
            "globals": np.stack([g.globals for g in store.graphs]),
            **{name: np.concatenate([getattr(g, name) for g in store.graphs]) for name in RAGGED},
            "lengths": _lengths([e.actions for e in episodes]),
            "graphs": np.concatenate([e.graphs for e in episodes]).astype(np.int32),
            "counts": np.concatenate([np.stack(e.counts) for e in episodes]),
            "actions": np.concatenate([np.array(e.actions, np.int32).reshape(-1, 2) for e in episodes]),
            "rewards": np.concatenate([np.array(e.rewards, np.float32) for e in episodes]),
            "origin_counts": _lengths([o for e in episodes for o in e.origins]),
            "origins": np.concatenate([o for e in episodes for o in e.origins]),
            "exhausted": np.array([e.exhausted for e in episodes]),
        }

    def save(self, path: str | Path) -> None:
        """Write everything, whole or not at all."""
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **self.arrays())


def dataset_of(arrays: dict[str, NDArray[Any]]) -> Dataset:
    """Return the dataset that `Dataset.arrays` took apart; states that are added later are recognised as equal."""
    return Dataset(_read_store(arrays), _read_episodes(arrays))


def load_dataset(path: str | Path) -> Dataset:
    """Read what `Dataset.save` wrote.

    Raises:
        CheckpointError: the file is missing, damaged or something else.
        OptionError: it is no path.
    """
    try:
        with check_path(path, "the path of episodes").open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        if arrays["format"] != FORMAT:
            raise CheckpointError(f"expected format {FORMAT} in {path}, found {arrays['format']}")
        return dataset_of(arrays)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise CheckpointError(f"expected episodes in {path}: {error}") from error


def _lengths(parts: Sequence[Any]) -> NDArray[np.int32]:
    return np.array([len(p) for p in parts], np.int32)


def _read_store(arrays: dict[str, NDArray[Any]]) -> GraphStore:
    store = GraphStore(arrays["node_rows"].shape[1], arrays["edge_rows"].shape[1])
    store.node_rows.fill(arrays["node_rows"])
    store.edge_rows.fill(arrays["edge_rows"])
    ends = {name: np.cumsum(arrays[f"{name}_counts"])[:-1] for name in ("node", "edge", "candidate")}
    parts = {"globals": list(arrays["globals"])}
    parts |= {name: np.split(arrays[name], ends[by]) for name, by in RAGGED.items()}
    for graph in zip(*parts.values(), strict=True):
        store.take(StoredGraph(**dict(zip(parts, graph, strict=True))))
    return store


def _read_episodes(arrays: dict[str, NDArray[Any]]) -> list[EpisodeRecord]:
    episodes: list[EpisodeRecord] = []
    origins = np.split(arrays["origins"], np.cumsum(arrays["origin_counts"])[:-1])
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
                origins[steps],
            )
        )
        step, state = steps.stop, states.stop
    return episodes
