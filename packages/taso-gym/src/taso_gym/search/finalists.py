"""The last word is measured: finalists of several searches, whole graphs run side by side.

Predicted times are off by a percent or two: operators are measured alone, and whether what they read and write is in
the cache isn't known; or one kernel is off, and with it all sites of a rule. So what was found is measured end to end
against what it would be without the rules that gained the most, and the search is done again with other costs and
without single rules. The fastest stays:

1. with what the start and the best execute measured again, in turns, until the same is found: of many kernels that a
   search can choose from it chooses those that looked cheap by chance;
2. without one of the rules that were used, the one with the least gain first: a rule that pays can be in the way of
   others that pay more. Whether they do is said by costs; nothing is measured yet;
3. what is left of the best without each of the rules that gain the most, without all that round differently, and
   without all that it turned out to be faster without, again and again;
4. found by costs with the share of the cache that explains the times measured so far best;
5. by costs with everything in the cache, and with nothing large in it;
6. searched for again without one rule of the best so far, the largest predicted gain first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from taso_gym.cost.measurement import Measurement, Speedup
from taso_gym.graph import Graph
from taso_gym.rules.state import RewriteState
from taso_gym.search.evidence import Evidence
from taso_gym.search.finalist import Finalist, remaining
from taso_gym.search.race import HEATS, race, race_seconds
from taso_gym.search.run import Budget, run

HOPELESS = 1.1
"""A graph that is predicted to take so many times as long as the best isn't measured."""
FIRST, IDLE = 0.7, 0.1
"""Part of a budget that the first search gets at most, and part of it after which a search ends that finds nothing."""
MEASURED = (0.25, 0.1, 0.1, 0.1, 0.1)
"""Parts of the contest's time for measuring costs in turns: those of the first search, and of each further by these."""
SETTLED = 0.6
"""Part of the contest's time after which no further search by such costs begins."""
COSTED = 0.2
"""Part of the contest's time for searches that nothing is measured of, if a race's worth is left."""
AGAIN = 0.25
"""A further search gets this part of the contest's time at most."""
FIT_APART = 0.1
"""A share of the cache that is nearer to one that was tried isn't tried."""
GAIN = 0.003
"""Part of the time that a rule has to be predicted to gain to be worth a graph without it."""


class Bout(NamedTuple):
    """A measurement: how many times faster than the best so far a finalist was."""

    name: str
    speedup: Speedup

    def __str__(self) -> str:
        return f"{self.name}: {self.speedup}"


class Contest:
    """Searches again and measures, until the time is over.

    Attributes:
        best: the fastest finalist so far.
        bouts: every measurement.
    """

    def __init__(
        self,
        first: Finalist,
        search: str = "taso",
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
        *,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        """Begin with the result of a search.

        Args:
            first: it; its costs are measured, and say with how many threads graphs are.
            search: how to search again, a row of `SEARCHES`.
            seed: of these searches.
            options: of these searches.
            progress: called with what is done next.
        """
        self.best: Finalist = first
        self.bouts: list[Bout] = []
        self._first, self._model = first, first.model
        self._shares = [first.model.outside]
        self._search, self._seed, self._options = search, seed, dict(options or {})
        self._progress = progress
        self._seen = {first.start.hash, first.found.state.hash}
        self._evidence = Evidence(first.start.graph)

    def run(self, seconds: float) -> Finalist:
        """Return the fastest; no new search begins after ``seconds``."""
        self._seconds, self._ends = seconds, time.monotonic() + seconds
        if not self._over():
            self._measure_again()
        self._leave_out(min(time.monotonic() + COSTED * seconds, self._ends - self._race_s(HEATS[0][1])))
        self._take_apart()
        if self._model.depends_on_cache:
            self._meet([self._by_share(self._evidence.share_outside(self._model))])
            self._meet(map(self._by_share, (0.0, 1.0)))
        for rule in self._doubtful():
            self._meet([self._searched_without(rule)])
        return self.best

    def _measure_again(self) -> None:
        """Search again by costs that are measured in turns where it matters, and keep what costs the least by these."""
        rivals = [self.best]
        self._judge_in_turns(rivals, MEASURED[0])
        until = time.monotonic() + SETTLED * self._seconds
        for number, part in enumerate(MEASURED[1:], 1):
            if self._over() or time.monotonic() > until:
                return
            found = self._again(f"measured in turns, search {number}", self.best.start)
            if any(found.found.state.hash == rival.found.state.hash for rival in rivals):
                return
            rivals.append(found)
            self._judge_in_turns(rivals, part)

    def _judge_in_turns(self, rivals: list[Finalist], part: float) -> None:
        """Measure what the start and the last of some finalists execute in turns; the cheapest of them is the best."""
        self._say(f"measuring in turns what {rivals[-1].name} executes")
        graphs = rivals[-1].start.graph, rivals[-1].graph
        self._model = self._model.in_turns(graphs, part * self._seconds)
        rivals[:] = [rival.costed_by(self._model) for rival in rivals]
        self.best = min(rivals, key=lambda rival: rival.found.state.cost.time_ps)

    def _leave_out(self, until: float) -> None:
        """Search without each of the rules that were used, going down only, and keep what costs less."""
        tried = set[str]()
        while time.monotonic() < until:
            rules = [name for name, _ in reversed(self.best.gains.most_common()) if name not in tried]
            if not rules:
                return
            tried.add(rules[0])
            found = self._searched_without(rules[0], idle=0.0)
            if found and found.found.state.cost.time_ps < self.best.found.state.cost.time_ps:
                self.best = found
                self._seen.add(found.found.state.hash)

    def _take_apart(self) -> None:
        """Measure what is left of the best without some of its rules, until that is never faster."""
        tried = set[frozenset[str]]()
        while not self._over():
            best = self.best
            parts = [names for names in self._suspects() if names not in tried][: self._room()]
            tried.update(parts)
            faster = self._meet(best.without(names) for names in parts)
            together = [frozenset(best.rules.difference(finalist.rules)) for finalist in faster]
            if len(together) > 1:
                self._meet([best.without(frozenset[str]().union(*together))])
            if self.best is best:
                return

    def _suspects(self) -> Iterator[frozenset[str]]:
        """Yield the rules of the best that round differently, together, and each that is predicted to gain much."""
        used, rules = self.best.gains, self.best.start.rules
        fast = frozenset(name for name in used if rules[rules.index(name)].numerics == "fast")
        if len(fast) > 1:
            yield fast
        yield from (frozenset([name]) for name in self._gainful())

    def _gainful(self) -> list[str]:
        """Return the rules of the best that are predicted to gain much, the most first."""
        least = GAIN * self.best.start.cost.time_ps
        return [name for name, gain in self.best.gains.most_common() if gain >= least]

    def _again(self, name: str, start: RewriteState, idle: float = AGAIN * IDLE) -> Finalist:
        self._say(f"searching again, {name}")
        budget = Budget(max(min(AGAIN * self._seconds, self._left()), 0.0), idle=idle * self._seconds)
        return Finalist(name, start, run(start, self._search, budget, self._seed, **self._options))

    def _say(self, doing: str) -> None:
        if self._progress:
            self._progress(doing)

    def _by_share(self, share: float | None) -> Finalist | None:
        if share is None or self._over() or any(abs(share - tried) < FIT_APART for tried in self._shares):
            return None
        self._shares.append(share)
        graph, rules = self._first.start.graph, self.best.start.rules
        name = f"{share:.0%} of large memory out of the cache"
        return self._again(name, RewriteState(graph, rules, self._model.with_outside(share)))

    def _searched_without(self, rule: str, idle: float = AGAIN * IDLE) -> Finalist | None:
        if self._over():
            return None
        rules = remaining(self.best.start.rules, [rule])
        return self._again(
            f"{self.best.name}, without ever {rule}",
            RewriteState(self._first.start.graph, rules, self.best.model),
            idle,
        )

    def _left(self) -> float:
        """Return the seconds that are left for what comes before a race of one graph."""
        return self._ends - time.monotonic() - self._race_s(1)

    def _over(self) -> bool:
        return self._left() <= 0

    def _room(self) -> int:
        """Return how many graphs can be measured in the time that is left; one may be too many."""
        left = self._ends - time.monotonic()
        return max(count for count in range(1, HEATS[0][1] + 1) if count == 1 or self._race_s(count) <= left)

    def _race_s(self, count: int) -> float:
        return race_seconds(self._first.start.cost.time_ms, count)

    def _meet(self, finalists: Iterable[Finalist | None]) -> list[Finalist]:
        """Measure those that are new and not hopeless against the best, and return the faster ones."""
        judge = self._model
        most_ps = HOPELESS * judge.graph(self.best.graph).time_ps
        new = dict[str, Finalist]()
        for finalist in finalists:
            if finalist is None or finalist.found.state.hash in self._seen:
                continue
            self._seen.add(finalist.found.state.hash)
            if judge.graph(finalist.graph).time_ps <= most_ps:
                new[finalist.name] = finalist
        return self._race(new) if new else []

    def _race(self, new: dict[str, Finalist]) -> list[Finalist]:
        """Measure graphs against the best, of which the fastest takes the place if it surely is faster.

        Returns:
            Those that are faster than the best.
        """
        graphs, run_ms = {name: finalist.graph for name, finalist in new.items()}, self._first.start.cost.time_ms
        holder = self.best.name, self.best.graph
        found = race(holder, graphs, self._measured, self._evidence.start, run_ms, self._ends)
        self.bouts += [Bout(name, speedup) for name, speedup in found.speedups.items()]
        if found.winner:
            self.best = new[found.winner]
        return [new[name] for name in found.faster]

    def _measured(self, graphs: dict[str, Graph], rounds: int, seed: int) -> Measurement:
        self._say(f"measuring {len(graphs)} graphs")
        return self._evidence.measure(graphs, self._model, rounds, seed)

    def _doubtful(self) -> Iterator[str]:
        """Yield rules of the best finalist that it may be faster without, one after the other."""
        tried: set[str] = set()
        while not self._over():
            rule = next((name for name in self._gainful() if name not in tried), None)
            if rule is None:
                return
            tried.add(rule)
            yield rule
