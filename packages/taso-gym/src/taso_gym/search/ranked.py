"""Search for costs that take long to measure: a learned model ranks the candidates, only the first few are measured.

Rewriting stays exact, and no change that wasn't measured is ever trusted: the model only says what to measure next.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from taso_gym import cost as costs
from taso_gym.checks import check_finite, check_positive, check_threads
from taso_gym.cost.measure import measure
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost_model import CostModel
from taso_gym.errors import CostError, OptionError
from taso_gym.graph import Graph
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search.ranking import ChangeModel, change_features
from taso_gym.search.searcher import Searcher

ORDERS = ("learned", "roofline", "random")


class Judge(Protocol):
    """What measures candidates; numbers are in picoseconds.

    Attributes:
        noise: a smaller part of the start's cost is no gain.
    """

    noise: float

    def start(self, state: RewriteState) -> int:
        """Return the cost of the start."""
        ...

    def resume(self, start_ps: int) -> None:
        """Go on from another process, in which the start cost ``start_ps``."""
        ...

    def child(self, state: RewriteState, match: Match, state_ps: int) -> int:
        """Return the cost of the graph after a match in a state that costs ``state_ps``."""
        ...


class ModelJudge:
    """Asks the state's cost model, which may have to measure operators that it hasn't met.

    Args:
        counted: returns what counts of a match's change of time (`Searcher.beyond_noise`).
    """

    noise = 0.0

    def __init__(self, counted: Callable[[RewriteState, Match, int], int]) -> None:
        self._counted = counted

    def start(self, state: RewriteState) -> int:
        """Return the cost of the start."""
        return state.cost.time_ps

    def resume(self, start_ps: int) -> None:
        """Nothing hangs on it: changes are absolute."""

    def child(self, state: RewriteState, match: Match, state_ps: int) -> int:
        """Return the cost after a match."""
        return state_ps + self._counted(state, match, state.delta(match).time_ps)


class LatencyJudge:
    """Measures whole graphs in onnxruntime, each interleaved with the start graph.

    Which of the two is loaded first, and so is slower (`taso_gym.cost.measure`), is one and the other in turn.

    Args:
        rounds: of about 15 ms.
        model: where it measures too, graphs run as it says: on its provider, with its threads.
        threads: with which they run else.
    """

    noise = 0.005

    def __init__(self, rounds: int, model: CostModel | None = None, threads: int = 1) -> None:
        self._how: dict[str, Any] = {"sessions": 1, "rounds": rounds, "threads": threads}
        if isinstance(model, OnnxRuntimeCost):
            self._how |= {"threads": model.runtime.threads, "provider": model.runtime.provider}
        self._start: Graph | None = None
        self._start_ps = self._children = 0

    def start(self, state: RewriteState) -> int:
        """Return the latency of the start graph."""
        self._start = state.graph
        found = measure({"start": state.graph}, dims=costs.bind_dims(state.graph), **self._how)
        self._start_ps = round(found.time_ms("start") * 1e9)
        return self._start_ps

    def resume(self, start_ps: int) -> None:
        """Measure with the yardstick of before: another day the start takes longer, and so does all else."""
        self._start_ps = start_ps

    def child(self, state: RewriteState, match: Match, state_ps: int) -> int:
        """Return the latency after a match; that before it where the child can't be timed, so that it doesn't pay."""
        assert self._start is not None
        graphs = {"start": self._start, "child": state.child_graph(match)}
        self._children += 1
        try:
            found = measure(graphs, dims=costs.bind_dims(self._start), seed=self._children - 1, **self._how)
        except CostError as error:  # a child process was killed for its memory, perhaps
            warnings.warn(f"{match} wasn't timed: {error}", stacklevel=2)
            return state_ps
        return round(self._start_ps / found.ratio("child"))


class Ranked(Searcher):
    """Descent by measured changes: the model chooses what is measured, the best measured gain is applied.

    What was measured without a gain isn't measured again while the same operators are there. ``explored`` counts
    measurements, and ``best_value`` is what was measured of the best.
    """

    def __init__(
        self,
        start: RewriteState,
        rng: np.random.Generator,
        path: str = "cost",
        top: int = 1,
        patience: int = 48,
        order: str = "learned",
        optimism: float = 0.0,
        rounds: int = 12,
        threads: int = 1,
    ) -> None:
        """Begin at a state.

        Args:
            start: where to begin; it has a cost model.
            rng: draws the order where that is random.
            path: "cost" measures by the cost model of the search, "latency" (``--search ranked:latency``) end to end.
            top: candidates that are measured at once.
            patience: measurements in vain after which the search ends.
            order: "learned"; "roofline" and "random" measure in those orders, to compare with.
            optimism: standard deviations by which a candidate may be better than expected: so the unknown is tried.
            rounds: of about 15 ms in a measurement of latency.
            threads: to measure latency with, where the cost model doesn't measure and so doesn't say.

        Raises:
            OptionError: an unknown order or measure, or a number below 1.
        """
        self.check_options(path=path, order=order)
        super().__init__(start, rng)
        check_positive(top=top, patience=patience, rounds=rounds)
        check_threads(threads)
        check_finite(optimism=optimism)
        if optimism < 0:
            raise OptionError(f"expected an optimism of 0 or more, found {optimism}")
        self.top, self.patience, self.order, self.optimism = top, patience, order, optimism
        self.model = ChangeModel()
        self._judge: Judge = ModelJudge(self.beyond_noise)
        if path == "latency":
            self._judge = LatencyJudge(rounds, start.cost_model, threads)
        self._start_ps = self.best_value = self._judge.start(start)
        self._roofline = costs.load("roofline", dims=costs.bind_dims(start.graph))
        self._whole_ps = self._roofline.graph(start.graph).time_ps
        self._rejected: set[Match] = set()
        self._known: dict[Match, dict[str, float]] = {}
        self._in_vain = 0

    @classmethod
    def check_options(cls, *, path: str = "cost", order: str = "learned", **others: Any) -> None:
        """Refuse an unknown order or measure."""
        super().check_options(**others)
        if order not in ORDERS or path not in ("cost", "latency"):
            choices = f"an order of {', '.join(ORDERS)} and a measure of cost, latency"
            raise OptionError(f"expected {choices}, found {order!r} and {path!r}")

    @property
    def settled(self) -> bool:
        """Never: it ends where patience is used up."""
        return False

    def step(self) -> bool:
        """Measure the first few of the ranking; go to the best graph measured, or end where patience is used up."""
        state = self.state(self.best)
        candidates = [m for found in state.matches for m in found if m not in self._rejected]
        if not candidates or self._in_vain >= self.patience:
            return False
        found: dict[Match, int] = {}
        for match, features in self._first(state, candidates):
            found[match] = after = self._judge.child(state, match, self.best_value)
            self.model.learn(features, 100 * (after - self.best_value) / max(self._start_ps, 1))
        self.explored += len(found)
        self._in_vain += len(found)
        enough = self.best_value - self._judge.noise * self._start_ps
        self._rejected |= {match for match, after in found.items() if after >= enough}
        best = min(found, key=found.__getitem__)
        if found[best] < enough:
            self._go(best, found[best])
        return True

    def _go(self, match: Match, cost_ps: int) -> None:
        """Apply a match and remember its graph as the best, whatever the cost model says of it."""
        self.best, _ = self.add(self.best, match)
        self.best_value = cost_ps
        self._in_vain, self._known = 0, {}

    def _first(self, state: RewriteState, candidates: list[Match]) -> list[tuple[Match, dict[str, float]]]:
        if self.order == "random":
            drawn: list[int] = self.rng.permutation(len(candidates))[: self.top].tolist()
            return [(candidates[i], self._features(state, candidates[i])) for i in drawn]
        features = [self._features(state, match) for match in candidates]
        model = self.model if self.order == "learned" else ChangeModel()
        expected = model.expect(features)
        score = expected.mean - (self.optimism * expected.std if self.order == "learned" else 0.0)
        first: list[int] = np.argsort(score, kind="stable")[: self.top].tolist()
        return [(candidates[i], features[i]) for i in first]

    def _features(self, state: RewriteState, match: Match) -> dict[str, float]:
        if match not in self._known:
            before, after, rule = state.graph, state.child_graph(match), state.rules[match.rule].name
            self._known[match] = change_features(before, after, rule, self._roofline, self._whole_ps)
        return self._known[match]

    def frontier(self) -> Any:
        """What was measured without a gain, and what was learnt."""
        rejected = [[m.rule, list(m.nodes), m.variant] for m in sorted(self._rejected)]
        learnt = [[features, change] for features, change in self.model.seen]
        return {"rejected": rejected, "in vain": self._in_vain, "learnt": learnt, "start": self._start_ps}

    def resume(self, frontier: Any) -> None:
        """Take both up."""
        self._rejected = {Match(rule, tuple(nodes), variant) for rule, nodes, variant in frontier["rejected"]}
        self._start_ps = frontier["start"]
        self._judge.resume(self._start_ps)
        self._in_vain, self.model = frontier["in vain"], ChangeModel()
        self.expect_frontier(matches=self._rejected, counts=[self._in_vain], values=[self._start_ps])
        for features, change in frontier["learnt"]:
            self.model.learn(features, change)
