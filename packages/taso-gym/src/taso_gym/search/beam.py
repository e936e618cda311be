"""Beam search: of all children of the present states, the cheapest few go on, dearer than their parents or not."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from taso_gym.cost.objective import Objective
from taso_gym.errors import OptionError
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search.searcher import Searcher


class Beam(Searcher):
    """The states of the present depth."""

    def __init__(
        self,
        start: RewriteState,
        rng: np.random.Generator,
        width: int = 8,
        patience: int = 10,
        objective: Objective | None = None,
    ) -> None:
        """Keep ``width`` states a depth; end after ``patience`` depths without a new best; both are 1 or more."""
        super().__init__(start, rng, objective)
        if min(width, patience) < 1:
            raise OptionError(f"expected a width and a patience of 1 or more, found {width} and {patience}")
        self.width, self.patience = width, patience
        self._beam = [0]
        self._seen = {start.hash}
        self._stale = 0

    def step(self) -> bool:
        """Go one depth further."""
        children: dict[int, tuple[int, int, int]] = {}
        matches: list[Match] = []
        for index in self._beam:
            state = self.state(index)
            for match in (m for found in state.matches for m in found):
                self.explored += 1
                child = state.child_hash(match)
                if child not in self._seen and child not in children:
                    children[child] = (self.values[index] + self.change(state, match), len(matches), index)
                    matches.append(match)
        before = self.best_value
        kept = heapq.nsmallest(self.width, children.items(), key=lambda item: item[1])
        self._seen.update(child for child, _ in kept)
        self._beam = [self.add(parent, matches[number])[0] for _, (_, number, parent) in kept]
        self._stale = 0 if self.best_value < before else self._stale + 1
        return bool(self._beam) and self._stale < self.patience

    def frontier(self) -> Any:
        """The beam, the seen hashes and the depths since the last improvement."""
        return [self._beam, sorted(self._seen), self._stale]

    def resume(self, frontier: Any) -> None:
        """Take them up."""
        self._beam, seen, self._stale = frontier
        self._seen = set(seen)
