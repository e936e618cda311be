"""Python's garbage collector, while much is made that stays."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

SELDOM = (100_000, 50, 100)
"""What it takes before each generation is looked through (`gc.set_threshold`; usually 700, 10, 10)."""


@contextmanager
def paused() -> Generator[None]:
    """Keep the collector from running: it would walk over all that was made so far, again and again, in vain."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def seldom() -> Generator[None]:
    """Let the collector run less often: for work that makes many small objects, hardly any of them in cycles."""
    before = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
