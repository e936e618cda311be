"""What every search shares: the states found so far as a tree of rewrites, and the best of them.

A search holds its frontier as (cost, index in the tree, match): a child is applied only when it is its turn, since its
cost and hash are known from the match alone. So memory grows with the states expanded and not with those seen, and a
checkpoint is the tree of matches: text, rebuilt by applying them, never pickled objects.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from taso_gym.cost.objective import Objective, quantities
from taso_gym.cost_model import Cost, CostModel
from taso_gym.errors import OptionError
from taso_gym.graph import Graph
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search.saved_tree import check_frontier, check_tree

T = TypeVar("T")

NOISE = 0.01
"""Part of the measured time of matched operators below which a gain counts as none: measured anew, half of all times
differ by that or more, and a search that weighs thousands of rewrites would find those that were lucky."""

CHUNK = 32
"""Matches that are weighed in a step: with measured costs a step of all of a graph would take minutes."""
CHUNK_SECONDS = 1.0
"""A step that measures weighs no more matches after that."""

KEPT_STATES = 2048
"""States of the tree that stay in memory, those used last; the others are rebuilt from their nearest kept ancestor."""


class Searcher(ABC):
    """A search in progress: call `step` until it returns False or the budget is spent.

    Attributes:
        explored: rewrites applied or weighed so far; the unit of step budgets.
        exhausted: nothing is left to do.
        best: index in the tree of the state with the least value.
        best_value: its value: by default the cost in picoseconds and one more for each operator, see
            `taso_gym.cost.objective`; so of equally fast graphs the smaller one is better, and what is only in the way
            of other rules (a reshape of a reshape) goes. Gains within the noise of measured costs aren't counted.
        from_best: each step begins at the best state, wherever that is.
        most: no more is weighed in a step once so much was explored. By default there is no end to it.
        ended: asked within a step: whether the time is over or Ctrl-C was pressed. By default neither.
        late: asked within `finish`: whether what is left of the time is for what is known to lower the value.
    """

    from_best = False

    def __init__(self, start: RewriteState, rng: np.random.Generator, objective: Objective | None = None) -> None:
        """Begin at a state; ``rng`` is the only source of chance, ``objective`` what is lowered: default the time."""
        self.rng = rng
        self.explored: int = 0
        self.exhausted = False
        self.most = math.inf
        self.ended: Callable[[], bool] = _never
        self.late: Callable[[], bool] = _never
        self.best = 0
        self._start, self._objective = start, objective or Objective()
        self._at_start = quantities(start.graph, start.cost, start.cost_model, self._objective.needs)
        self.best_value = self.value(start)
        self.values: list[int] = [self.best_value]
        self._tree: list[tuple[int, Match]] = [(-1, Match(-1, (), 0))]
        self._states: OrderedDict[int, RewriteState] = OrderedDict()

    @classmethod  # noqa: B027  (most have none to check)
    def check_options(cls, **options: Any) -> None:
        """Raise OptionError for options of this search that it wouldn't take: before the start is costed."""

    def value(self, state: RewriteState) -> int:
        """Return what is lowered, of a state."""
        return self._value(state.graph, state.cost, state.cost_model, state.size.nodes)

    def change(self, state: RewriteState, match: Match) -> int:
        """Return by how much a legal match changes the value of a state."""
        return self._change(state, match, state.delta(match))

    def changes(self, state: RewriteState, matches: Iterable[Match]) -> list[tuple[Match, int]]:
        """Return legal matches with what `change` says of each; what has to be measured for that, may be together.

        Where time is lowered, less is said of what surely raises it by much: it isn't measured.
        """
        deltas = state.deltas(matches, bounded=self._objective.is_time and not self.costs_are_fixed)
        return [(match, self._change(state, match, delta)) for match, delta in deltas]

    def _change(self, state: RewriteState, match: Match, delta: Cost) -> int:
        if self._objective.is_time:
            return self.beyond_noise(state, match, delta.time_ps) + state.growth(match).nodes
        graph = state.graph if self._objective.of_sums else state.child_graph(match)
        return self._value(graph, state.cost + delta, state.cost_model, 0) - self.value(state)

    def _changed(self, before: RewriteState, match: Match, after: RewriteState) -> int:
        """Return what `change` does, of a match that has been applied."""
        if not self._objective.is_time:
            return self.value(after) - self.value(before)
        time_ps = self.beyond_noise(before, match, after.cost.time_ps - before.cost.time_ps)
        return time_ps + after.size.nodes - before.size.nodes

    def beyond_noise(self, state: RewriteState, match: Match, change_ps: int) -> int:
        """Return a match's change of time, or 0 where it is a gain within the noise of measured costs."""
        if change_ps >= 0 or self.costs_are_fixed:
            return change_ps
        return change_ps if -change_ps >= NOISE * self.matched(state, match).time_ps else 0

    @staticmethod
    def matched(state: RewriteState, match: Match) -> Cost:
        """Return the cost of the operators that a match replaces."""
        model, graph = state.cost_model, state.graph
        assert model is not None
        return sum((model.node(graph.nodes[i].sig, model.context(graph, i)) for i in match.nodes), Cost())

    def _value(self, graph: Graph, cost: Cost, model: CostModel | None, nodes: int) -> int:
        if self._objective.is_time:
            return cost.time_ps + nodes
        return self._objective.value(quantities(graph, cost, model, self._objective.needs), self._at_start)

    def chunk(self, matches: Iterable[T], done: int) -> Iterator[T]:
        """Yield what to weigh in a step, one at least: up to the next multiple of `CHUNK`, less where the search ends.

        Each counts as explored.

        So one that was interrupted goes on with the steps of one that wasn't. With measured costs it is less, too,
        where it takes long.

        Args:
            matches: those of a state that haven't been weighed.
            done: how many have been.
        """
        until = math.inf if self.costs_are_fixed else time.monotonic() + CHUNK_SECONDS
        for match in islice(matches, CHUNK - done % CHUNK):
            yield match
            self.explored += 1
            if self.ended() or self.explored >= self.most or time.monotonic() >= until:
                return

    def begin_with(self, path: Iterable[Match]) -> None:
        """Apply a path from the start, or what is left of it, as far as there is time; the best state may be on it.

        Nothing happens where a search doesn't go on from the best state, or has gone on.

        Raises:
            MatchError: a match isn't legal there.
        """
        known, done = tuple(path), len(self._tree) - 1
        if not self.from_best or self.explored != done or self.path(done) != known[:done]:
            return
        for match in known[done:]:
            if self.ended() or self.explored >= self.most:
                return
            done, _ = self.add(done, match)
            self.explored += 1

    @property
    def settled(self) -> bool:
        """Whether what is known to lower the value has been taken: from here on better graphs come by chance."""
        return True

    @property
    def reserve(self) -> float:
        """Part of the time that `finish` needs after what is known by now; none by default."""
        return 0.0

    def finish(self, interrupted: Callable[[], bool]) -> None:  # noqa: B027 - most searches have nothing left to take
        """Take what is known to lower the value when the budget ends before its turn; by default nothing is.

        Args:
            interrupted: whether to leave the rest, since the time is over; one rewrite is applied even so.
        """

    @property
    def costs_are_fixed(self) -> bool:
        """Whether costs are the same at any time: not measured."""
        model = self._start.cost_model
        return model is None or model.deterministic

    def advance(self) -> None:
        """Do a step, and note whether it was the last."""
        self.exhausted = not self.step()

    @abstractmethod
    def step(self) -> bool:
        """Do one unit of work, short enough to be interrupted after; return False when nothing is left to do."""

    @abstractmethod
    def frontier(self) -> Any:
        """Return what `resume` needs besides the tree, made of numbers, strings, lists and dicts only."""

    @abstractmethod
    def resume(self, frontier: Any) -> None:
        """Go on from what `frontier` returned.

        Raises:
            ValueError: it is nothing that a search writes; see `expect_frontier`.
        """

    def expect_frontier(self, **numbers: Any) -> None:
        """Raise ValueError for numbers that no search of this tree and these rules writes (see `check_frontier`)."""
        check_frontier(len(self._tree), len(self._start.rules), **numbers)

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
        before = self.state(parent)
        state = before.apply(match)
        value = self.values[parent] + self._changed(before, match, state)
        self._tree.append((parent, match))
        self.values.append(value)
        index = len(self._tree) - 1
        self._keep(index, state)
        if value < self.best_value:
            self.best, self.best_value = index, value
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
        tree = [
            [parent, m.rule, list(m.nodes), m.variant, value]
            for (parent, m), value in zip(self._tree[1:], self.values[1:], strict=True)
        ]
        return {
            "explored": self.explored,
            "exhausted": self.exhausted,
            "start": self.values[0],
            "best": [self.best, self.best_value],
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
            check_tree(data, len(self._start.rules))
            self._tree[1:] = [(p, Match(r, tuple(nodes), v)) for p, r, nodes, v, _ in data["tree"]]
            self.values[:] = [data["start"], *(int(value) for *_, value in data["tree"])]
            self.explored, self.exhausted = data["explored"], data["exhausted"]
            self.best, self.best_value = data["best"]
            self.rng.bit_generator.state = data["rng"]
            self.resume(data["frontier"])
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise OptionError(
                f"expected a checkpoint of {type(self).__name__}, found damaged data or another version's: {error}"
            ) from error


def _never() -> bool:
    return False
