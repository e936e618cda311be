"""Going down as far as costs say: what lowers the cost is applied best first, where it still does.

All matches of the best state are weighed before, in the order of `taso_gym.search.sweep`, and all anew when none is
left that lowers the cost.

Where costs are measured, a second look follows: a rewrite that costs a little by itself is applied and what it makes
possible around it, best first, and all of it is kept where the sum pays. So Winograd's form of a convolution is found
whose product is only then written in the way that is fast, at thirty-three places at once. What doesn't pay at one
place isn't looked at where the same rule changes the same cost by the same. Then it goes down again. And a rewrite that
gains much may prevent another that gains less and would leave it possible: Winograd's form of one of two convolutions
that can be merged. Or both are forms of the same operators, and the other is better with what it makes possible. Of
those that share operators each is tried as the first, with what it makes possible.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from taso_gym.cost.objective import Objective
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search.searcher import Searcher
from taso_gym.search.sweep import Gains, Sweep

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
FORMS, FORM = 2, 0.5
"""The same, of rewrites that replace none but these operators, and so come instead of it."""

FINISH = 0.2
"""Part of the time for applying what is weighed by then where it ends before all matches are."""


Key = tuple[int, int, int, int]
"""A rule and by how much it changes the value, and the same of its rival: what is alike at many places."""


class Descent(Searcher):
    """What waits to be applied, and what was weighed, of the best state; `_bottom` says how a search goes on."""

    from_best = True

    def __init__(
        self, start: RewriteState, rng: np.random.Generator, alpha: float, objective: Objective | None = None
    ) -> None:
        """Begin with the start; a rewrite is looked at that makes it less than ``alpha`` times as dear."""
        super().__init__(start, rng, objective)
        self.alpha = alpha
        self._waiting: list[tuple[Match, int]] = []
        self._weighed: list[tuple[Match, int]] = []
        self._found_gains = False
        self._doubtful: list[tuple[Match, int]] = []
        self._lowest = 0
        self._sweep: Sweep | None = None
        self._rule_gains: Gains = {}
        self._vain: set[tuple[int, int, int]] = set()
        self._rival_gains: dict[Key, int] = {}
        self._looks = not self.costs_are_fixed and self._objective.is_time
        self._seen = {start.hash}

    @abstractmethod
    def _bottom(self) -> bool:
        """Go on where nothing lowers the value any more; return whether it goes down yet."""

    def _descend(self) -> bool:
        """Apply the best match that waits and still lowers the cost, or weigh some more.

        Before what gains next to nothing it looks at what may pay together with others.
        """
        if self._doubtful:
            self._look(*self._doubtful.pop())
            return bool(self._doubtful or self._waiting) or self.best != self._lowest or self._bottom()
        state = self.state(self.best)
        if self._apply_waiting(state) or self._waiting:
            return True
        sweep = self._sweep_of(state)
        weighed = self.changes(state, self.chunk(sweep.upcoming(), len(self._weighed)))
        sweep.weighed(weighed)
        self._weighed += weighed
        self._found_gains |= any(change < 0 for _, change in weighed)
        if sweep:
            return True
        self._sort_weighed()
        return bool(self._doubtful or self._waiting) or self._bottom()

    def _sweep_of(self, state: RewriteState) -> Sweep:
        """Return what is left to weigh of the best state, a new sweep once all was."""
        if not (self._weighed and self._sweep):
            known = {match for match, _ in self._weighed}
            left = (match for row in state.matches for match in row if match not in known)
            replaced = None if self.costs_are_fixed else partial(self.matched, state)
            self._sweep = Sweep(left, replaced, self._rule_gains)
        return self._sweep

    def _apply_waiting(self, state: RewriteState) -> bool:
        """Apply to the best state the first waiting match that still lowers the value; False if none did so far."""
        while self._waiting:
            match, _ = self._waiting.pop()
            if match in state.matches[match.rule] and (change := self.change(state, match)) < 0:
                self.explored += 1
                self._take(state, match, change)
                return True
            if self.ended():
                break
        return False

    def _take(self, state: RewriteState, match: Match, change: int) -> None:
        """Apply a match to the best state, or one that it would prevent if that gains more with what follows."""
        parent, rivals = self.best, self._rivals(state, match, change)
        unknown = {key: rival for key, rival in rivals.items() if key not in self._rival_gains}
        if unknown and not self._cut_short():
            alone = self._follow(parent, match)
            for key, rival in unknown.items():
                gain = alone - self._follow(parent, rival, match)
                if not self._cut_short():
                    self._rival_gains[key] = gain
            return
        better = [key for key in rivals if self._rival_gains.get(key, 0) > 0]
        first = rivals[max(better, key=self._rival_gains.__getitem__)] if better else match
        index, child = self.add(parent, first)
        self._seen.add(child.hash)
        assert index == self.best

    def _rivals(self, state: RewriteState, match: Match, change: int) -> dict[Key, Match]:
        """Return what waits, would be prevented by a match and gains less, but much: the most first, like ones once."""
        before, instead = dict[Key, Match](), dict[Key, Match]()
        nodes, least = set(match.nodes), min(RIVAL * change, -REAL_PS)
        for other, known in reversed(self._waiting if self._looks and not self.late() else []):
            if known > least:
                break
            if nodes.isdisjoint(other.nodes):
                continue
            is_form = nodes.issuperset(other.nodes)
            found, most = (instead, FORMS) if is_form else (before, RIVALS)
            if len(found) == most or (is_form and known > FORM * change) or other not in state.matches[other.rule]:
                continue
            if (gain := self.change(state, other)) < 0:
                found.setdefault((match.rule, change, other.rule, gain), other)
        return before | instead

    def _sort_weighed(self) -> None:
        lower = sorted(((m, change) for m, change in self._weighed if change < 0), key=lambda found: -found[1])
        if self._looks and lower and lower[-1][1] <= -REAL_PS:
            lower = [(match, change) for match, change in lower if change <= -REAL_PS]
        elif self._looks:
            self._doubtful, self._lowest = self._worth_a_look(), self.best
        self._waiting, self._weighed, self._found_gains = lower, [], False

    def _worth_a_look(self) -> list[tuple[Match, int]]:
        """Return the matches of the best state that may pay together with others, those of most time last."""
        state, most = self.state(self.best), (self.alpha - 1) * self.best_value
        found: list[tuple[int, Match, int]] = []
        for match, change in self._weighed:
            if 0 <= change <= most:
                time_ps = self.matched(state, match).time_ps
                is_vain = (match.rule, change, time_ps) in self._vain
                if time_ps >= LOOKED_AT * self.best_value and change <= DEARER * time_ps and not is_vain:
                    found.append((time_ps, match, change))
        return [(match, change) for _, match, change in sorted(found)]

    def _look(self, match: Match, change: int) -> None:
        """Apply a match to the best state, and what then lowers the value around it, best first."""
        state, least = self.state(self.best), self.best_value
        if match not in state.matches[match.rule]:
            return
        look = match.rule, change, self.matched(state, match).time_ps
        if look in self._vain:
            return
        self._follow(self.best, match)
        if self.best_value >= least and self.ended():
            self._doubtful.append((match, change))  # to be looked at again
        elif self.best_value >= least:
            self._vain.add(look)

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
            changes = self.changes(child, (m for m in new if not self._cut_short()))
            gain, following = min(((change, m) for m, change in changes), default=(0, first))
            if gain >= 0 or self._cut_short():
                break
        return self.values[index]

    def _cut_short(self) -> bool:
        """Whether there is no time for a look at what comes of a rewrite, or for the rest of one."""
        return self.ended() or self.late()

    @property
    def reserve(self) -> float:
        """A part of the time while matches are weighed, to apply those that lower the value, if there are any."""
        return FINISH if self._found_gains else 0.0

    def finish(self, interrupted: Callable[[], bool]) -> None:
        """Apply what was weighed on the way down and lowers the value, best first."""
        if self._weighed:
            self._sort_weighed()
        while self._apply_waiting(self.state(self.best)) and not interrupted():
            pass

    def frontier(self) -> Any:
        """What waits and what was weighed, and what was learnt by looking."""
        waiting, weighed, doubtful = (
            [[m.rule, list(m.nodes), m.variant, change] for m, change in found]
            for found in (self._waiting, self._weighed, self._doubtful)
        )
        down = {"waiting": waiting, "weighed": weighed, "doubtful": doubtful, "lowest": self._lowest}
        down |= {"vain": sorted(map(list, self._vain)), "seen": sorted(self._seen)}
        down |= {"gains": [[rule, *found] for rule, found in self._rule_gains.items()]}
        return down | {"rivals": [[*key, gain] for key, gain in self._rival_gains.items()]}

    def resume(self, frontier: Any) -> None:
        """Take them up."""
        self._waiting, self._weighed, self._doubtful = (
            [(Match(r, tuple(nodes), v), change) for r, nodes, v, change in frontier[name]]
            for name in ("waiting", "weighed", "doubtful")
        )
        self._found_gains = any(change < 0 for _, change in self._weighed)
        self._rival_gains = {(a, b, c, d): gain for a, b, c, d, gain in frontier["rivals"]}
        self._vain = {(rule, change, time_ps) for rule, change, time_ps in frontier["vain"]}
        self._rule_gains = {rule: (change, time_ps) for rule, change, time_ps in frontier["gains"]}
        self._lowest = frontier["lowest"]
        self._seen = set(frontier["seen"])
        found = [*self._waiting, *self._weighed, *self._doubtful]
        self.expect_frontier(
            matches=[*(match for match, _ in found), *(Match(rule, (), 0) for rule in self._rule_gains)],
            indices=[self._lowest],
            values=[*(change for _, change in found), *self._rival_gains.values(), *chain(*self._rule_gains.values())],
        )
