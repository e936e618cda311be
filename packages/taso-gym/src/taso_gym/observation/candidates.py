"""The legal substitutions of a state as rows of arrays; a rule's rows are made anew only when its matches change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.observation.layout import Layout
from taso_gym.rules.state import Match

Block = NDArray[np.signedinteger[Any]]

_NODES = attrgetter("nodes")


class CandidateRows:
    """For each rule its matches as (rule, location, rows of the matched nodes), and how many of them are legal.

    Attributes:
        counts: (N + 1,) legal locations of each rule; they are 0 … count-1. NO-OP's is 1.
        total: number of candidates, at most ``layout.matches``.
    """

    def __init__(self, layout: Layout, matches: Sequence[tuple[Match, ...]], row_of: Mapping[int, int]) -> None:
        """Lay out all matches of a state; ``row_of`` is `GraphRows.row_of`."""
        self._layout = layout
        self._blocks: list[Block | None] = [None] * len(matches)
        self._lengths = np.zeros(len(matches), np.int32)
        self._enter(dict(enumerate(matches)), row_of)

    def copy(self) -> CandidateRows:
        """Return a copy that can be patched by itself; blocks are never changed, so they are shared."""
        other = CandidateRows.__new__(CandidateRows)
        other._layout, other._blocks, other._lengths = self._layout, self._blocks.copy(), self._lengths.copy()
        other.counts, other.total = self.counts, self.total
        return other

    def patch(self, matches: Sequence[tuple[Match, ...]], renewed: Iterable[int], row_of: Mapping[int, int]) -> None:
        """Go on to the matches of a child of the state; ``renewed`` are the rules whose matches differ."""
        self._enter({rule: matches[rule] for rule in renewed}, row_of)

    def write(self, out: NDArray[np.int32]) -> None:
        """Fill ``matches`` (M, 2 + P): the candidates in canonical order, then rows of -1."""
        out[self.total :] = -1
        blocks = [block for block in self._blocks if block is not None]
        if self._lengths.sum() > self.total:  # more than there is room for
            out[: self.total] = np.concatenate(blocks)[: self.total]
        elif blocks:
            np.concatenate(blocks, out=out[: self.total])

    def action(self, candidate: int) -> tuple[int, int]:
        """Return (xfer, location) of a candidate, 0 … total-1."""
        ends = np.cumsum(self.counts[:-1])
        rule = int(np.searchsorted(ends, candidate, side="right"))
        return rule, candidate - int(ends[rule] - self.counts[rule])

    def _enter(self, changed: Mapping[int, Sequence[Match]], row_of: Mapping[int, int]) -> None:
        """Make the blocks of rules anew, and count."""
        most, blank = self._layout.locations, self._layout.blank
        legal = {rule: found[:most] for rule, found in changed.items()}
        nodes = chain.from_iterable(map(_NODES, chain.from_iterable(legal.values())))
        rows = np.fromiter(map(row_of.get, nodes, repeat(-1)), blank.dtype)
        begin = 0
        for rule, found in legal.items():
            length = self._lengths[rule] = len(found)
            if not found:
                self._blocks[rule] = None
                continue
            block = self._blocks[rule] = blank[:length].copy()
            block[:, 0] = rule
            widths = set(map(len, map(_NODES, found)))
            if len(widths) == 1:
                (width,) = widths
                block[:, 2 : 2 + width] = rows[begin : (end := begin + length * width)].reshape(length, width)
                begin = end
                continue
            for row, match in zip(block, found, strict=True):  # orders of operands in which some are the same node
                row[2 : 2 + len(match.nodes)] = rows[begin : (end := begin + len(match.nodes))]
                begin = end
        self._count()

    def _count(self) -> None:
        most, lengths = self._layout.matches, self._lengths
        self.total = int(lengths.sum())
        if self.total > most:
            lengths = np.diff(np.minimum(np.cumsum(lengths), most), prepend=0)
            self.total = most
        self.counts = np.empty(len(lengths) + 1, np.int32)
        self.counts[:-1], self.counts[-1] = lengths, 1
