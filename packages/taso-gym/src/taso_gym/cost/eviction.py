"""Memory that isn't in the cache when an operator runs, for the rest of its model has run since the last time.

What a model needs passes through the cache between two runs of an operator; and so does what the host's other machines
need: a product whose weights are 2 MiB takes 34 µs in a loop, 180 if it runs every five milliseconds and 220 every ten,
though nothing else is read here (`benchmarks/cache_decay.py`). So all but the smallest models read weights from memory,
which is half of the time of a product with few columns. Results that don't fit into the inner caches are written to
memory that has been used lately or not, as the runtime gives it out; that is two thirds of the time of a transposition.
Here it hasn't been. What an operator reads besides has just been made by its neighbours: what takes little time runs
once before it is timed (`taso_gym.cost.runtime`, `taso_gym.cost.joined`), which brings that back, and the code.

Where that memory is has to be looked up anew as well: a CPU remembers where some thousand pages are (TLB), and what is
read in between pushes these out only if it lies on pages of the usual size, not on huge ones, as NumPy asks for.
"""

from __future__ import annotations

from contextlib import suppress
from mmap import MADV_NOHUGEPAGE, MAP_ANONYMOUS, MAP_PRIVATE, PAGESIZE, mmap
from pathlib import Path

import numpy as np

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
MOST = 1 << 27
"""Bytes that are read at most where that is the cache twice; one of 260 MiB, which takes 23 ms to read, is read over
once. Where several models run then, which push each other out as well, no more than this is; nor at several threads."""


def cache_bytes(level: int | None = None) -> int:
    """Return the size of the CPU's largest cache, or its largest of a level; 0 where the system doesn't say."""
    return max((_size_bytes(folder, level) for folder in CACHES.glob("index*")), default=0)


def _size_bytes(folder: Path, level: int | None) -> int:
    """Return the size of a cache; 0 of one of another level, or whose size some virtual machines don't say."""
    try:
        if level is not None and int((folder / "level").read_text(encoding="ascii")) != level:
            return 0
        text = (folder / "size").read_text(encoding="ascii").strip()
        return int(text.rstrip("KMG")) * UNITS.get(text[-1], 1)
    except (OSError, ValueError, IndexError):
        return 0


LARGE = (cache_bytes(2) or 1 << 20) // 4
"""Floats of a result that doesn't stay in the inner caches; where the system doesn't say how large these are, 1 MiB."""


class Eviction:
    """Puts everything out of the cache."""

    def __init__(self) -> None:
        """Take as much memory as the cache holds twice, of a large one once, on pages of the usual size."""
        cache = max(cache_bytes(), PAGESIZE)
        memory = mmap(-1, max(cache, min(2 * cache, MOST)), MAP_PRIVATE | MAP_ANONYMOUS)
        with suppress(OSError):  # a kernel without huge pages
            memory.madvise(MADV_NOHUGEPAGE)
        self._others = np.frombuffer(memory, np.float32)
        self._others[:] = 1

    def __call__(self, whole: bool = True) -> None:
        """Read all of that memory, or `MOST` of it."""
        self._others[: None if whole else MOST // self._others.itemsize].max(initial=0)
