"""The file of a search in progress: what it has found and where it stands, as text."""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from taso_gym.atomic import check_target, write_text
from taso_gym.errors import OptionError
from taso_gym.graph import Graph
from taso_gym.rules.state import RewriteState
from taso_gym.search.searcher import Searcher
from taso_gym.signature import stable_hash

CHECKPOINT_SECONDS = 30.0
"""A search in progress is written down so often."""


def graph_of(path: str | Path | None) -> str | None:
    """Return what `named` says of the graph that the search of a file began with; None without one, or if damaged."""
    try:
        found = saved(path) if path else None
    except OptionError:
        return None
    return found.identity.get("graph") if found else None


def named(graph: Graph) -> str:
    """Return a name of a graph whose nodes have these numbers, by which a checkpoint tells its rewrites, and opsets."""
    nodes = [(node_id, node.sig.hash, node.inputs) for node_id, node in graph.operators()]
    return f"{graph.canonical_digest()}-{stable_hash(nodes, sorted(graph.info.opsets.items())):016x}"


class Saved(NamedTuple):
    """What a checkpoint says: whose it is, the seconds that were spent, and where the searcher was."""

    identity: dict[str, Any]
    seconds: float
    searcher: Any


def saved(path: str | Path) -> Saved | None:
    """Return what a file of a search has; None where there is none.

    Raises:
        OptionError: the file is damaged.
    """
    if not os.path.exists(path):
        return None
    try:
        data = json.loads(Path(path).read_text())
        found = Saved(dict(data["identity"]), float(data["seconds"]), data["searcher"])
        if not 0 <= found.seconds < math.inf:
            raise ValueError(f"{found.seconds} seconds")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise OptionError(f"expected a search checkpoint, found damaged data in {path}: {error}") from error
    return found


class Checkpoint:
    """The file of a search in progress; says nothing when there is none."""

    def __init__(
        self, path: str | Path | None, start: RewriteState, search: str, seed: int, options: dict[str, Any]
    ) -> None:
        self.path = check_target(path) if path else None
        self.next = time.monotonic() + CHECKPOINT_SECONDS
        model = start.cost_model
        self.identity = {
            "version": version("taso-gym"),  # another may match otherwise
            "search": search,
            "seed": seed,
            "options": {k: str(v) for k, v in sorted(options.items())},
            "graph": named(start.graph) if path else "",
            "rules": start.rules.digest,
            "costs": start.cost.time_ps if model is None or model.deterministic else model.key,  # measured anew perhaps
        }

    def read(self, *, any_graph: bool = False) -> Saved | None:
        """Return what the file has; None where there is none.

        Args:
            any_graph: it may be of a search that began with another graph.

        Raises:
            OptionError: the file is damaged, or of another search.
        """
        if self.path is None or (left := saved(self.path)) is None:
            return None
        for key, expected in self.identity.items():
            found = left.identity.get(key)
            if found != expected and not (any_graph and key == "graph"):
                raise OptionError(f"{self.path}: expected {key} {expected!r}, the checkpoint has {found!r}")
        return left

    def load(self, searcher: Searcher) -> float:
        """Put a searcher where the file left it; return the seconds spent before.

        Raises:
            OptionError: the file is damaged, or of another search.
        """
        if (left := self.read()) is None:
            return 0.0
        try:
            searcher.restore(left.searcher)
        except OptionError as error:
            raise OptionError(f"{self.path}: {error}") from error
        return left.seconds

    def save_if_due(self, searcher: Searcher, seconds: float) -> None:
        """Write the file if half a minute has passed."""
        if time.monotonic() >= self.next:
            self.save(searcher, seconds)
            self.next = time.monotonic() + CHECKPOINT_SECONDS

    def save(self, searcher: Searcher, seconds: float) -> None:
        """Write the file, whole or not at all: what was found isn't lost for a disk that is full by now."""
        if self.path:
            data = {"identity": self.identity, "seconds": seconds, "searcher": searcher.checkpoint()}
            try:
                write_text(self.path, json.dumps(data, default=_plain))
            except OptionError as error:
                warnings.warn(f"the search goes on, but can't be taken up from here: {error}", stacklevel=3)


def _plain(number: Any) -> object:
    """Return a number of NumPy's, as a cost model of one's own may give, as one of Python's."""
    return number.item()
