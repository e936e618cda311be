"""End-to-end latency of several models in onnxruntime, interleaved in random order, in fresh processes.

At one thread the thread's CPU time is measured: the one estimator that other processes on the machine don't disturb
(bias at most 4 % where wall times double). At several threads it is the least wall time over the rounds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from taso_gym import onnx_io
from taso_gym.checks import (
    check_finite,
    check_kind,
    check_path,
    check_seed,
    check_sizes,
    check_threads,
    check_whole,
    items_of,
)
from taso_gym.cost.child import Child
from taso_gym.cost.dims import bind_dims
from taso_gym.cost.measurement import THREAD_CPU, WALL, Measurement
from taso_gym.cost.packages import PROVIDERS, require_provider, temporary_folder
from taso_gym.errors import CostError, OptionError
from taso_gym.graph import Graph

ROUND_MS, MAX_RUNS = 15.0, 50
"""A round is short: what else the machine does lasts tens of milliseconds to seconds, and longer ones say no more."""
MANY, FEW, ENOUGH_S = 30, 5, 5.0
"""Rounds of a session unless their number is given: as many as take so many seconds of the slowest model, between many
and few; of wall time twice as many as these at least, since a minimum varies more than a median."""
WARM_RUNS, SLOW_MS = 3, 500.0
"""What takes longer in its second run is warm after that: memory is laid out by what the first one used."""
LOAD_S = 0.5
"""About how long loading a model takes."""
LEVELS = ("none", "basic", "extended", "all")


@dataclass(frozen=True)
class SessionSettings:
    """How onnxruntime runs a model; part of an optimisation's result.

    Attributes:
        level: graph optimisation level, one of `LEVELS`.
        disabled: names of onnxruntime's optimizers to leave out, such as "SkipLayerNormFusion".
        denormals_as_zero: whether floats below 1.2e-38 count as zero. A CPU may take thirty times as long for a
            product of these, as a Softmax makes them of what is masked by -100.
    """

    level: str = "all"
    disabled: tuple[str, ...] = ()
    denormals_as_zero: bool = False

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise OptionError(f"expected an optimisation level among {', '.join(LEVELS)}, found {self.level!r}")
        items_of(self.disabled, str, "a tuple of names of optimizers")


class Runner(NamedTuple):
    """A model in another runtime.

    Attributes:
        script: answers as `taso_gym.cost.latency_child` does, started by the same Python.
        model: file that it is given.
    """

    script: Path
    model: Path


def measure(
    models: Mapping[str, Graph | str | Path | Runner],
    *,
    threads: int = 1,
    provider: str = "cpu",
    dims: Mapping[str, int] | None = None,
    settings: Mapping[str, SessionSettings] | None = None,
    sessions: int = 2,
    rounds: int | None = None,
    seed: int = 0,
    timeout_s: float = 600.0,
    progress: Callable[[int, int], None] | None = None,
) -> Measurement:
    """Measure models side by side; the first is the reference.

    Each runs in a process of its own, on the same random inputs, in rounds of random order: as often in each as the
    reference does in about 15 ms, once at least.

    Args:
        models: name -> graph or file for onnxruntime, or another runtime with a file.
        threads: intra-op threads.
        provider: "cpu" or "cuda".
        dims: values of dimension symbols; others are those that the first graph was loaded with, else 1 where they
            first occur on a leading axis, or 128.
        settings: name -> session settings, where they aren't the default.
        sessions: fresh processes of each model, one after the other.
        rounds: in each session; None for as many as take five seconds of the slowest model, from 5 to 30, or from 10
            of wall time.
        seed: of the order and of the inputs.
        timeout_s: longest time to load a model, and for a round of it.
        progress: called with (rounds done, rounds in all).

    Raises:
        OptionError: no model, session, thread or round, a negative seed, an unknown provider, or an argument of a wrong
            kind.
        MissingPackageError: onnxruntime isn't installed.
        CostError: a model doesn't load, run or answer in time, or the provider isn't there.
    """
    check_kind("models", models, (Mapping,), "a mapping from names to models")
    check_kind("settings", settings, (Mapping, type(None)), "a mapping from names to SessionSettings")
    items_of((settings or {}).values(), SessionSettings, "SessionSettings by name")
    check_sizes(dims)
    check_finite(timeout_s=timeout_s)
    if timeout_s < 0:
        raise OptionError(f"expected a timeout_s of 0 or more, found {timeout_s}")
    _expect_some(models=len(models), sessions=sessions, rounds=MANY if rounds is None else rounds)
    threads = check_threads(threads)
    check_whole(seed=seed)
    seed = check_seed(seed)
    require_provider(provider)
    estimator, summary = (THREAD_CPU, median) if threads == 1 and provider == "cpu" else (WALL, min)
    times = {name: list[float]() for name in models}
    sizes = _sizes(models.values(), dims or {})
    common = {"threads": threads, "provider": PROVIDERS[provider], "dims": sizes, "seed": seed}
    with temporary_folder() as folder:
        own = {name: {**common, "model": _as_file(model, folder)} for name, model in models.items()}
        for name in models:
            own[name] |= asdict((settings or {}).get(name, SessionSettings()))
            if isinstance(model := models[name], Runner):
                own[name]["script"] = str(model.script)
        between = (rounds, rounds) if rounds else (FEW if estimator == THREAD_CPU else 2 * FEW, MANY)
        for done, in_all, found in _rounds(own, sessions, between, seed, timeout_s):
            for name, runs in found.items():
                times[name].append(summary(runs) / 1e6)
            if progress:
                progress(done, in_all)
    by_session = {name: np.array(found).reshape(sessions, -1) for name, found in times.items()}
    return Measurement(by_session, threads, PROVIDERS[provider], estimator)


def outputs_with(
    settings: SessionSettings,
    model: str | Path,
    *,
    threads: int = 1,
    provider: str = "cpu",
    dims: Mapping[str, int] | None = None,
    timeout_s: float = 600.0,
) -> list[NDArray[Any]]:
    """Return the outputs of a file in a fresh process, on inputs as `measure` draws them.

    Raises:
        CostError: it doesn't load or run in time, or an output isn't an array of numbers.
    """
    with temporary_folder() as folder:
        file, sizes = folder / "outputs.npz", {name: int(size) for name, size in (dims or {}).items()}
        common = {"threads": threads, "provider": PROVIDERS[provider], "dims": sizes, "seed": 0, "outputs": str(file)}
        with Child("the model", {**common, "model": _as_file(model, folder), **asdict(settings)}, timeout_s):
            try:
                with np.load(file) as found:
                    return list(found.values())
            except ValueError as error:  # objects
                raise CostError(f"expected arrays of numbers as outputs, found others: {error}") from error


def _expect_some(**counts: int) -> None:
    check_whole(**counts)
    for name, count in counts.items():
        if count < 1:
            raise OptionError(f"expected at least one of the {name}, found {count}")


def _sizes(models: Iterable[object], dims: Mapping[str, int]) -> dict[str, int]:
    """Return sizes of symbols: the given ones, else those of graphs, the first of which counts."""
    found = {name: int(size) for name, size in dims.items()}
    for graph in models:
        if isinstance(graph, Graph):
            found = {**bind_dims(graph, dims), **found}
    return found


def _rounds(
    settings: Mapping[str, Mapping[str, Any]], sessions: int, between: tuple[int, int], seed: int, timeout_s: float
) -> Iterator[tuple[int, int, dict[str, list[int]]]]:
    """Load each model in a process, anew for each session, and yield the times of its runs, round by round.

    A session has as many rounds as take `ENOUGH_S`, but no fewer and no more than ``between`` says. Every other one
    loads them the other way round, the first one if the seed is odd: of five processes with the same file those that
    are loaded later are up to 1 or 3 % faster, each time (`benchmarks/loading.py`).

    Yields:
        rounds done and in all, and for each model the nanoseconds of its runs.
    """
    rng, rounds = np.random.default_rng(seed), 0
    for session in range(sessions):
        with ExitStack() as stack:
            names = list(settings)[:: -1 if (session + seed) % 2 else 1]
            children = {name: stack.enter_context(Child(name, settings[name], timeout_s)) for name in names}
            run_ms = {name: _warm(child) for name, child in children.items()}
            runs = _runs_per_round(run_ms[next(iter(settings))])  # of each: the first of a round finds a cold cache
            if not session:
                slowest_ms = max(runs * max(run_ms.values()), 1e-3)
                rounds = round(min(max(1e3 * ENOUGH_S / slowest_ms, between[0]), between[1]))
            for i in range(rounds):
                found = {name: children[name].run(runs) for name in map(str, rng.permutation(list(children)))}
                yield session * rounds + i + 1, sessions * rounds, found


def _as_file(model: Graph | str | Path | Runner, folder: Path) -> str:
    if isinstance(model, Runner):
        model = model.model
    if not isinstance(model, Graph):
        file = check_path(model, "a Graph, a Runner or the path of a model")
        if not os.path.isfile(file):
            raise CostError(f"expected a model file, found nothing at {file}")
        return str(file.absolute())
    path = folder / f"{len(list(folder.iterdir()))}.onnx"
    onnx_io.save(model, path)
    return str(path)


def seconds_of(run_ms: float, sessions: int, rounds: int) -> float:
    """Return about how many seconds `measure` takes for a model, given its milliseconds and all its rounds."""
    warming = sessions * (LOAD_S + _warm_runs(run_ms) * run_ms / 1e3)
    return warming + rounds * _runs_per_round(run_ms) * run_ms / 1e3


def _runs_per_round(run_ms: float) -> int:
    return int(min(max(1, ROUND_MS / max(run_ms, 1e-3)), MAX_RUNS))


def _warm(child: Child) -> float:
    """Run a model for the first times; return the milliseconds of a run."""
    child.run(1)
    found = child.run(1)
    if more := _warm_runs(found[0] / 1e6) - 2:
        found += child.run(more)
    return min(found) / 1e6


def _warm_runs(run_ms: float) -> int:
    return 2 if run_ms > SLOW_MS else WARM_RUNS
