"""The last word is measured: finalists of several searches, whole graphs run side by side.

Predicted times are off by a percent or two: operators are measured alone, and whether what they read and write is in
the cache isn't known; or one kernel is off, and with it all sites of a rule. So the search is done again with other
costs and without the rules that gained the most, and what is found is measured end to end. The fastest stays:

1. without one of the rules that were used, the one with the least gain first: a rule that pays can be in the way of
   others that pay more. Whether they do is said by costs; nothing is measured yet;
2. by costs with everything in the cache, and with nothing large in it;
3. by costs with the share of the cache that explains the times measured so far best;
4. without one rule of the best so far, the largest predicted gain first.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import log
from typing import Any, NamedTuple

from taso_gym.cost import bind_dims
from taso_gym.cost.measure import measure
from taso_gym.cost.measurement import Measurement, Speedup
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.graph import Graph
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.search.run import Budget, SearchResult, run

START = "start"
HOPELESS = 1.1
"""A graph that is predicted to take so many times as long as the best isn't measured."""
FIRST, IDLE = 0.7, 0.1
"""Part of a budget that the first search gets at most, and part of it after which a search ends that finds nothing."""
COSTED = 0.3
"""Part of the contest's time for searches that nothing is measured of."""
AGAIN = 0.25
"""A further search gets this part of the contest's time at most."""
ROUNDS = (3, 6)
"""Rounds of the two fresh sessions of a race; who is surely slower after the first isn't in the second."""
SHARES = [i / 20 for i in range(21)]
FIT_APART = 0.1
"""A fitted share of the cache that is nearer to one that was tried isn't tried."""
GAIN = 0.003
"""Part of the time that a rule has to be predicted to gain to be worth a search without it."""


class Finalist(NamedTuple):
    """What a search found.

    Attributes:
        name: how it differs from the first.
        start: where it began, with its rules and costs.
        found: what it found.
    """

    name: str
    start: RewriteState
    found: SearchResult

    @property
    def graph(self) -> Graph:
        """The graph that was found."""
        return self.found.state.graph


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
        self.best, self.bouts = first, list[Bout]()
        self._first, self._model = first, costs_of(first)
        self._search, self._seed, self._options = search, seed, dict(options or {})
        self._progress = progress
        self._seen = {first.start.hash, first.found.state.hash}
        self._times = {START: 1.0}
        self._graphs = {START: first.start.graph}

    def run(self, seconds: float) -> Finalist:
        """Return the fastest; no new search begins after ``seconds``."""
        self._seconds, self._ends = seconds, time.monotonic() + seconds
        self._leave_out(time.monotonic() + COSTED * seconds)
        if self._model.depends_on_cache:
            self._meet(self._by_share(share) for share in (0.0, 1.0) if share != self._model.outside)
            self._meet(map(self._by_share, self._fitted()))
        for rule in self._doubtful():
            self._meet([self._without(rule)])
        return self.best

    def _leave_out(self, until: float) -> None:
        """Search without each of the rules that were used, going down only, and keep what costs less."""
        tried = set[str]()
        while time.monotonic() < until:
            rules = [name for name, _ in reversed(gains_of(self.best).most_common()) if name not in tried]
            if not rules:
                return
            tried.add(rules[0])
            found = self._without(rules[0], idle=0.0)
            if found and found.found.state.cost.time_ps < self.best.found.state.cost.time_ps:
                self.best = found
                self._seen.add(found.found.state.hash)

    def _again(self, name: str, rules: RuleSet, model: OnnxRuntimeCost, idle: float = AGAIN * IDLE) -> Finalist:
        self._say(f"searching again, {name}")
        start = RewriteState(self._first.start.graph, rules, model)
        budget = Budget(AGAIN * self._seconds, idle=idle * self._seconds)
        return Finalist(name, start, run(start, self._search, budget, self._seed, **self._options))

    def _say(self, doing: str) -> None:
        if self._progress:
            self._progress(doing)

    def _by_share(self, share: float) -> Finalist | None:
        if self._over():
            return None
        name = f"{share:.0%} of large memory out of the cache"
        return self._again(name, self.best.start.rules, self._model.with_outside(share))

    def _without(self, rule: str, idle: float = AGAIN * IDLE) -> Finalist | None:
        rules = RuleSet([r for r in self.best.start.rules if r.name != rule])
        name = f"{self.best.name}, without {rule}"
        return None if self._over() else self._again(name, rules, costs_of(self.best), idle)

    def _over(self) -> bool:
        return time.monotonic() >= self._ends

    def _meet(self, finalists: Iterable[Finalist | None]) -> None:
        """Measure those that are new and not hopeless against the best."""
        judge = self._model
        most_ps = HOPELESS * judge.graph(self.best.graph).time_ps
        new = dict[str, Finalist]()
        for finalist in finalists:
            if finalist is None or finalist.found.state.hash in self._seen:
                continue
            self._seen.add(finalist.found.state.hash)
            if judge.graph(finalist.graph).time_ps <= most_ps:
                new[finalist.name] = finalist
        if new and not self._over():
            self._race(new)

    def _race(self, new: dict[str, Finalist]) -> None:
        """Measure in one fresh session, and those that may be faster in another; the fastest becomes the best."""
        graphs = {self.best.name: self.best.graph, **{name: finalist.graph for name, finalist in new.items()}}
        if len(self._times) == 1:
            graphs[START] = self._first.start.graph
        found = self._measured(graphs, ROUNDS[0], 0)
        self._remember(graphs, found)
        hopeful = [name for name in new if found.speedup(name).high > 1]
        if not hopeful:
            self.bouts += [Bout(name, found.speedup(name)) for name in new]
            return
        again = self._measured({self.best.name: self.best.graph, **{n: new[n].graph for n in hopeful}}, ROUNDS[1], 1)
        self.bouts += [Bout(n, (again if n in hopeful else found).speedup(n)) for n in new]
        fastest = max(hopeful, key=lambda name: again.speedup(name).ratio)
        if again.speedup(fastest).low > 1 and found.speedup(fastest).ratio > 1:
            self.best = new[fastest]

    def _measured(self, graphs: dict[str, Graph], rounds: int, seed: int) -> Measurement:
        self._say(f"measuring {len(graphs)} graphs")
        dims, runtime = bind_dims(self._first.start.graph), self._model.runtime
        return measure(
            graphs, threads=runtime.threads, provider=runtime.provider, dims=dims, sessions=1, rounds=rounds, seed=seed
        )

    def _remember(self, graphs: dict[str, Graph], found: Measurement) -> None:
        """Keep times in units of the start's."""
        best = self.best.name
        if START in found.rounds:
            self._times[best] = found.speedup(START).ratio
        for name, graph in graphs.items():
            self._times[name] = self._times[best] / found.speedup(name).ratio
            self._graphs[name] = graph

    def _fitted(self) -> Iterator[float]:
        """Yield the share of the cache by which predicted times come nearest to those measured, if it is new."""
        inside, outside = (self._model.with_outside(share) for share in (0.0, 1.0))
        ends = {n: (inside.graph(g).time_ps, outside.graph(g).time_ps) for n, g in self._graphs.items()}

        def error(share: float) -> float:
            at = {name: log(a + share * (b - a)) for name, (a, b) in ends.items()}
            return sum((at[n] - at[START] - log(self._times[n])) ** 2 for n in at)

        share = min(SHARES, key=error)
        if len(ends) > 2 and all(abs(share - tried) >= FIT_APART for tried in (0.0, 1.0, self._model.outside)):
            yield share

    def _doubtful(self) -> Iterator[str]:
        """Yield rules of the best finalist that it may be faster without, one after the other."""
        tried: set[str] = set()
        while not self._over():
            gains = gains_of(self.best)
            least = GAIN * self.best.start.cost.time_ps
            rule = next((name for name, gain in gains.most_common() if gain >= least and name not in tried), None)
            if rule is None:
                return
            tried.add(rule)
            yield rule


def gains_of(finalist: Finalist) -> Counter[str]:
    """Return for each rule on the way to a finalist what it gains by its costs, in picoseconds."""
    gains: Counter[str] = Counter()
    state = finalist.start
    for match in finalist.found.path:
        child = state.apply(match)
        gains[state.rules[match.rule].name] += state.cost.time_ps - child.cost.time_ps
        state = child
    return gains


def costs_of(finalist: Finalist) -> OnnxRuntimeCost:
    """Return the costs that a finalist was found by."""
    model = finalist.start.cost_model
    assert isinstance(model, OnnxRuntimeCost)
    return model
