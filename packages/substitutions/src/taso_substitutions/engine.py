"""Engines: where the pure functions of the stages run; results come in the order of the items, whatever the engine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from taso_gym.errors import MissingPackageError, OptionError

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Maps a function over items; function, items and results can be pickled."""

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items."""
        ...


class Serial:
    """In this process."""

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items."""
        return map(function, items)


class Processes:
    """In several processes of this machine."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items."""
        return self._pool.map(function, items)


class RayTasks:
    """As Ray core tasks, on the cluster that ``RAY_ADDRESS`` names or on this machine."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items."""
        task = self._ray.remote(function)
        for reference in [task.remote(item) for item in items]:
            yield self._ray.get(reference)


@contextmanager
def engine(name: str, jobs: int) -> Generator[Engine]:
    """Yield an engine; what it started ends with the block, on Ctrl-C too.

    Args:
        name: "processes" or "ray".
        jobs: processes; 1 is this one.

    Raises:
        OptionError: another name, or no job.
        MissingPackageError: Ray isn't installed.
    """
    if name not in ("processes", "ray") or jobs < 1:
        raise OptionError(f"expected --engine processes or ray and --jobs of 1 or more, found {name} and {jobs}")
    if name == "ray":
        with _ray() as tasks:
            yield tasks
    elif jobs == 1:
        yield Serial()
    else:
        pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("forkserver"))
        try:
            yield Processes(pool)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _ray() -> Generator[RayTasks]:
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingPackageError("--engine ray needs Ray: pip install 'taso-substitutions[ray]'") from error
    ray.init(ignore_reinit_error=True, log_to_driver=False)
    try:
        yield RayTasks(ray)
    finally:
        ray.shutdown()
