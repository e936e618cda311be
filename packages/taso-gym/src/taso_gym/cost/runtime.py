"""How long runs of onnxruntime take."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property
from statistics import median
from typing import Any

import numpy as np
from onnx import TensorProto

from taso_gym.cost.beside import Serialised
from taso_gym.cost.copies import copied, identity
from taso_gym.cost.eviction import Eviction
from taso_gym.cost.sessions import Sessions

MIN_RUNS, MAX_RUNS = 7, 51
SLOW_NS, SLOW_RUNS = 5_000_000, 4
"""A model that takes so long is run so often: its times scatter less, and its code is a small part of what it reads."""
COLD_RUNS, COLD_SESSIONS = 6, {1_000_000: 6, SLOW_NS: 3}
"""Runs out of the cache, and of how many sessions one after the other each time that the cache has been emptied, for
models that take up to so long: that takes longer than most of them, up to nine tenths of a search that begins with no
times. One session at several threads, where those of the session before go on for a while."""
LONG_NS, LONG_RUNS = 40_000_000, 2
"""One that takes so long is run so often: what disturbs it lasts as long as all its runs."""
ENOUGH_NS = 8_000_000
"""More runs at once say little more: what disturbs them lasts longer (`benchmarks/scatter.py`)."""
COPIES, SHORT_PS = 8, 10**8
"""On a GPU so many copies of a node in the same run tell how long one takes, if a run of it takes less than this."""
NOTHINGS, TRIES = 32, 3
"""So many more nodes that do nothing tell what running a node as such takes; least of so many times."""
WINDOWS, WINDOWS_DIFFER = 4, 0.1
"""Wall time is measured until two times differ by no more, so often at most: other processes disturb it for a while.
What takes long (`LONG_NS`) is measured once."""


class Runtime(Sessions):
    """onnxruntime on one provider with a number of threads, with a clock.

    Raises:
        MissingPackageError: onnxruntime isn't installed.
        OptionError: an unknown provider, or no thread.
        CostError: onnxruntime comes without the provider, or it doesn't work.
    """

    def __init__(self, provider: str, threads: int) -> None:
        self._overheads, self._nodes = dict[bool, int](), dict[bool, int]()
        super().__init__(provider, threads)

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what was measured when pickled, too."""
        kept = {name: value for name, value in super().__getstate__().items() if name != "_evict"}
        return {**kept, "_overheads": {}, "_nodes": {}}

    def time(self, model: bytes | Serialised, feeds: Mapping[str, Any], cold: bool = False) -> int:
        """Return the picoseconds of a run of a model as it is, without the overhead of a run as such.

        Median of thread-CPU time at one CPU thread, least wall time at several, median of wall time on a GPU. There the
        device works on one node while the host starts the next: of a short node it is what each further copy of it in
        the same run adds, the longer of the two.

        Args:
            model: of one node, serialised, its large weights in it or beside it.
            feeds: values of its inputs, placed.
            cold: begin each run with nothing in the CPU's cache but, where it takes less than `SLOW_NS`, what a run in
                another session brings there: code and inputs, not packed weights, nor memory for results.

        Raises:
            CostError: it can't be loaded or run.
        """
        found = self._undisturbed(model, feeds, cold)
        if self.provider != "cpu" and found < SHORT_PS:
            return max(self._time(copied(model, COPIES), feeds, cold) - found, 0) // COPIES
        overhead = self._overhead_ps(cold)
        if found < 2 * overhead:  # most of it: what else the machine does should be the same for both
            overhead = min(overhead, self._time_of_nothing(0, cold) - self._node_ps(cold))
        return max(found - overhead, 0)

    def _undisturbed(self, model: bytes | Serialised, feeds: Mapping[str, Any], cold: bool) -> int:
        found = [self._time(model, feeds, cold)]
        while self.provider == "cpu" and self.threads > 1 and len(found) < WINDOWS and found[0] < LONG_NS * 1000:
            if len(found) > 1 and found[1] <= (1 + WINDOWS_DIFFER) * found[0]:
                break
            found = sorted([*found, self._time(model, feeds, cold)])
        return found[0]

    def _time(self, model: bytes | Serialised, feeds: Mapping[str, Any], cold: bool) -> int:
        run = self.bind(self.open(model, optimise=False), feeds)
        took = self._clocked(run)
        slow = took > SLOW_NS
        if not slow:
            run()
        if cold and not slow:
            most = next((sessions for longest, sessions in COLD_SESSIONS.items() if took <= longest), 1)
            runs = self._out_of_cache(run, most if self.threads == 1 else 1, model, feeds)
        else:
            runs = self._in_a_row(run, LONG_RUNS if took > LONG_NS else SLOW_RUNS if slow else MIN_RUNS, cold)
        alone = self.provider == "cpu" and self.threads == 1
        if alone and cold:  # the mean of every other run's medians, as are all times in tables and caches
            return int((median(runs[::2]) + median(runs[1::2])) * 500)
        summary = min if self.provider == "cpu" and not alone else median
        return int(summary(runs) * 1000)

    def _clocked(self, run: Callable[[], Any]) -> int:
        """Return the nanoseconds of a run."""
        clock = time.thread_time_ns if self.provider == "cpu" and self.threads == 1 else time.perf_counter_ns
        start = clock()
        run()
        return clock() - start

    def _in_a_row(self, run: Callable[[], Any], least: int, cold: bool) -> list[int]:
        """Return the nanoseconds of runs, each of which ``cold`` empties the cache before."""
        runs: list[int] = []
        while len(runs) < least or (not cold and len(runs) < MAX_RUNS and sum(runs) < ENOUGH_NS):
            if cold:
                self._evict()
            runs.append(self._clocked(run))
        return runs

    def _out_of_cache(
        self, run: Callable[[], Any], sessions: int, model: bytes | Serialised, feeds: Mapping[str, Any]
    ) -> list[int]:
        """Return the nanoseconds of runs that find code and inputs in the cache, which a twin brings there."""
        twin, runs = self.bind(self.open(model, optimise=False, spin=False), feeds), [run]
        models = [self._with_own_weights(model) for _ in range(sessions - 1)]
        for other in models:
            runs.append(self.bind(self.open(other, optimise=False), feeds))
            for _ in range(2):
                runs[-1]()
        taken: list[int] = []
        while len(taken) < COLD_RUNS:
            self._evict()
            twin()
            taken += map(self._clocked, runs)
        return taken

    def _with_own_weights(self, model: bytes | Serialised) -> bytes | Serialised:
        """Return a model whose large weights are elsewhere in memory than another's."""
        if not isinstance(model, Serialised):
            return model
        return model._replace(weights={name: self.place_weight(w.numpy()) for name, w in model.weights.items()})

    @cached_property
    def _evict(self) -> Eviction:
        return Eviction()

    def time_of_copy(self, value: Any, cold: bool = False) -> int:
        """Return the picoseconds of copying a placed value of floats within a node, as `time` does."""
        copied_ps = self.time(identity(value.element_type(), value.shape()), {"x": value}, cold)
        return max(copied_ps - self._node_ps(cold), 0)

    def _overhead_ps(self, cold: bool) -> int:
        """Return the picoseconds of a run of no node: one of a node that does nothing, less that node."""
        if cold not in self._overheads:
            self._overheads[cold] = min(self._time_of_nothing(0, cold) for _ in range(TRIES)) - self._node_ps(cold)
        return self._overheads[cold]

    def _node_ps(self, cold: bool) -> int:
        """Return the picoseconds that a node adds to a run on a CPU, whatever it does; a GPU's host runs ahead."""
        if self.provider == "cpu" and cold not in self._nodes:
            one, many = (min(self._time_of_nothing(copies, cold) for _ in range(TRIES)) for copies in (0, NOTHINGS))
            self._nodes[cold] = max(many - one, 0) // NOTHINGS
        return self._nodes.get(cold, 0)

    def _time_of_nothing(self, copies: int, cold: bool) -> int:
        feeds = {"x": self.place(np.ones(1, np.float32))}
        return self._time(copied(identity(TensorProto.FLOAT, [1]), copies), feeds, cold)
