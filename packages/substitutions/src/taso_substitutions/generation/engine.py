"""Engines: where the pure functions of the stages run; results are the same, whatever the engine."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

from taso_gym.errors import MissingPackageError, OptionError, OutOfMemoryError
from taso_gym.rules.collector import seldom

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Maps a function over items; function, items and results can be pickled.

    Attributes:
        cpu_s: CPU time that the function has taken, in all processes.
        elsewhere: whether these are others than this process.
    """

    cpu_s: float
    elsewhere: bool

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items."""
        ...

    def completed(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """Yield the place of an item and its result, as soon as there is one."""
        ...


def spent_s(running: Engine) -> float:
    """Return the CPU time so far, of this process and of the work that was done elsewhere."""
    return time.process_time() + (running.cpu_s if running.elsewhere else 0.0)


def timed(function: Callable[[Item], Result], item: Item) -> tuple[Result, float]:
    """Return the result for an item, and the CPU time that it took."""
    begin = time.process_time()
    with seldom():
        return function(item), time.process_time() - begin


class Serial:
    """In this process."""

    elsewhere = False

    def __init__(self) -> None:
        self.cpu_s = 0.0

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items."""
        for item in items:
            result, spent = timed(function, item)
            self.cpu_s += spent
            yield result

    def completed(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """Yield the place of an item and its result, as soon as there is one."""
        return enumerate(self.map(function, items))


class Processes:
    """In several processes of this machine."""

    elsewhere = True

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool, self.cpu_s = pool, 0.0

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items."""
        with _none_killed():
            for result, spent in self._pool.map(partial(timed, function), items):
                self.cpu_s += spent
                yield result

    def completed(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """Yield the place of an item and its result, as soon as there is one."""
        with _none_killed():
            places = {self._pool.submit(timed, function, item): place for place, item in enumerate(items)}
            for future in as_completed(places):
                result, spent = future.result()
                self.cpu_s += spent
                yield places[future], result


@contextmanager
def _none_killed() -> Generator[None]:
    try:
        yield
    except BrokenProcessPool as error:
        raise OutOfMemoryError(
            "expected processes that work to their end, found one killed: is memory short?"
        ) from error


class RayTasks:
    """As Ray core tasks, on the cluster that ``RAY_ADDRESS`` names or on this machine."""

    elsewhere = True

    def __init__(self, ray: Any) -> None:
        self._ray, self.cpu_s = ray, 0.0

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items."""
        task = self._ray.remote(timed)
        for reference in [task.remote(function, item) for item in items]:
            result, spent = self._ray.get(reference)
            self.cpu_s += spent
            yield result

    def completed(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """Yield the place of an item and its result, as soon as there is one."""
        task = self._ray.remote(timed)
        places = {task.remote(function, item): place for place, item in enumerate(items)}
        waiting = list(places)
        while waiting:
            (reference,), waiting = self._ray.wait(waiting)
            result, spent = self._ray.get(reference)
            self.cpu_s += spent
            yield places[reference], result


def end_with_parent() -> None:
    """Let this process end when the one that started it is gone, even if that was killed and could say nothing."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()  # with a forkserver, too, this is the process that has the pool
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def check_engine(name: str, jobs: int) -> None:
    """Make sure that there is an engine, before anything is made for its results.

    Raises:
        OptionError: another name than "processes" or "ray", or no job.
        MissingPackageError: Ray isn't installed.
    """
    if name not in ("processes", "ray") or jobs < 1:
        raise OptionError(f"expected --engine processes or ray and --jobs of 1 or more, found {name} and {jobs}")
    if name == "ray":
        _ray_module()


@contextmanager
def engine(name: str, jobs: int) -> Generator[Engine]:
    """Yield an engine; what it started ends with the block, on Ctrl-C too, and with this process, however that ends.

    Args:
        name: "processes" or "ray".
        jobs: processes; 1 is this one.

    Raises:
        OptionError, MissingPackageError: as `check_engine` does.
    """
    check_engine(name, jobs)
    if name == "ray":
        with _ray() as tasks:
            yield tasks
    elif jobs == 1:
        yield Serial()
    else:
        before = set(multiprocessing.active_children())
        context = multiprocessing.get_context("forkserver")
        pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=end_with_parent)
        try:
            yield Processes(pool)
        except BaseException:
            for process in set(multiprocessing.active_children()) - before:
                process.terminate()  # else it would work until its item is done, which may take minutes
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _ray_module() -> Any:
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingPackageError("--engine ray needs Ray: pip install 'taso-substitutions[ray]'") from error
    return ray


@contextmanager
def _ray() -> Generator[RayTasks]:
    ray = _ray_module()
    ray.init(ignore_reinit_error=True, log_to_driver=False)
    try:
        yield RayTasks(ray)
    finally:
        ray.shutdown()
