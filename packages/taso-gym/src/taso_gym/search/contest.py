"""The last word is measured: finalists of several searches, whole graphs run side by side.

Predicted times are off by a percent or two: operators are measured alone, and whether what they read and write is in
the cache isn't known; or one kernel is off, and with it all sites of a rule. So what was found is measured end to end
against what it would be without the rules that gained the most, and the search is done again with other costs and
without single rules. What computes something else when it is run loses the rules that make it so before more is
searched for, and before it is measured (`taso_gym.search.equal`). The fastest stays:

1. by costs that are measured again, in several ways, the cheapest of which is the best (`taso_gym.search.rivals`);
2. without one of the rules that were used, the one with the least gain first: a rule that pays can be in the way of
   others that pay more. Whether they do is said by costs; nothing is measured yet;
3. what is left of the best without each of the rules that gain the most, without all that round differently, without
   those that gain little, and without all that it turned out to be faster without, again and again; what was searched
   for without rules that round differently, and what only costs preferred the best to;
4. found by costs with the share of the cache that explains the times measured so far best;
5. by costs with everything in the cache, and with nothing in it;
6. searched for again without one rule of the best so far, the largest predicted gain first.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from taso_gym.errors import CostError, TasoError
from taso_gym.rules.state import RewriteState
from taso_gym.search.bouts import Bout, Bouts
from taso_gym.search.equal import Screen
from taso_gym.search.finalist import Finalist, remaining
from taso_gym.search.race import HEATS
from taso_gym.search.rivals import FIT_APART, Rivals
from taso_gym.search.run import Budget, SearchResult, run

FIRST, IDLE = 0.5, 0.1
"""Part of a budget that the first search gets at most, and part of it after which a search ends that finds nothing."""
RIVALS, COSTED = 0.5, 0.2
"""Parts of the contest's time for rivals, which from an empty cache would take all of it, and for searches without one
rule each, if a race's worth is left. Nothing is measured of either."""
BEATEN = 2
"""So many finalists that only costs preferred the best to are measured, the cheapest ones."""
AGAIN = 0.2
"""A further search gets this part of the contest's time at most."""
GAIN = 0.003
"""Part of the time that a rule has to be predicted to gain to be worth a graph without it. All that gain less, and what
is no dearer by more than that without them, are worth one together: what costs don't know may be more."""
WEIGHING = 0.03
"""Part of the contest's time for finding out which rules these are."""


class Contest:
    """Searches again and measures, until the time is over.

    Attributes:
        best: the fastest finalist so far.
        explored: rewrites weighed or applied by the further searches.
        interrupted: it was ended by Ctrl-C.
        exhausted: it ended before its time, since all that it tries was tried.
    """

    def __init__(
        self,
        first: Finalist,
        search: str = "taso",
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
        *,
        screen: Screen | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        """Begin with the result of a search.

        Args:
            first: it; its costs are measured, and say with how many threads graphs are.
            search: how to search again, a row of `SEARCHES`.
            seed: of these searches.
            options: of these searches.
            screen: of what computes something else than the start when it is run; default: nothing does.
            progress: called with what is done next.
        """
        self.best: Finalist = first
        self._first, self._model = first, first.model
        self._shares = [first.model.outside]
        self._beaten: list[Finalist] = []
        self._alike: Finalist | None = None
        self._little: tuple[Finalist, frozenset[str]] | None = None
        self._search, self._seed, self._options = search, seed, dict(options or {})
        self._say: Callable[[str], None] = progress or _silent
        self._screen = screen or Screen(None, self._say)
        self._bouts = Bouts(first, self._say)
        self.explored, self.interrupted, self.exhausted = 0, False, False

    @property
    def bouts(self) -> list[Bout]:
        """Every measurement."""
        return self._bouts.held

    def run(self, seconds: float) -> Finalist:
        """Return the fastest; no new search begins after ``seconds``.

        Ctrl-C ends the contest, and so does what fails, with a warning: costs that can't be measured any more, a disk
        that is full, want of memory.
        """
        self._seconds, self._ends = seconds, time.monotonic() + seconds
        try:
            self._go_on()
            self.exhausted = not self._over()
        except KeyboardInterrupt:
            self.interrupted = True
            self._say("interrupted")
        except (TasoError, MemoryError, OSError) as error:
            warnings.warn(f"the contest of finalists ended early: {error}", stacklevel=2)
        return self.best

    def _go_on(self) -> None:
        self._keep_equal()
        if not self._over():
            self._search_by_costs()
        self._leave_out(min(time.monotonic() + COSTED * self._seconds, self._ends - self._bouts.seconds(HEATS[0][1])))
        self._keep_equal()
        self._take_apart()
        if self._model.depends_on_cache and not self._over():
            self._meet([self._by_share(self._bouts.evidence.share_outside(self._model))])
            self._meet(map(self._by_share, (0.0, 1.0)))
        for rule in self._doubtful():
            self._meet([self._searched_without(rule)])

    def _keep_equal(self) -> None:
        """Take out of the best what makes it compute something else; searches from here on do without."""
        self.best = self._screen.passed(self.best, self._left)
        if not self._first.rules.isdisjoint(self._screen.culprits):
            self._first = self._first.without(self._screen.culprits)

    def _search_by_costs(self) -> None:
        """Search again by costs that are measured in turns, and keep what costs the least by these."""
        until = time.monotonic() + RIVALS * self._seconds
        again, left = partial(self._again, until=until), partial(self._left, until)
        rivals = Rivals(self._first, again, left, self._seconds, self._say)
        try:
            rivals.gather()
        finally:
            self.best, *self._beaten = rivals.ranked
            self._model, self._alike = rivals.model, rivals.alike
            self._shares.append(self._model.outside)

    def _leave_out(self, until: float) -> None:
        """Search without each of the rules that were used, going down only, and keep what costs less."""
        tried = set[str]()
        while time.monotonic() < until:
            rules = [name for name, _ in reversed(self.best.gains.most_common()) if name not in tried]
            if not rules:
                return
            tried.add(rules[0])
            found = self._searched_without(rules[0], idle=0.0, until=until)
            if found and found.found.state.cost.time_ps < self.best.found.state.cost.time_ps:
                self._beaten.insert(0, self.best)
                self.best = found

    def _take_apart(self) -> None:
        """Measure what is left of the best without some of its rules, until that is never faster."""
        tried, beaten = set[frozenset[str]](), [*filter(None, [self._alike]), *self._beaten[:BEATEN]]
        while not self._over():
            best, room = self.best, self._bouts.room(self._ends - time.monotonic())
            beaten, again = beaten[: max(room, 1)], len(self._bouts.reconsidered(best, self._model))
            parts = [names for names in self._suspects() if names not in tried][: max(room - len(beaten) - again, 0)]
            if not parts and not beaten and not again:
                return
            tried.update(parts)
            faster = self._meet([*beaten, *(best.without(names) for names in parts)])
            together = [fewer for finalist in faster if (fewer := best.rules - finalist.rules)]
            if len(together) > 1 and not self._over():
                self._meet([best.without(frozenset[str]().union(*together))])
            beaten = []

    def _suspects(self) -> Iterator[frozenset[str]]:
        """Yield the rules of the best that round differently, those that gain little, and each that gains much."""
        used, rules = self.best.gains, self.best.start.rules
        fast = frozenset(name for name in used if rules[rules.index(name)].numerics == "fast")
        if len(fast) > 1:
            yield fast
        if little := self._gaining_little():
            yield little
        yield from (frozenset([name]) for name in self._gainful())

    def _gainful(self) -> list[str]:
        """Return the rules of the best that are predicted to gain much, the most first."""
        least = GAIN * self.best.start.cost.time_ps
        return [name for name, gain in self.best.gains.most_common() if gain >= least]

    def _gaining_little(self) -> frozenset[str]:
        """Return rules of the best that are predicted to gain little, by themselves and together."""
        best, least = self.best, GAIN * self.best.start.cost.time_ps
        if self._little is None or self._little[0] is not best:
            until = time.monotonic() + WEIGHING * self._seconds
            fewer = best.without_least(least, least, lambda: time.monotonic() > until)
            self._little = best, best.rules - fewer.rules
        return self._little[1]

    def _again(self, name: str, start: RewriteState, idle: float = AGAIN * IDLE, until: float = math.inf) -> Finalist:
        self._say(f"searching again, {name}")
        budget = Budget(max(min(AGAIN * self._seconds, self._left(until)), 0.0), idle=idle * self._seconds)
        try:
            found = run(start, self._search, budget, self._seed, **self._options)
        except CostError:
            raise
        except TasoError as error:  # a policy knows only the rules that it learned with
            self._say(str(error))
            found = SearchResult(start, (), 0, 0.0, exhausted=True, interrupted=False)
        self.explored += found.explored
        if found.interrupted:
            self.interrupted, self._ends = True, time.monotonic()
        return Finalist(name, start, found)

    def _by_share(self, share: float | None) -> Finalist | None:
        if share is None or self._over() or any(abs(share - tried) < FIT_APART for tried in self._shares):
            return None
        self._shares.append(share)
        graph, rules = self._first.start.graph, remaining(self.best.start.rules, self._screen.culprits)
        name = f"{share:.0%} of what is read out of the cache"
        return self._again(name, RewriteState(graph, rules, self._model.with_outside(share)))

    def _searched_without(self, rule: str, idle: float = AGAIN * IDLE, until: float = math.inf) -> Finalist | None:
        if self._over():
            return None
        rules = remaining(self.best.start.rules, [rule, *self._screen.culprits])
        start = RewriteState(self._first.start.graph, rules, self.best.model)
        return self._again(f"{self.best.name}, without ever {rule}", start, idle, until)

    def _left(self, until: float = math.inf) -> float:
        """Return the seconds that are left for what comes before a race of one graph, and before some time."""
        return min(self._ends - self._bouts.seconds(1), until) - time.monotonic()

    def _over(self) -> bool:
        return self._left() <= 0

    def _meet(self, finalists: Iterable[Finalist | None]) -> list[Finalist]:
        """Measure finalists against the best, which the fastest replaces; return the faster ones; none after Ctrl-C."""
        found = [finalist and self._screen.passed(finalist, self._left) for finalist in finalists]
        if self.interrupted:
            return []
        self.best, faster = self._bouts.meet(self.best, found, self._model, self._ends)
        return faster

    def _doubtful(self) -> Iterator[str]:
        """Yield rules of the best finalist that it may be faster without, one after the other."""
        tried: set[str] = set()
        while not self._over():
            rule = next((name for name in self._gainful() if name not in tried), None)
            if rule is None:
                return
            tried.add(rule)
            yield rule


def _silent(_: str) -> None:
    """Say nothing."""
