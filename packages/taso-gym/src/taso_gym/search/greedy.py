"""Greedy search: apply whatever lowers the cost most, until nothing does."""

from __future__ import annotations

from typing import Any

from taso_gym.search.searcher import Searcher


class Greedy(Searcher):
    """Steepest descent; the first of equally good matches in canonical order."""

    def step(self) -> bool:
        """Weigh all matches of the best state and apply the best of them."""
        state = self.state(self.best)
        candidates = [m for matches in state.matches for m in matches]
        self.explored += len(candidates)
        changes = [self.change(state, m) for m in candidates]
        if not changes or min(changes) >= 0:
            return False
        self.add(self.best, candidates[changes.index(min(changes))])
        return True

    def frontier(self) -> Any:
        """Nothing besides the best state."""
        return None

    def resume(self, frontier: Any) -> None:
        """Nothing to restore."""
