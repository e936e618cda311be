"""Finalists are measured side by side with the best; the fastest takes its place, and no graph is measured twice."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from typing import NamedTuple

from taso_gym.cost.measurement import Measurement, Speedup
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.errors import CostError
from taso_gym.graph import Graph
from taso_gym.search.evidence import Evidence
from taso_gym.search.finalist import Finalist
from taso_gym.search.race import ENOUGH, HEATS, race, race_seconds

HOPELESS = 1.1
"""A graph that is predicted to take so many times as long as the best isn't measured, unless the best turns out to take
longer than predicted: then costs are wrong by as much."""
SLOWNESS, LOADING_S = 2.0, 2.0
"""Until a race was held, it is expected to take so many times as long, since graphs are loaded in each heat, but no
more than so many seconds for each of them: one that runs for seconds isn't loaded for longer."""


def expected_seconds(run_ms: float, count: int, heats: int = ENOUGH) -> float:
    """Return about how long a race of so many graphs takes, in so many heats, until one was held."""
    runs = race_seconds(run_ms, count, heats)
    return min(SLOWNESS * runs, runs + LOADING_S * heats * (1 + count))


class Bout(NamedTuple):
    """A measurement: how many times faster than the best so far a finalist was."""

    name: str
    speedup: Speedup

    def __str__(self) -> str:
        return f"{self.name}: {self.speedup}"


class Bouts:
    """Measures finalists.

    Attributes:
        held: every measurement.
        evidence: what they say of the costs.
    """

    def __init__(self, first: Finalist, progress: Callable[[str], None]) -> None:
        """Begin with nothing measured.

        Args:
            first: has the start, which isn't measured for itself.
            progress: called with what is done next.
        """
        self.held: list[Bout] = []
        self.evidence = Evidence(first.start.graph)
        self._run_ms, self._slowness, self._progress = first.start.cost.time_ms, 0.0, progress
        self._seen = {first.start.hash}
        self._hopeless: list[Finalist] = []

    def seconds(self, count: int, heats: int = ENOUGH) -> float:
        """Return about how long it takes to measure so many, in so many heats."""
        if self._slowness:
            return self._slowness * race_seconds(self._run_ms, count, heats)
        return expected_seconds(self._run_ms, count, heats)

    def room(self, seconds: float) -> int:
        """Return how many can be measured in some time, in all heats: few well, not many badly; one may be too many."""
        fits = (n for n in range(2, HEATS[0][1] + 1) if self.seconds(n, len(HEATS)) <= seconds)
        return max(fits, default=1)

    def meet(
        self, best: Finalist, finalists: Iterable[Finalist | None], model: OnnxRuntimeCost, until: float
    ) -> tuple[Finalist, list[Finalist]]:
        """Measure those that are new and not hopeless against the best, and those that aren't hopeless any more.

        Args:
            best: the fastest so far.
            finalists: others; None is none.
            model: costs, by which some are hopeless.
            until: the time, as `time.monotonic` has it, when the measurements should be over.

        Returns:
            The fastest if it surely is faster than the best, else the best; and those that are faster.
        """
        self._seen.add(best.found.state.hash)
        again = self.reconsidered(best, model)[: self.room(until - time.monotonic())]
        new = list[Finalist]()
        for finalist in finalists:
            if finalist is not None and finalist.found.state.hash not in self._seen:
                self._seen.add(finalist.found.state.hash)
                new.append(finalist)
        raced = [*again, *(finalist for finalist in new if self._has_hope(finalist, best, model))]
        self._hopeless = [finalist for finalist in (*self._hopeless, *new) if finalist not in raced]
        return self._race(best, {each.name: each for each in raced}, model, until) if raced else (best, [])

    def reconsidered(self, best: Finalist, model: OnnxRuntimeCost) -> list[Finalist]:
        """Return those that were hopeless, and aren't by what was measured of the best since; the cheapest first."""
        found = [finalist for finalist in self._hopeless if self._has_hope(finalist, best, model)]
        return sorted(found, key=lambda finalist: model.graph(finalist.graph).time_ps)

    def _has_hope(self, finalist: Finalist, best: Finalist, model: OnnxRuntimeCost) -> bool:
        most_ps = HOPELESS * self.evidence.optimism(best.name, model) * model.graph(best.graph).time_ps
        return model.graph(finalist.graph).time_ps <= most_ps

    def _race(
        self, best: Finalist, new: dict[str, Finalist], model: OnnxRuntimeCost, until: float
    ) -> tuple[Finalist, list[Finalist]]:
        def measured(graphs: dict[str, Graph], rounds: int, seed: int) -> Measurement:
            self._progress(f"measuring {len(graphs)} graphs")
            return self.evidence.measure(graphs, model, rounds, seed)

        graphs = {name: finalist.graph for name, finalist in new.items()}
        try:
            found = race((best.name, best.graph), graphs, measured, self.evidence.start, self._run_ms, until)
        except CostError as error:
            if len(new) > 1 and time.monotonic() < until:
                return self._in_halves(best, new, model, until)
            warnings.warn(f"not compared with {best.name}: {', '.join(graphs)}: {error}", stacklevel=2)
            return best, []
        self._slowness = found.slowness
        self.held += [Bout(name, speedup) for name, speedup in found.speedups.items()]
        return new[found.winner] if found.winner else best, [new[name] for name in found.faster]

    def _in_halves(
        self, best: Finalist, new: dict[str, Finalist], model: OnnxRuntimeCost, until: float
    ) -> tuple[Finalist, list[Finalist]]:
        """Measure one half after the other: one of them doesn't run, or all together don't fit into memory."""
        names, faster = list(new), list[Finalist]()
        for half in (names[: len(names) // 2], names[len(names) // 2 :]):
            best, found = self._race(best, {name: new[name] for name in half}, model, until)
            faster += found
        return best, faster
