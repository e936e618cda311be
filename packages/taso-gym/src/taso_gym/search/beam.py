"""Beam search: of all children of the present states, the cheapest few go on, dearer than their parents or not."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np

from taso_gym.checks import check_positive
from taso_gym.cost.objective import Objective
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
        """Keep ``width`` states a depth; end after ``patience`` depths without a new best.

        Raises:
            OptionError: one of them isn't a whole number from 1 on.
        """
        super().__init__(start, rng, objective)
        check_positive(width=width, patience=patience)
        self.width, self.patience = width, patience
        self._beam = [0]
        self._seen = {start.hash}
        self._stale = 0
        self._weighed = 0
        self._children: dict[int, tuple[int, int, Match]] = {}
        self._candidates: list[tuple[int, Match]] | None = None

    @property
    def settled(self) -> bool:
        """Whether the last depth brought nothing better."""
        return self._stale > 0

    def step(self) -> bool:
        """Weigh some children of the beam, or go one depth further when all are weighed."""
        if self._weighed >= len(self._listed()):
            return self._go_on()
        for index, match in self.chunk(self._listed()[self._weighed :], self._weighed):
            state = self.state(index)
            child = state.child_hash(match)
            if child not in self._seen and child not in self._children:
                self._children[child] = (self.values[index] + self.change(state, match), index, match)
            self._weighed += 1
        return True

    def _go_on(self) -> bool:
        """Let the cheapest children be the beam; those found first where several cost the same."""
        before = self.best_value
        kept = heapq.nsmallest(self.width, self._children.items(), key=lambda item: item[1][0])
        self._seen.update(child for child, _ in kept)
        self._beam = [self.add(parent, match)[0] for _, (_, parent, match) in kept]
        self._weighed, self._children = 0, {}
        self._candidates = None
        self._stale = 0 if self.best_value < before else self._stale + 1
        return bool(self._beam) and self._stale < self.patience

    def finish(self, interrupted: Callable[[], bool]) -> None:  # noqa: ARG002 - one rewrite
        """Apply the best of what was weighed at this depth."""
        cheapest = min(self._children.values(), key=lambda child: child[0], default=None)
        if cheapest and cheapest[0] < self.best_value:
            self.add(*cheapest[1:])

    def _listed(self) -> list[tuple[int, Match]]:
        """Return the matches of the beam, each with the index of its state."""
        if self._candidates is None:
            self._candidates = [(i, match) for i in self._beam for row in self.state(i).matches for match in row]
        return self._candidates

    def frontier(self) -> Any:
        """The beam, the seen hashes, the depths since the last improvement, and what was weighed."""
        children = [[h, v, p, m.rule, list(m.nodes), m.variant] for h, (v, p, m) in self._children.items()]
        return [self._beam, sorted(self._seen), self._stale, self._weighed, children]

    def resume(self, frontier: Any) -> None:
        """Take them up."""
        self._beam, seen, self._stale, self._weighed, children = frontier
        self._seen = set(seen)
        self._children = {h: (v, p, Match(rule, tuple(nodes), variant)) for h, v, p, rule, nodes, variant in children}
        self._candidates = None
        self.expect_frontier(
            matches=[match for _, _, match in self._children.values()],
            indices=[*self._beam, *(parent for _, parent, _ in self._children.values())],
            counts=[*self._seen, *self._children, self._stale, self._weighed],
            values=[value for value, _, _ in self._children.values()],
        )
