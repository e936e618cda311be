"""What single looks at kernels say of times in turns: most are too high, and the smallest kernels' the most."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

NEIGHBOURS = 24
"""Nodes of about the same time that count."""
FEW = 8
"""Of so few nodes nothing is learned."""


class Looks:
    """Ratios of times in turns to times by one look, by the latter."""

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        """Learn from (time by one look, time in turns) of some nodes."""
        found = np.array(sorted(pair for pair in pairs if pair[0] > 0), np.float64).reshape(-1, 2)
        self._looks, self._ratios = found[:, 0], found[:, 1] / found[:, 0]

    def expected(self, look: int, quantile: float = 0.5) -> int:
        """Return what a time by one look would be in turns, by the nodes that took about as long.

        Args:
            look: picoseconds.
            quantile: so many of these nodes were no dearer.
        """
        count = len(self._looks)
        if count < FEW:
            return look
        middle = int(np.searchsorted(self._looks, look))
        first = max(0, min(middle - NEIGHBOURS // 2, count - NEIGHBOURS))
        return round(look * float(np.quantile(self._ratios[first : first + NEIGHBOURS], quantile)))
