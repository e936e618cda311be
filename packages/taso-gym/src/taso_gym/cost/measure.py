"""End-to-end latency of several models in onnxruntime, interleaved in random order, in fresh processes.

At one thread the thread's CPU time is measured: the one estimator that other processes on the machine don't disturb
(bias at most 4 % where wall times double). At several threads it is the least wall time over the rounds.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any, Self

import numpy as np

from taso_gym import onnx_io
from taso_gym.cost.measurement import THREAD_CPU, WALL, Measurement
from taso_gym.cost.runtime import PROVIDERS, require
from taso_gym.errors import CostError, OptionError
from taso_gym.graph import Graph

CHILD = Path(__file__).with_name("latency_child.py")
ROUND_MS = 50.0
MAX_RUNS = 50
LEVELS = ("none", "basic", "extended", "all")


@dataclass(frozen=True)
class SessionSettings:
    """How onnxruntime runs a model; part of an optimisation's result.

    Attributes:
        level: graph optimisation level, one of `LEVELS`.
        disabled: names of onnxruntime's optimizers to leave out, such as "SkipLayerNormFusion".
    """

    level: str = "all"
    disabled: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise OptionError(f"expected an optimisation level among {', '.join(LEVELS)}, found {self.level!r}")


def measure(
    models: Mapping[str, Graph | str | Path],
    *,
    threads: int = 1,
    provider: str = "cpu",
    dims: Mapping[str, int] | None = None,
    settings: Mapping[str, SessionSettings] | None = None,
    sessions: int = 2,
    rounds: int = 10,
    seed: int = 0,
    timeout_s: float = 600.0,
    progress: Callable[[int, int], None] | None = None,
) -> Measurement:
    """Measure models side by side; the first is the reference.

    Each is loaded in a process of its own, ``sessions`` times anew, and run on the same random inputs: ``rounds``
    rounds of about 50 ms (3 to 50 runs) per session, the models of a round in random order.

    Args:
        models: name -> graph or file.
        threads: intra-op threads.
        provider: "cpu" or "cuda".
        dims: values of dimension symbols; others are 1 (leading axis) or 128.
        settings: name -> session settings, where they aren't the default.
        sessions: fresh processes of each model, one after the other.
        rounds: in each session.
        seed: of the order and of the inputs.
        timeout_s: longest time that loading a model, or one round of it, may take.
        progress: called with (rounds done, rounds in all).

    Raises:
        OptionError: no model, or an unknown provider.
        MissingPackageError: onnxruntime isn't installed.
        CostError: a model can't be loaded or run, doesn't answer in time, or the provider isn't there.
    """
    if not models or sessions < 1 or rounds < 1 or threads < 1:
        raise OptionError("expected at least one model, session, round and thread")
    if provider not in PROVIDERS:
        raise OptionError(f"expected a provider among {', '.join(PROVIDERS)}, found {provider!r}")
    require("onnxruntime")
    estimator = THREAD_CPU if threads == 1 and provider == "cpu" else WALL
    times = {name: np.empty((sessions, rounds)) for name in models}
    common = {"threads": threads, "provider": PROVIDERS[provider], "dims": dict(dims or {}), "seed": seed}
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="taso-gym-") as folder:
        paths = {name: _as_file(model, Path(folder) / f"{i}.onnx") for i, (name, model) in enumerate(models.items())}
        for session in range(sessions):
            with ExitStack() as stack:
                children: dict[str, _Child] = {}
                for name, path in paths.items():
                    own = {**common, **asdict((settings or {}).get(name, SessionSettings())), "model": str(path)}
                    children[name] = stack.enter_context(_Child(name, own, timeout_s))
                for i, found in enumerate(_rounds(children, rounds, rng)):
                    for name, nanoseconds in found.items():
                        times[name][session, i] = (median if estimator == THREAD_CPU else min)(nanoseconds) / 1e6
                    if progress:
                        progress(session * rounds + i + 1, sessions * rounds)
    return Measurement(times, threads, PROVIDERS[provider], estimator)


def _rounds(children: Mapping[str, _Child], rounds: int, rng: np.random.Generator) -> Iterator[dict[str, list[int]]]:
    """Yield the times of each model's runs in nanoseconds, round by round."""
    runs = {name: _runs_per_round(child) for name, child in children.items()}
    for _ in range(rounds):
        yield {name: children[name].run(runs[name]) for name in map(str, rng.permutation(list(children)))}


def _as_file(model: Graph | str | Path, path: Path) -> Path:
    if not isinstance(model, Graph):
        if not Path(model).is_file():
            raise CostError(f"expected a model file, found nothing at {model}")
        return Path(model).absolute()
    onnx_io.save(model, path)
    return path


def _runs_per_round(child: _Child) -> int:
    child.run(1)
    run_ms = min(child.run(2)) / 1e6
    return int(min(max(3, ROUND_MS / max(run_ms, 1e-3)), MAX_RUNS))


class _Child:
    """A process that holds one model in memory and times runs of it on demand."""

    def __init__(self, name: str, settings: Mapping[str, Any], timeout_s: float) -> None:
        self._name, self._timeout = name, timeout_s
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        environment = {**os.environ, "OMP_NUM_THREADS": str(settings["threads"])}
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self._ask(settings)
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def run(self, runs: int) -> list[int]:
        """Return the times of so many runs in nanoseconds."""
        return self._ask({"runs": runs})["times"]

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                self._answers.put(line)
        self._answers.put(b"")

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=self._timeout)
        except queue.Empty:
            raise CostError(
                f"expected {self._name} to answer within {self._timeout:g} s while it is measured, found nothing"
            ) from None
        except BrokenPipeError:
            line = b""
        if not line:
            raise CostError(f"expected {self._name} to run, found that its process ended: {self._last_words()}")
        answer = json.loads(line)
        if "error" in answer:
            raise CostError(f"expected {self._name} to run, found {' '.join(str(answer['error']).split())}")
        return answer

    def _last_words(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        said = [line for line in lines if line.strip()]
        return f"exit status {code}{', ' + said[-1].strip() if said else ''}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdin
        with suppress(BrokenPipeError):  # a request that a dead process didn't read
            self._process.stdin.close()
        self._errors.close()
