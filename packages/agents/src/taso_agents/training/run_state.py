"""What a training run has to remember to be taken up again, and how it is ended early."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import torch


def random_state() -> dict[str, Any]:
    """Return the state of the streams that training draws from: torch's, and NumPy's global one for shuffling."""
    _, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)  # noqa: NPY002 - Stable-Baselines3 uses it
    numpy_keys = torch.from_numpy(np.asarray(keys).astype(np.int64))
    return {"torch": torch.get_rng_state(), "numpy": numpy_keys, "rest": [int(position), int(has_gauss), float(gauss)]}


def restore_random_state(state: Mapping[str, Any]) -> None:
    """Put the streams where `random_state` found them."""
    torch.set_rng_state(state["torch"])
    np.random.set_state(("MT19937", state["numpy"].numpy().astype(np.uint32), *state["rest"]))  # noqa: NPY002


@contextmanager
def torch_threads(count: int) -> Generator[None]:
    """Let torch use so many threads; put its setting back afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Interruptible(Protocol):
    """A run that ends before its next step once ``interrupted`` is set."""

    interrupted: bool


@contextmanager
def ending_on_interrupt(run: Interruptible) -> Generator[None]:
    """Let Ctrl-C end a run before its next step; a second one is raised at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(_number: int, _frame: object) -> None:
        if run.interrupted:
            raise KeyboardInterrupt
        run.interrupted = True

    previous = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
