"""Engines give the results in order, and say what they took."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from taso_gym.errors import OutOfMemoryError
from taso_substitutions.generation.engine import engine


def summed(count: int) -> int:
    return sum(range(count))


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_in_order_and_the_time_of_all_processes(jobs: int) -> None:
    with engine("processes", jobs) as running:
        assert list(running.map(summed, [3, 200_000, 2])) == [3, 19_999_900_000, 1]
        assert running.cpu_s > 1e-3


def after_the_other(work: tuple[bool, Path]) -> bool:
    """Make the file, or wait until it is there, and a little more."""
    is_first, file = work
    if is_first:
        file.touch()
    else:
        while not file.exists():
            time.sleep(0.05)
        time.sleep(1)
    return is_first


def test_a_result_comes_as_soon_as_there_is_one(tmp_path: Path) -> None:
    work = [(first, tmp_path / "file") for first in (False, True)]
    with engine("processes", 2) as running:
        assert list(running.completed(after_the_other, work)) == [(1, True), (0, False)]
    with engine("processes", 1) as running:
        assert list(running.completed(summed, [3, 2])) == [(0, 3), (1, 1)]


def killed(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_is_killed_is_told() -> None:
    """As the kernel does where memory is short."""
    with (
        pytest.raises(OutOfMemoryError, match="expected processes that work to their end, found one killed"),
        engine("processes", 2) as running,
    ):
        list(running.map(killed, [1, 2]))


def asleep(seconds: int) -> None:
    time.sleep(seconds)


def test_work_ends_with_the_process_that_wanted_it() -> None:
    """Not when it is done, which may be in minutes."""
    workers: list[BaseProcess] = []
    with suppress(SystemExit), engine("processes", 2) as running:
        next(running.map(asleep, [0, 60, 60]))
        workers += multiprocessing.active_children()
        raise SystemExit(1)
    assert signal.SIGTERM in [-(worker.exitcode or 0) for worker in workers]


def test_work_ends_with_a_process_that_is_killed() -> None:
    """Which can't end it; what works has this process's pipe open."""
    program = (
        "import time; from taso_substitutions.generation.engine import engine\n"
        "with engine('processes', 2) as running:\n"
        "    results = running.map(time.sleep, [0, 90, 90])\n"
        "    next(results); print('ready', flush=True); next(results)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"ready\n"
        process.kill()
        assert process.communicate(timeout=45) == (b"", None)
