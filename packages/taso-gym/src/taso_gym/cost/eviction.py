"""Weights that aren't in the cache: those of an operator whose model has more of them than the cache holds.

Between two runs of such a model all other weights pass through the cache, so that each operator reads its own from
memory: 8 % of the time of a convolution of 1 MB, half of that of a product with few columns. What an operator reads and
writes besides has just been used by its neighbours and is in the cache.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
COPYABLE = frozenset({f"tensor({name})" for name in ("float", "double", "float16", "int64", "int32", "uint8", "bool")})
"""Types of values that can be read as a NumPy array."""


def cache_bytes() -> int:
    """Return the size of the largest cache of the CPU; 0 where the system doesn't say."""
    sizes = [0]
    for path in CACHES.glob("index*/size"):
        text = path.read_text(encoding="ascii").strip()
        sizes.append(int(text.rstrip("KMG")) * UNITS.get(text[-1], 1))
    return max(sizes)


class Eviction:
    """Puts everything out of the cache but some values."""

    def __init__(self) -> None:
        """Take twice the memory that the cache holds."""
        self._others = np.ones(cache_bytes() // 2, np.float32)
        self._read_ns: list[int] = []

    def __call__(self, kept: Iterable[Any]) -> None:
        """Read as much as the cache holds twice, and then the values (of onnxruntime) that are to be in it."""
        start = time.thread_time_ns()
        self._others.max(initial=0)
        self._read_ns.append(time.thread_time_ns() - start)
        for value in kept:
            if value.data_type() in COPYABLE:
                value.numpy()

    def reading_ps(self, size_bytes: int) -> int:
        """Return how long it takes to read so many bytes from memory: the most that their eviction can cost."""
        return int(size_bytes * median(self._read_ns) * 1000 / max(self._others.nbytes, 1))
