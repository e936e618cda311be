"""What every search shares: the states found so far as a tree of rewrites, and the best of them.

A search holds its frontier as (cost, index in the tree, match): a child is applied only when it is its turn, since its
cost and hash are known from the match alone. So memory grows with the states expanded and not with those seen, and a
checkpoint is the tree of matches: text, rebuilt by applying them, never pickled objects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import Any

import numpy as np

from taso_gym.errors import OptionError
from taso_gym.rules.state import Match, RewriteState

KEPT_STATES = 2048
"""States of the tree that stay in memory, those used last; the others are rebuilt from their nearest kept ancestor."""


class Searcher(ABC):
    """A search in progress: call `step` until it returns False or the budget is spent.

    Attributes:
        explored: rewrites applied or weighed so far; the unit of step budgets.
        exhausted: nothing is left to do.
        best: index of the cheapest state in the tree.
        best_ps: its cost, in picoseconds.
    """

    def __init__(self, start: RewriteState, rng: np.random.Generator) -> None:
        """Begin at a state; ``rng`` is the only source of chance."""
        self.rng = rng
        self.explored = 0
        self.exhausted = False
        self.best = 0
        self.best_ps = start.cost.time_ps
        self._start = start
        self._tree: list[tuple[int, Match]] = [(-1, Match(-1, (), 0))]
        self._states: OrderedDict[int, RewriteState] = OrderedDict()

    @abstractmethod
    def step(self) -> bool:
        """Do one unit of work, short enough to be interrupted after; return False when nothing is left to do."""

    @abstractmethod
    def frontier(self) -> Any:
        """Return what `resume` needs besides the tree, made of numbers, strings, lists and dicts only."""

    @abstractmethod
    def resume(self, frontier: Any) -> None:
        """Go on from what `frontier` returned."""

    def state(self, index: int) -> RewriteState:
        """Return a state of the tree, rebuilt if it isn't kept."""
        if not index:
            return self._start
        if index in self._states:
            self._states.move_to_end(index)
            return self._states[index]
        missing = [index]
        while (parent := self._tree[missing[-1]][0]) and parent not in self._states:
            missing.append(parent)
        state = self._states.get(parent, self._start)
        for step in reversed(missing):
            state = state.apply(self._tree[step][1])
        self._keep(index, state)
        return state

    def _keep(self, index: int, state: RewriteState) -> None:
        self._states[index] = state
        if len(self._states) > KEPT_STATES:
            self._states.popitem(last=False)

    def add(self, parent: int, match: Match) -> tuple[int, RewriteState]:
        """Apply a match to a state of the tree; return the new state with its index and remember the best."""
        state = self.state(parent).apply(match)
        self._tree.append((parent, match))
        index = len(self._tree) - 1
        self._keep(index, state)
        if state.cost.time_ps < self.best_ps:
            self.best, self.best_ps = index, state.cost.time_ps
        return index, state

    def path(self, index: int) -> tuple[Match, ...]:
        """Return the matches that lead from the start to a state of the tree."""
        matches: list[Match] = []
        while index:
            index, match = self._tree[index]
            matches.append(match)
        return tuple(reversed(matches))

    def checkpoint(self) -> dict[str, Any]:
        """Return the search as plain data."""
        tree = [[parent, m.rule, list(m.nodes), m.variant] for parent, m in self._tree[1:]]
        return {
            "explored": self.explored,
            "exhausted": self.exhausted,
            "best": [self.best, self.best_ps],
            "tree": tree,
            "rng": self.rng.bit_generator.state,
            "frontier": self.frontier(),
        }

    def restore(self, data: dict[str, Any]) -> None:
        """Go on from what `checkpoint` returned, to the same result as without the interruption.

        Raises:
            OptionError: the data isn't a checkpoint of this kind of search.
        """
        try:
            self._tree[1:] = [(p, Match(r, tuple(nodes), v)) for p, r, nodes, v in data["tree"]]
            self.explored, self.exhausted = data["explored"], data["exhausted"]
            self.best, self.best_ps = data["best"]
            self.rng.bit_generator.state = data["rng"]
            self.resume(data["frontier"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise OptionError(f"expected a checkpoint of {type(self).__name__}, found damaged data: {error}") from error
