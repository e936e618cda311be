"""What several times of a node say, each taken in a turn of its own beside those of others.

The first quartile counts, of seven the second least. It scatters less than the median (`benchmarks/scatter.py`), and
unlike the least it doesn't prefer short kernels, which more often than long ones have a moment when nothing else
disturbs them (`benchmarks/estimators.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt

TURNS, MOST = 7, 28
"""Times of a node that are taken at once, and of those that scatter again and again until there are so many."""
SCATTERED = 0.03
"""Part of a time that the interval it is in may be wide: those of one quiet minute are within 2 %."""
UNKNOWN = 0.25
"""Part of a time that was taken once which it may be off by."""
DEVIATIONS = 1.44
"""Standard deviations to both sides, between which 85 % of a normal distribution are."""

Taken = Sequence[tuple[int, int]]
"""Picoseconds of a node, and what of them is the copy of what it adds to in place within a network."""


def quiet(taken: Taken) -> int:
    """Return what is left of the time when little else disturbed it without the copy when little disturbed that."""
    whole, copies = (_quartile(times) for times in zip(*taken, strict=True))
    return max(whole - copies, 0)


def between(taken: Taken) -> tuple[int, int]:
    """Return two times that the first quartile is between with 85 % confidence, however times are distributed.

    How many of n times are below it is binomial, with mean n / 4 and variance 3 n / 16: of seven times these are the
    least and the fifth. Of four times, the fewest, all of them hold it with 68 %, of six with 82 %.
    """
    whole, copies = zip(*taken, strict=True)
    count, ordered, copy = len(taken), sorted(whole), _quartile(copies)
    aside = DEVIATIONS * sqrt(3 * count / 16)
    places = max(int(count / 4 - aside), 0), min(ceil(count / 4 + aside), count - 1)
    low, high = (max(ordered[place] - copy, 0) for place in places)
    return low, high


def uncertainty(taken: Taken | None) -> float:
    """Return which part of a time it may be off by; 0 for one that is settled.

    A node whose times scatter was measured while others disturbed it, and is measured again some other time.

    Args:
        taken: the times; None for a node that had no turns yet.
    """
    if not taken:
        return UNKNOWN
    low, high = between(taken)
    scatter = (high - low) / max(quiet(taken), 1)
    return scatter if len(taken) < MOST and scatter > SCATTERED else 0.0


def _quartile(times: Sequence[int]) -> int:
    return sorted(times)[len(times) // 4]
