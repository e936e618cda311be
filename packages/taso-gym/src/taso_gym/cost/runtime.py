"""How long runs of onnxruntime take."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from statistics import median
from typing import Any

import numpy as np
from onnx import TensorProto

from taso_gym.cost.beside import Fed, Model, Serialised, aligned
from taso_gym.cost.copies import copied, identity
from taso_gym.cost.eviction import Eviction
from taso_gym.cost.joined import times_out_of_cache
from taso_gym.cost.sessions import Sessions

MIN_RUNS, MAX_RUNS = 7, 51
SLOW_NS, SLOW_RUNS = 5_000_000, 4
"""A model that takes so long is run so often: its times scatter less, and its code is a small part of what it reads."""
COLD_RUNS, COLD_SESSIONS = 6, {1_000_000: 6, SLOW_NS: 3}
"""Runs out of the cache, and of how many sessions one after the other each time that the cache has been emptied, for
models that take up to so long: that takes longer than most of them, up to nine tenths of a search that begins with no
times. Two sessions where it is emptied for several models."""
LONG_NS, LONG_RUNS = 40_000_000, 2
"""One that takes so long is run so often: what disturbs it lasts as long as all its runs."""
ENOUGH_NS = 8_000_000
"""More runs at once say little more: what disturbs them lasts longer (`benchmarks/scatter.py`)."""
COPIES, SHORT_PS = 8, 10**8
"""On a GPU so many copies of a node in the same run tell how long one takes, if a run of it takes less than this."""
NOTHINGS, TRIES = 32, 3
"""So many more nodes that do nothing tell what running a node as such takes; least of so many times."""
WINDOWS, WINDOWS_DIFFER = 4, 0.1
"""Wall time in the cache is measured until two times differ by no more, so often at most: other processes disturb it
for a while. What takes long (`LONG_NS`) is measured once."""


class Runtime(Sessions):
    """onnxruntime on one provider with a number of threads, with a clock.

    Raises:
        MissingPackageError: onnxruntime isn't installed.
        OptionError: an unknown provider, or no thread.
        CostError: onnxruntime comes without the provider, or it doesn't work.
    """

    def __init__(self, provider: str, threads: int) -> None:
        self._overheads: dict[bool, tuple[int, int]] = {}
        super().__init__(provider, threads)

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what was measured when pickled, too."""
        kept = {name: value for name, value in super().__getstate__().items() if name != "_evict"}
        return {**kept, "_overheads": {}}

    @property
    def alone(self) -> bool:
        """Whether times are those of a CPU's thread, which other processes hardly disturb."""
        return self.provider == "cpu" and self.threads == 1

    def time(self, model: Model, feeds: Mapping[str, Any], cold: bool = False) -> int:
        """Return what `times` does, of one model."""
        return self.times([(model, feeds)], cold)[0]

    def times(self, models: Sequence[Fed], cold: bool = False) -> list[int]:
        """Return the picoseconds of a run of each model as it is, without the overhead of a run as such.

        Median of thread-CPU time at one CPU thread, least wall time at several, median of wall time on a GPU. There the
        device works on one node while the host starts the next: of a short node it is what each further copy of it in
        the same run adds, the longer of the two.

        Args:
            models: each of one node, serialised, its large weights in it or beside it, with its inputs, placed.
            cold: begin each run with nothing in the CPU's cache but, where it takes less than `SLOW_NS`, what a run in
                another session brings there: code and inputs, not packed weights, nor memory for results. The cache is
                emptied once for a run of each. At several threads they share a session, and what a run brings there is
                of one with other weights, where they read less than `taso_gym.cost.joined.LARGE`.

        Raises:
            CostError: one can't be loaded or run.
        """
        if cold and self.alone:
            nothing, *found = self._out_of_cache([_nothings(self, 0), *models])
            return [self._without_overhead(time_ps, True, lambda: nothing) for time_ps in found]
        if cold:
            _, node = self._overhead(False)
            return [time_ps + node for time_ps in times_out_of_cache(self, models, partial(self._evict, whole=False))]
        return [self._lone_time(model, feeds) for model, feeds in models]

    def _lone_time(self, model: Model, feeds: Mapping[str, Any]) -> int:
        found = self._undisturbed(model, feeds)
        if self.provider != "cpu" and found < SHORT_PS:
            return max(self._time(copied(model, COPIES), feeds) - found, 0) // COPIES
        return self._without_overhead(found, False, lambda: self._time(*_nothings(self, 0)))

    def _without_overhead(self, found: int, cold: bool, nothing: Callable[[], int]) -> int:
        """Return a time without that of beginning a run, which ``nothing`` measures at about the same moment."""
        overhead, node = self._overhead(cold)
        if found < 2 * overhead:  # most of it: what else the machine does should be the same for both
            overhead = min(overhead, nothing() - node)
        return max(found - overhead, 0)

    def _undisturbed(self, model: Model, feeds: Mapping[str, Any]) -> int:
        found = [self._time(model, feeds)]
        while self.provider == "cpu" and self.threads > 1 and len(found) < WINDOWS and found[0] < LONG_NS * 1000:
            if len(found) > 1 and found[1] <= (1 + WINDOWS_DIFFER) * found[0]:
                break
            found = sorted([*found, self._time(model, feeds)])
        return found[0]

    def _time(self, model: Model, feeds: Mapping[str, Any], cold: bool = False) -> int:
        if cold:
            return self._out_of_cache([(model, feeds)])[0]
        run = self.bind(self.open(model, optimise=False), feeds)
        if (took := self._clocked(run)) <= SLOW_NS:
            run()
        least = MIN_RUNS if took <= SLOW_NS else SLOW_RUNS if took <= LONG_NS else LONG_RUNS
        runs: list[int] = []
        while len(runs) < least or (len(runs) < MAX_RUNS and sum(runs) < ENOUGH_NS):
            runs.append(self._clocked(run))
        return int((min if self.provider == "cpu" and not self.alone else median)(runs) * 1000)

    def _clocked(self, run: Callable[[], Any]) -> int:
        """Return the nanoseconds of a run."""
        clock = time.thread_time_ns if self.alone else time.perf_counter_ns
        start = clock()
        run()
        return clock() - start

    def _out_of_cache(self, models: Sequence[Fed]) -> list[int]:
        """Return the picoseconds of a run of each model that begins out of the cache, emptied once for one of each."""
        sessions = max(COLD_RUNS // max(len(models) - 1, 1), 2)
        prepared = [self._prepared(model, feeds, sessions) for model, feeds in models]
        while any(runs.due > 0 for runs in prepared):
            self._evict(whole=len(models) < 3)
            for runs in prepared:
                runs.take(self._clocked)
        found = (runs.taken for runs in prepared)  # of each the mean of every other run's medians, as in all tables
        return [int((median(taken[::2]) + median(taken[1::2])) * 500) for taken in found]

    def _prepared(self, model: Model, feeds: Mapping[str, Any], sessions: int) -> ColdRuns:
        """Return a model that has run in so many sessions at most."""
        run = self.bind(self.open(model, optimise=False), feeds)
        if (took := self._clocked(run)) > SLOW_NS:
            return ColdRuns([model], [run], None, LONG_RUNS if took > LONG_NS else SLOW_RUNS)
        run()
        twin, runs = self.bind(self.open(model, optimise=False), feeds), [run]
        most = next((most for longest, most in COLD_SESSIONS.items() if took <= longest), 1)
        models = [self._with_own_weights(model) for _ in range(1, min(sessions, most))]
        for other in models:
            runs.append(self.bind(self.open(other, optimise=False), feeds))
            runs[-1]()
            runs[-1]()
        return ColdRuns([model, *models], runs, twin, COLD_RUNS)

    def _with_own_weights(self, model: Model) -> Model:
        """Return a model whose large weights are elsewhere in memory than another's."""
        if not isinstance(model, Serialised):
            return model
        own = {name: self.place_weight(aligned(weight.numpy())) for name, weight in model.weights.items()}
        return model._replace(weights=own)

    @cached_property
    def _evict(self) -> Eviction:
        return Eviction()

    def times_of_copies(self, values: Sequence[Any], cold: bool = False) -> list[int]:
        """Return the picoseconds of copying each placed value of floats within a node, as `times` does."""
        if not values:
            return []
        found = self.times([(identity(value.element_type(), value.shape()), {"x": value}) for value in values], cold)
        return [max(time_ps - self._overhead(cold and self.alone)[1], 0) for time_ps in found]

    def _overhead(self, cold: bool) -> tuple[int, int]:
        """Return the picoseconds of a run of no node, and those that a node adds to it on a CPU, whatever it does.

        A run of no node is one of a node that does nothing, less that node. A GPU's host runs ahead of nodes.
        """
        if cold not in self._overheads:
            copies = (0, NOTHINGS) if self.provider == "cpu" else (0,)
            tries = [[self._time(*_nothings(self, count), cold) for count in copies] for _ in range(TRIES)]
            one, many = min(found[0] for found in tries), min(found[-1] for found in tries)
            node = max(many - one, 0) // NOTHINGS
            self._overheads[cold] = one - node, node
        return self._overheads[cold]


@dataclass
class ColdRuns:
    """Runs of a model that begin out of the cache.

    Attributes:
        models: what runs, whose weights have to live as long.
        runs: of sessions that share nothing large, one after the other.
        twin: a run of another session, which brings code and inputs back before; None where these are little of it.
        due: how many runs are still to be taken.
        taken: nanoseconds of those that were.
    """

    models: list[Model]
    runs: list[Callable[[], Any]]
    twin: Callable[[], Any] | None
    due: int
    taken: list[int] = field(default_factory=list[int])

    def take(self, clock: Callable[[Callable[[], Any]], int]) -> None:
        """Run once in each session, unless no run is due any more."""
        if self.due <= 0:
            return
        if self.twin:
            self.twin()
        self.taken += map(clock, self.runs)
        self.due -= len(self.runs)


def _nothings(runtime: Sessions, copies: int) -> Fed:
    """Return the model of a node that does nothing, and of so many copies of it."""
    return copied(identity(TensorProto.FLOAT, [1]), copies), {"x": runtime.place(np.ones(1, np.float32))}
