"""TASO's cost-based backtracking search (Jia et al., SOSP'19, Algorithm 2; the dissertation's Algorithm 2).

Graphs are taken from a queue, cheapest first; a child is queued if it costs less than ``alpha`` times the best so far,
so that a rewrite which raises the cost a little can make room for one that lowers it more. Before that we go down once
greedily: the bound is tight from the start, and the result is never worse than greedy search's.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from taso_gym.errors import OptionError
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search.searcher import Searcher

Entry = tuple[int, int, int, Match]
"""(cost in ps, number in order of discovery, index of the parent in the tree, match)."""


class Taso(Searcher):
    """The queue of graphs that are known but not yet expanded, and the hashes of all that were seen."""

    def __init__(
        self, start: RewriteState, rng: np.random.Generator, alpha: float = 1.05, descend: bool = True
    ) -> None:
        """Begin with the start in the queue.

        Args:
            start: where to begin.
            rng: not used: this search has no chance in it.
            alpha: 1.05 as in the paper (TASO's Python default is 1.0).
            descend: go down greedily first; False is the published algorithm.

        Raises:
            OptionError: an alpha below 1, by which even equally good graphs would be left out.
        """
        super().__init__(start, rng)
        if not alpha >= 1:
            raise OptionError(f"expected an alpha of 1 or more, found {alpha}")
        self.alpha = alpha
        self._descending = descend
        self._seen = {start.hash}
        self._queue: list[Entry] = []
        self._found = 0
        self._limit_nodes = 2 * len(start.graph)
        self._expand(0, start)

    def step(self) -> bool:
        """Take the cheapest graph that is still worth it and queue its children."""
        if self._descending:
            self._descending = self._descend()
            return True
        while self._queue:
            cost, _, parent, match = heapq.heappop(self._queue)
            if cost < self.alpha * self.best_ps:
                self._expand(*self.add(parent, match))
                return True
        return False

    def _descend(self) -> bool:
        """Go from the best graph to its best child; at the bottom queue all children and return False."""
        state = self.state(self.best)
        changes = {match: state.delta(match).time_ps for matches in state.matches for match in matches}
        self.explored += len(changes)
        best = min(changes, key=changes.__getitem__, default=None)
        if best is not None and changes[best] < 0:
            _, child = self.add(self.best, best)
            self._seen.add(child.hash)
            return True
        if self.best:
            self._expand(self.best, state)
        return False

    def _expand(self, index: int, state: RewriteState) -> None:
        if len(state.graph) > self._limit_nodes:
            return
        for match in (m for matches in state.matches for m in matches):
            self.explored += 1
            cost = state.cost.time_ps + state.delta(match).time_ps
            if cost >= self.alpha * self.best_ps:
                continue
            child = state.child_hash(match)
            if child not in self._seen:
                self._seen.add(child)
                self._found += 1
                heapq.heappush(self._queue, (cost, self._found, index, match))

    def frontier(self) -> Any:
        """Queue and seen hashes."""
        queue = [[c, n, p, m.rule, list(m.nodes), m.variant] for c, n, p, m in self._queue]
        return {"queue": queue, "found": self._found, "seen": sorted(self._seen), "descending": self._descending}

    def resume(self, frontier: Any) -> None:
        """Take up the queue and the seen hashes."""
        self._queue = [(c, n, p, Match(r, tuple(nodes), v)) for c, n, p, r, nodes, v in frontier["queue"]]
        heapq.heapify(self._queue)
        self._found, self._seen = frontier["found"], set(frontier["seen"])
        self._descending = frontier["descending"]
