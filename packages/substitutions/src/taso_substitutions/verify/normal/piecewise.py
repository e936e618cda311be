"""Piecewise linear functions of one variable, exactly: maxima, minima, clips and absolute values of multiples of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise


@dataclass(frozen=True)
class Piecewise:
    """``offset + slope u + sum of bends[t] max(u - t, 0)``; no bend is 0, so that equal functions are equal."""

    offset: Fraction
    slope: Fraction
    bends: Mapping[Fraction, Fraction]

    def positive_part(self) -> Piecewise:
        """Return max(f, 0)."""
        edges = sorted(self.bends)
        slope, value = self.slope, self.offset
        pieces: list[tuple[Fraction | None, Fraction, Fraction]] = []  # (begin, slope, value at u = 0 if prolonged)
        begin: Fraction | None = None
        for edge in [*edges, None]:
            pieces += _positive(begin, edge, slope, value)
            if edge is not None:
                value, slope = value - self.bends[edge] * edge, slope + self.bends[edge]
                begin = edge
        bends: dict[Fraction, Fraction] = {}
        for (_, before, _), (start, after, _) in pairwise(pieces):
            assert start is not None
            if after != before:
                bends[start] = after - before
        return Piecewise(pieces[0][2], pieces[0][1], bends)


def _positive(
    begin: Fraction | None, end: Fraction | None, slope: Fraction, value: Fraction
) -> list[tuple[Fraction | None, Fraction, Fraction]]:
    """Return the pieces of max(slope u + value, 0) between two ends, None being infinite."""
    zero = (Fraction(0), Fraction(0))
    root = -value / slope if slope else None
    crosses = root is not None and (begin is None or begin < root) and (end is None or root < end)
    if crosses:
        parts = [zero, (slope, value)] if slope > 0 else [(slope, value), zero]
        return [(begin, *parts[0]), (root, *parts[1])]
    middle = _between(begin, end)
    return [(begin, *((slope, value) if slope * middle + value > 0 else zero))]


def _between(begin: Fraction | None, end: Fraction | None) -> Fraction:
    if begin is None:
        return Fraction(0) if end is None else end - 1
    return begin + 1 if end is None else (begin + end) / 2
