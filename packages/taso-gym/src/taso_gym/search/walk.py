"""Random search: uniformly random legal walks from the start, over and over; the baseline of baselines."""

from __future__ import annotations

from typing import Any

import numpy as np

from taso_gym.checks import check_positive
from taso_gym.cost.objective import Objective
from taso_gym.rules.state import RewriteState
from taso_gym.search.searcher import Searcher


class RandomWalk(Searcher):
    """The walk's present state and length."""

    def __init__(
        self, start: RewriteState, rng: np.random.Generator, horizon: int = 50, objective: Objective | None = None
    ) -> None:
        """Begin a walk that starts again after ``horizon`` rewrites or when no match is left.

        Raises:
            OptionError: the horizon isn't a whole number from 1 on.
        """
        super().__init__(start, rng, objective)
        check_positive(horizon=horizon)
        self.horizon = horizon
        self._at = 0
        self._length = 0

    def step(self) -> bool:
        """Apply a random match, uniform over the legal ones."""
        state = self.state(self._at)
        candidates = [m for matches in state.matches for m in matches]
        if not candidates or self._length == self.horizon:
            if not self._length:
                return False
            self._at = self._length = 0
            return True
        self.explored += 1
        self._at, _ = self.add(self._at, candidates[self.rng.integers(len(candidates))])
        self._length += 1
        return True

    def frontier(self) -> Any:
        """Where the walk is."""
        return [self._at, self._length]

    def resume(self, frontier: Any) -> None:
        """Stand where the walk was."""
        self._at, self._length = frontier
        self.expect_frontier(indices=[self._at], counts=[self._length])
