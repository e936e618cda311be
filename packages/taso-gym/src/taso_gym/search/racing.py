"""Races of whole graphs in the course of a search."""

from __future__ import annotations

from collections.abc import Callable

from taso_gym.cost.dims import bind_dims
from taso_gym.cost.measure import measure
from taso_gym.cost.measurement import Measurement
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.graph import Graph
from taso_gym.rules.state import RewriteState
from taso_gym.search.bouts import Bout
from taso_gym.search.race import race


class Racing:
    """A search that lets graphs run against each other, and keeps what was measured."""

    def __init__(self, start: RewriteState, say: Callable[[str], None] | None) -> None:
        """Begin with a model, whose costs are measured; ``say`` is called with what is done next."""
        assert isinstance(start.cost_model, OnnxRuntimeCost)
        self._start, self._model, self._progress = start, start.cost_model, say
        self._bouts: list[Bout] = []

    def _wins(self, holder: tuple[str, Graph], name: str, graph: Graph, run_ms: float, until: float) -> bool:
        """Return whether a graph surely is faster than another in a race."""
        held = race(holder, {name: graph}, self._measured, {}, run_ms, until)
        self._bouts += [Bout(name, speedup) for name, speedup in held.speedups.items()]
        return bool(held.winner)

    def _measured(self, graphs: dict[str, Graph], rounds: int, seed: int) -> Measurement:
        self._say(f"measuring {' against '.join(graphs)}")
        threads, provider = self._model.runtime.threads, self._model.runtime.provider
        dims = bind_dims(self._start.graph, self._model.dims)
        return measure(graphs, threads=threads, provider=provider, dims=dims, sessions=1, rounds=rounds, seed=seed)

    def _say(self, what: str) -> None:
        if self._progress:
            self._progress(what)
