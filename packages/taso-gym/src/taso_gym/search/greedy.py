"""Greedy search: apply whatever lowers the cost most, until nothing does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from taso_gym.cost.objective import Objective
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search.searcher import Searcher


class Greedy(Searcher):
    """Steepest descent; the first of equally good matches in canonical order."""

    from_best = True

    def __init__(self, start: RewriteState, rng: np.random.Generator, objective: Objective | None = None) -> None:
        """Begin with nothing weighed."""
        super().__init__(start, rng, objective)
        self._changes: list[int] = []

    @property
    def settled(self) -> bool:
        """Never: it ends where nothing lowers the cost."""
        return False

    def step(self) -> bool:
        """Weigh some matches of the best state, or apply the best of them when all are."""
        state, candidates = self.state(self.best), self._candidates()
        if len(self._changes) >= len(candidates):
            return self._apply_best()
        weighed = self.changes(state, self.chunk(candidates[len(self._changes) :], len(self._changes)))
        self._changes += [change for _, change in weighed]
        return True

    def _apply_best(self) -> bool:
        candidates = self._candidates()
        changes, self._changes = self._changes[: len(candidates)], []
        if min(changes, default=0) >= 0:
            return False
        self.add(self.best, candidates[changes.index(min(changes))])
        return True

    def _candidates(self) -> list[Match]:
        return [match for row in self.state(self.best).matches for match in row]

    def finish(self, interrupted: Callable[[], bool]) -> None:  # noqa: ARG002 - one rewrite
        """Apply the best of what was weighed."""
        self._apply_best()

    def frontier(self) -> Any:
        """What was weighed of the best state."""
        return self._changes

    def resume(self, frontier: Any) -> None:
        """Take it up."""
        self._changes = list(frontier)
        self.expect_frontier(values=self._changes)
