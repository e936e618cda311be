"""What was measured end to end so far, and what it says about the cache."""

from __future__ import annotations

from math import log

import numpy as np

from taso_gym.cost import bind_dims
from taso_gym.cost.in_place import SHARES
from taso_gym.cost.measure import measure
from taso_gym.cost.measurement import Measurement
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.graph import Graph

START = "start"
LINEAR = (0.0, 0.5, 1.0)
"""Shares that costs are linear between."""


class Evidence:
    """Times of graphs by name, in units of the start's."""

    def __init__(self, start: Graph) -> None:
        """Begin with the start alone."""
        self._times = {START: 1.0}
        self._graphs = {START: start}

    @property
    def start(self) -> dict[str, Graph]:
        """The start, by its name, as long as nothing was measured against it."""
        return dict(self._graphs) if len(self._graphs) == 1 else {}

    def measure(self, graphs: dict[str, Graph], model: OnnxRuntimeCost, rounds: int, seed: int) -> Measurement:
        """Measure graphs side by side in a fresh session, and keep their times.

        Args:
            graphs: by name; the time of the first is known, or the start is among them.
            model: says with how many threads.
            rounds: so many.
            seed: of their order.
        """
        dims, runtime = bind_dims(self._graphs[START], model.dims), model.runtime
        threads, provider = runtime.threads, runtime.provider
        found = measure(graphs, threads=threads, provider=provider, dims=dims, sessions=1, rounds=rounds, seed=seed)
        first = found.reference
        if START in found.rounds:
            self._times[first] = found.ratio(START)
        for name, graph in graphs.items():
            self._times[name] = self._times[first] / found.ratio(name)
            self._graphs[name] = graph
        return found

    def optimism(self, name: str, model: OnnxRuntimeCost) -> float:
        """Return how many times as long as predicted, beside the start, a graph takes; 1 if not longer, or not run."""
        if name not in self._times:
            return 1.0
        of_it, of_start = (model.graph(self._graphs[each]).time_ps for each in (name, START))
        return max(self._times[name] * of_start / of_it, 1.0)

    def share_outside(self, model: OnnxRuntimeCost) -> float | None:
        """Return the share of the cache by which a model's costs come nearest to the times; None for two or fewer."""
        models = [model.with_outside(share) for share in LINEAR]
        times = {name: [costs.graph(graph).time_ps for costs in models] for name, graph in self._graphs.items()}

        def error(share: float) -> float:
            at = {name: log(np.interp(share, LINEAR, found)) for name, found in times.items()}
            return sum((at[n] - at[START] - log(self._times[n])) ** 2 for n in at)

        return min(SHARES, key=error) if len(times) > 2 else None
