"""Searches again by costs that are measured in turns, and of what they find keeps what costs the least by these.

Of many kernels that a search can choose from it chooses those that looked cheap by chance, and of many ways down it
goes one: by what they turn out to cost it may lead to what is dearer than the start. And rewriting changes what the
cache holds: Winograd's forms write and read more than the convolutions that they stand for. So what the start and its
result execute is measured in turns, and the result is run for the share of its values that is out of the cache. It is
compared with the start, with what is left of it without the rules that lose time by then, and with what is found by
further searches:

* without any rule that rounds differently: these have so many forms of an operator that others are missed; and from
  there on with all;
* by costs with less out of the cache than the result says, by which a descent goes another way;
* by the costs as they are by then, again and again;
* at last by costs that take all that wasn't measured in turns for dearer than most of it turns out to be, so that what
  is known to pay remains.

Nothing is run as a whole: that is for `taso_gym.search.contest`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.errors import MatchError
from taso_gym.rules.state import RewriteState
from taso_gym.search.finalist import Finalist, remaining

MEASURED, FURTHER = 0.2, 0.07
"""Parts of the time for measuring costs in turns: those of the first search, and of each further one."""
RUNS = 10
"""What it takes to run a graph for the share that is out of the cache, its runs and its loading, in runs."""
SEARCHES = 3
SETTLED = 0.3
"""Part of the time after which no further search by the costs as they are begins, but for the cautious one."""
LESS = (0.0, 0.5)
"""Shares out of the cache by which is searched, too, where the result says more."""
FIT_APART = 0.1
"""A share of the cache that is nearer to one that was tried isn't tried."""
AS_GIVEN = "as given"


class Rivals:
    """What searches found, and the costs that they are judged by.

    Attributes:
        model: these costs.
        alike: what was found without rules that round differently, if that was searched for.
    """

    def __init__(
        self,
        first: Finalist,
        again: Callable[[str, RewriteState], Finalist],
        left: Callable[[], float],
        seconds: float,
        say: Callable[[str], None],
    ) -> None:
        """Begin with the result of a search.

        Args:
            first: it.
            again: searches from a state, and gives what is found a name.
            left: returns the seconds that are left.
            seconds: that are there in all, most of which are for others.
            say: called with what is done next.
        """
        self.model: OnnxRuntimeCost = first.model
        self.alike: Finalist | None = None
        self._first, self._found = first, [first]
        if first.found.path:
            self._found.insert(0, Finalist(AS_GIVEN, first.start, replace(first.found, state=first.start, path=())))
        self._again, self._left, self._seconds, self._say = again, left, seconds, say

    @property
    def ranked(self) -> list[Finalist]:
        """All, the cheapest first."""
        return sorted(self._found, key=lambda rival: rival.found.state.cost.time_ps)

    def gather(self) -> None:
        """Search in every way, as far as there is time."""
        until = time.monotonic() + SETTLED * self._seconds
        self._judge_in_turns(MEASURED)
        self._fit()
        self._leave_out_losers()
        self._search_alike()
        self._search_by_shares()
        for number in range(1, SEARCHES + 1):
            if self._over() or time.monotonic() > until:
                break
            if not self._take(self._again(f"measured in turns, search {number}", self._start())):
                break
        self.model = self.model.cautious()
        self._judge()
        if not self._over():
            self._take(self._again("cautious", self._start()))

    def _fit(self) -> None:
        """Run what the first search found, if there is time, and judge by how much of it is out of the cache there."""
        graph, time_s = self._first.graph, self._found[-1].found.state.cost.time_ps / 1e12
        if RUNS * time_s < min(MEASURED * self._seconds, self._left()):
            self._say("running what the first search found")
            self.model = self.model.fitted_to(graph)
            self._judge()

    def _leave_out_losers(self) -> None:
        """Take what is left of the first without the rules that lose time by the costs as they are now."""
        first = self._found[-1]
        if (left := first.without_least(0, -1, self._over)) is not first:
            self._take(left)

    def _search_alike(self) -> None:
        """Search without the rules that round differently, if there are some, and from there on with all."""
        rules = self._first.start.rules
        if self._over() or not (different := [rule.name for rule in rules if rule.numerics == "fast"]):
            return
        start = RewriteState(self._first.start.graph, remaining(rules, different), self.model)
        self.alike = alike = self._again("without what rounds differently", start)
        if not alike.found.path:
            return
        self._take(alike)
        if self._over():
            return
        try:
            known = alike.costed_by(self.model, rules)
        except MatchError:  # one that rounds differently gives the same graph, and comes first
            return
        on = self._again("with what rounds differently after all else", known.found.state)
        path = (*known.found.path, *on.found.path)
        self._take(replace(on, start=known.start, found=replace(on.found, path=path)))

    def _search_by_shares(self) -> None:
        """Search by costs with less out of the cache, and judge what is found as all else."""
        found: list[Finalist] = []
        for share in LESS if self.model.depends_on_cache else ():
            if share <= self.model.outside - FIT_APART and not self._over():
                named = f"as if {share:.0%} were out of the cache"
                found.append(self._again(named, self._start(share)).costed_by(self.model))
        self._take(*found)

    def _start(self, share: float | None = None) -> RewriteState:
        """Return where all began, by the costs as they are now, or with another share out of the cache."""
        model = self.model if share is None else self.model.with_outside(share)
        return RewriteState(self._first.start.graph, self._first.start.rules, model)

    def _take(self, *found: Finalist) -> bool:
        """Take what is new among the rivals, and judge all by what the cheapest of it executes; False if nothing is."""
        known = {rival.found.state.hash for rival in self._found}
        new = {rival.found.state.hash: rival for rival in found if rival.found.state.hash not in known}
        self._found += sorted(new.values(), key=lambda rival: -rival.found.state.cost.time_ps)
        if new:
            self._judge_in_turns()
        return bool(new)

    def _judge_in_turns(self, part: float = FURTHER) -> None:
        """Measure what the start and the last rival execute in turns, and judge all by that."""
        last = self._found[-1]
        self._say(f"measuring in turns what {last.name} executes")
        seconds = max(min(part * self._seconds, self._left()), 0.0)
        self.model = self.model.in_turns((last.start.graph, last.graph), seconds)
        self._judge()

    def _judge(self) -> None:
        self._found = [rival.costed_by(self.model) for rival in self._found]

    def _over(self) -> bool:
        return self._left() <= 0
