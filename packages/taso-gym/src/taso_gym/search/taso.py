"""TASO's cost-based backtracking search (Jia et al., SOSP'19, Algorithm 2; the dissertation's Algorithm 2).

Graphs are taken from a queue, cheapest first; a child is queued if it costs less than ``alpha`` times the best so far,
so that a rewrite which raises the cost a little can make room for one that lowers it more. Before that we go down once:
the bound is tight from the start. All matches of a state are weighed, those that lower the cost are applied best first
where they still do, and all is weighed anew, until nothing lowers the cost: so a rewrite that pays at fifty places of a
network is found after weighing all matches twice, not fifty times as in greedy search (`taso_gym.search.descent`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from taso_gym.cost.objective import Objective
from taso_gym.errors import OptionError
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search.descent import Descent

MOST_QUEUED = 500_000
"""Graphs that wait at most; then the dearer half is forgotten."""
Entry = tuple[int, int, int, Match]
"""(value, number in order of discovery, index of the parent in the tree, match)."""


class Taso(Descent):
    """The queue of graphs that are known but not yet expanded, and the hashes of all that were seen."""

    def __init__(
        self,
        start: RewriteState,
        rng: np.random.Generator,
        alpha: float = 1.05,
        descend: bool = True,
        objective: Objective | None = None,
    ) -> None:
        """Begin with the start.

        Args:
            start: where to begin.
            rng: not used: this search has no chance in it.
            alpha: 1.05 as in the paper (TASO's Python default is 1.0).
            descend: go down first; False is the published algorithm.
            objective: what is lowered; default the time.

        Raises:
            OptionError: an alpha below 1, by which even equally good graphs would be left out.
        """
        self.check_options(alpha=alpha)
        super().__init__(start, rng, alpha, objective)
        self.from_best = self._descending = descend
        self._queue: list[Entry] = []
        self._found = 0
        self._open: list[int] = [] if descend else [0]
        self._opened: int = 0

    @classmethod
    def check_options(cls, *, alpha: float = 1.05, **others: Any) -> None:
        """Refuse an alpha below 1."""
        super().check_options(**others)
        if not (isinstance(alpha, Real) and alpha >= 1):
            raise OptionError(f"expected an alpha of 1 or more, found {alpha!r}")

    @property
    def settled(self) -> bool:
        """Whether it has gone down."""
        return not self._descending

    def step(self) -> bool:
        """Take the cheapest graph that is still worth it, or queue some of its children."""
        if self._descending:
            self._descending = self._descend()
            return True
        if self._open:
            self._expand()
            return True
        while self._queue:
            cost, _, parent, match = heapq.heappop(self._queue)
            if cost < (most := self.alpha * self.best_value):
                index, _ = self.add(parent, match)
                if self.values[index] < most:  # its cost may have been a bound
                    self._open.append(index)
                return True
        return False

    def _bottom(self) -> bool:
        """Expand the start and the best graph from here on, and return False: it has gone down."""
        self._open += dict.fromkeys((0, self.best))
        return False

    def _expand(self) -> None:
        """Weigh some matches of the first graph that is open, and queue the children that may be worth it."""
        index = self._open[0]
        state, value = self.state(index), self.values[index]
        large = len(state.graph.nodes) > 2 * max(len(self.state(i).graph.nodes) for i in (0, self.best))
        matches = [] if large and not self._opened else [match for row in state.matches for match in row]
        done = self.explored
        unseen = (m for m in self.chunk(matches[self._opened :], self._opened) if state.child_hash(m) not in self._seen)
        for match, change in self.changes(state, unseen):
            if (cost := value + change) < self.alpha * self.best_value:
                self._seen.add(state.child_hash(match))
                self._found += 1
                heapq.heappush(self._queue, (cost, self._found, index, match))
        self._opened += self.explored - done
        if len(self._queue) > MOST_QUEUED:
            self._queue = heapq.nsmallest(MOST_QUEUED // 2, self._queue)
        if self._opened >= len(matches):
            self._open.pop(0)
            self._opened = 0

    def finish(self, interrupted: Callable[[], bool]) -> None:
        """Apply what lowers the value: of what the descent weighed, and the cheapest of the queue."""
        super().finish(interrupted)
        if self._queue and self._queue[0][0] < self.best_value:
            self.add(*self._queue[0][2:])

    def frontier(self) -> Any:
        """Queue and seen hashes, and where the descent is."""
        queue = [[c, n, p, m.rule, list(m.nodes), m.variant] for c, n, p, m in self._queue]
        here = {"descending": self._descending, "open": self._open, "opened": self._opened}
        return {"queue": queue, "found": self._found, **here, **super().frontier()}

    def resume(self, frontier: Any) -> None:
        """Take them up."""
        super().resume(frontier)
        self._queue = [(c, n, p, Match(r, tuple(nodes), v)) for c, n, p, r, nodes, v in frontier["queue"]]
        heapq.heapify(self._queue)
        self._found, self._descending = frontier["found"], frontier["descending"]
        self._open, self._opened = list(frontier["open"]), frontier["opened"]
        self.expect_frontier(
            matches=[match for *_, match in self._queue],
            indices=[*self._open, *(parent for _, _, parent, _ in self._queue)],
            counts=[self._found, self._opened],
            values=[value for value, *_ in self._queue],
        )
