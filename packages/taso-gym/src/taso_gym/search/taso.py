"""TASO's cost-based backtracking search (Jia et al., SOSP'19, Algorithm 2; the dissertation's Algorithm 2).

Graphs are taken from a queue, cheapest first; a child is queued if it costs less than ``alpha`` times the best so far,
so that a rewrite which raises the cost a little can make room for one that lowers it more. Before that we go down once:
the bound is tight from the start. All matches of a state are weighed, those that lower the cost are applied best first
where they still do, and all is weighed anew, until nothing lowers the cost: so a rewrite that pays at fifty places of a
network is found after weighing all matches twice, not fifty times as in greedy search.

Where costs are measured, a second look follows: a rewrite that costs a little by itself is applied and what it makes
possible around it, best first, and all of it is kept where the sum pays. So Winograd's form of a convolution is found
whose product is only then written in the way that is fast, at thirty-three places at once. What doesn't pay at one
place isn't looked at where the same rule changes the cost by the same. Then it goes down again. And a rewrite that
gains much may prevent another that gains less and would leave it possible: Winograd's form of one of two convolutions
that can be merged. Of two that share operators both orders are tried, each with what it makes possible.
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
from taso_gym.search.searcher import CHUNK, Searcher

LOOKED_AT, DEARER = 0.002, 0.5
"""A second look is taken at a rewrite of operators that take at least the first part of all time, and that makes them
dearer by the second part of theirs at most."""
REAL_PS = 1_000_000
"""A gain below a microsecond is taken after it, such as a fusion that onnxruntime would have done: it is in the way."""
STEPS = 8
"""Rewrites that follow one that is looked at, at most."""
RIVALS, RIVAL = 2, 0.1
"""So many rewrites that share operators with one that is to be applied may come before it, which gain at least this
part of what it gains."""

Entry = tuple[int, int, int, Match]
"""(value, number in order of discovery, index of the parent in the tree, match)."""


class Taso(Searcher):
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
        super().__init__(start, rng, objective)
        if not (isinstance(alpha, Real) and alpha >= 1):
            raise OptionError(f"expected an alpha of 1 or more, found {alpha!r}")
        self.alpha = alpha
        self._descending = descend
        self._waiting: list[tuple[Match, int]] = []
        self._weighed: list[tuple[Match, int]] = []
        self._doubtful: list[tuple[Match, int]] = []
        self._lowest = 0
        self._vain: set[tuple[int, int]] = set()
        self._rival_first: dict[tuple[int, int, int, int], bool] = {}
        self._looks = not self.costs_are_fixed and self._objective.is_time
        self._seen = {start.hash}
        self._queue: list[Entry] = []
        self._found = 0
        if not descend:
            self._expand(0, start)

    @property
    def settled(self) -> bool:
        """Whether it has gone down."""
        return not self._descending

    def step(self) -> bool:
        """Take the cheapest graph that is still worth it and queue its children."""
        if self._descending:
            self._descending = self._descend()
            return True
        while self._queue:
            cost, _, parent, match = heapq.heappop(self._queue)
            if cost < self.alpha * self.best_value:
                self._expand(*self.add(parent, match))
                return True
        return False

    def _descend(self) -> bool:
        """Apply the best match that waits and still lowers the cost, or weigh some more.

        Before what gains next to nothing it looks at what may pay together with others.
        """
        if self._doubtful:
            self._look(*self._doubtful.pop())
            return bool(self._doubtful or self._waiting) or self.best != self._lowest or self._bottom()
        state = self.state(self.best)
        if self._apply_waiting(state):
            return True
        matches = [match for row in state.matches for match in row]
        if some := matches[len(self._weighed) : len(self._weighed) + CHUNK]:
            self._weighed += [(match, self.change(state, match)) for match in some]
            self.explored += len(some)
            return True
        self._sort_weighed()
        return bool(self._doubtful or self._waiting) or self._bottom()

    def _bottom(self) -> bool:
        """Queue the children of the start and of the best graph, and return False: it has gone down."""
        for index in dict.fromkeys((0, self.best)):
            self._expand(index, self.state(index))
        return False

    def _apply_waiting(self, state: RewriteState) -> bool:
        """Apply to the best state the first waiting match that still lowers the value; False if there is none."""
        while self._waiting:
            match, _ = self._waiting.pop()
            if match in state.matches[match.rule] and (change := self.change(state, match)) < 0:
                self.explored += 1
                self._take(state, match, change)
                return True
        return False

    def _take(self, state: RewriteState, match: Match, change: int) -> None:
        """Apply a match to the best state, or one before it that it would prevent if both together gain more."""
        parent, first = self.best, match
        for rival, gain in self._rivals(state, match, change):
            key = (match.rule, change, rival.rule, gain)
            if key not in self._rival_first:
                alone, after = (self._follow(parent, begun, match) for begun in (match, rival))
                self._rival_first[key] = after < alone
                return
            if self._rival_first[key]:
                first = rival
                break
        index, child = self.add(parent, first)
        self._seen.add(child.hash)
        assert index == self.best

    def _rivals(self, state: RewriteState, match: Match, change: int) -> list[tuple[Match, int]]:
        """Return what waits, would be prevented by a match and gains less, but much: the most first, like ones once."""
        found: dict[tuple[int, int], Match] = {}
        nodes, least = set(match.nodes), min(RIVAL * change, -REAL_PS)
        for other, known in reversed(self._waiting if self._looks else []):
            if known > least or len(found) == RIVALS:
                break
            replaced = set(other.nodes)
            if nodes & replaced and replaced - nodes and other in state.matches[other.rule]:
                found.setdefault((other.rule, self.change(state, other)), other)
        return [(other, gain) for (_, gain), other in found.items() if gain < 0]

    def _sort_weighed(self) -> None:
        lower = sorted(((m, change) for m, change in self._weighed if change < 0), key=lambda found: -found[1])
        if self._looks and lower and lower[-1][1] <= -REAL_PS:
            lower = [(match, change) for match, change in lower if change <= -REAL_PS]
        elif self._looks:
            self._doubtful, self._lowest = self._worth_a_look(), self.best
        self._waiting, self._weighed = lower, []

    def _worth_a_look(self) -> list[tuple[Match, int]]:
        """Return the matches of the best state that may pay together with others, those of most time last."""
        state, most = self.state(self.best), (self.alpha - 1) * self.best_value
        found: list[tuple[int, Match, int]] = []
        for match, change in self._weighed:
            if 0 <= change <= most and (match.rule, change) not in self._vain:
                time_ps = self.matched_ps(state, match)
                if time_ps >= LOOKED_AT * self.best_value and change <= DEARER * time_ps:
                    found.append((time_ps, match, change))
        return [(match, change) for _, match, change in sorted(found)]

    def _look(self, match: Match, change: int) -> None:
        """Apply a match to the best state, and what then lowers the value around it, best first."""
        least = self.best_value
        if (match.rule, change) in self._vain or match not in self.state(self.best).matches[match.rule]:
            return
        self._follow(self.best, match)
        if self.best_value >= least:
            self._vain.add((match.rule, change))

    def _follow(self, parent: int, first: Match, also: Match | None = None) -> int:
        """Apply a match, and what then lowers the value around it, best first; return the value.

        Args:
            parent: index of the state that it is applied to.
            first: it.
            also: what may follow as well, if it is possible yet.
        """
        state, index, following = self.state(parent), parent, first
        for _ in range(STEPS):
            index, child = self.add(index, following)
            new = [m for rule in child.renewed for m in set(child.matches[rule]).difference(state.matches[rule])]
            if also and also in child.matches[also.rule]:
                new.append(also)
            self.explored += 1 + len(new)
            gain, following = min(((self.change(child, m), m) for m in new), default=(0, first))
            if gain >= 0:
                break
        return self.values[index]

    def finish(self, interrupted: Callable[[], bool]) -> None:
        """Apply what was weighed on the way down and lowers the value."""
        if self._weighed:
            self._sort_weighed()
        while not interrupted() and self._apply_waiting(self.state(self.best)):
            pass

    def _expand(self, index: int, state: RewriteState) -> None:
        if len(state.graph.nodes) > 2 * max(len(self.state(i).graph.nodes) for i in (0, self.best)):
            return
        value = self.values[index]
        for match in (m for matches in state.matches for m in matches):
            self.explored += 1
            cost = value + self.change(state, match)
            if cost >= self.alpha * self.best_value:
                continue
            child = state.child_hash(match)
            if child not in self._seen:
                self._seen.add(child)
                self._found += 1
                heapq.heappush(self._queue, (cost, self._found, index, match))

    def frontier(self) -> Any:
        """Queue and seen hashes."""
        queue = [[c, n, p, m.rule, list(m.nodes), m.variant] for c, n, p, m in self._queue]
        waiting, weighed, doubtful = (
            [[m.rule, list(m.nodes), m.variant, change] for m, change in found]
            for found in (self._waiting, self._weighed, self._doubtful)
        )
        down = {"descending": self._descending, "waiting": waiting, "weighed": weighed}
        down |= {"doubtful": doubtful, "vain": sorted(map(list, self._vain)), "lowest": self._lowest}
        down["rivals"] = [[*key, first] for key, first in self._rival_first.items()]
        return {"queue": queue, "found": self._found, "seen": sorted(self._seen), **down}

    def resume(self, frontier: Any) -> None:
        """Take up the queue and the seen hashes."""
        self._queue = [(c, n, p, Match(r, tuple(nodes), v)) for c, n, p, r, nodes, v in frontier["queue"]]
        heapq.heapify(self._queue)
        self._found, self._seen = frontier["found"], set(frontier["seen"])
        self._descending = frontier["descending"]
        self._waiting, self._weighed, self._doubtful = (
            [(Match(r, tuple(nodes), v), change) for r, nodes, v, change in frontier[name]]
            for name in ("waiting", "weighed", "doubtful")
        )
        self._rival_first = {(a, b, c, d): first for a, b, c, d, first in frontier["rivals"]}
        self._vain, self._lowest = {(rule, change) for rule, change in frontier["vain"]}, frontier["lowest"]
