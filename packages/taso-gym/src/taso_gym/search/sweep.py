"""The matches of a graph that are still to be weighed, and which come first.

With measured costs a search from an empty cache may end before all are: of a batch, the forms of a convolution of
eight large images take the longest to measure, and gain the most. What a rule gains at one place says what to expect
of it at others. So each rule is weighed where it moves the fewest bytes; then what gained goes on at larger and larger
places, that first which saved the greatest part of the time of what it replaced; and then all others.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from taso_gym.cost_model import Cost
from taso_gym.rules.state import Match

PROMISE = 0.01
"""A rule promises to gain that saved such a part of the time of what it replaced. Where another objective is lowered,
this is an order as good as any."""

Gains = dict[int, tuple[int, int]]
"""Rule -> by how much it changed the value, and the picoseconds of what it replaced: sums over all places where it was
weighed, of which large ones say more."""


class Sweep:
    """Matches of one graph."""

    def __init__(self, matches: Iterable[Match], replaced: Callable[[Match], Cost] | None, gains: Gains) -> None:
        """Begin with all that are to be weighed.

        Args:
            matches: these.
            replaced: returns what costs the operators that one replaces; None where costs are known, and the order by
                rule and nodes is as good as any.
            gains: of rules so far; what is weighed is added.
        """
        self._by_rule, self._gains = replaced is not None, gains
        self._rows: defaultdict[int, list[tuple[int, int, Match]]] = defaultdict(list)
        for match in matches:
            cost = replaced(match) if replaced else Cost()
            self._rows[self._row_of(match)].append((cost.bytes_moved, cost.time_ps, match))
        for row in self._rows.values():
            row.sort(reverse=True)

    def _row_of(self, match: Match) -> int:
        return match.rule if self._by_rule else 0

    def __len__(self) -> int:
        """Return how many are left."""
        return sum(map(len, self._rows.values()))

    def upcoming(self) -> Iterator[Match]:
        """Yield what is left, in the order by what is known yet, but only one of each rule while there are new ones."""
        rows = {rule: row for rule, row in self._rows.items() if row}
        new = sorted(row[-1] for rule, row in rows.items() if self._by_rule and rule not in self._gains)
        promising = sorted((rate, rule) for rule in rows if (rate := self._rate(rule)) < -PROMISE)
        first = [rows.pop(rule) for _, rule in promising]
        rest = chain(*map(reversed, first), heapq.merge(*map(reversed, rows.values())))
        return (match for _, _, match in new or rest)

    def _rate(self, rule: int) -> float:
        change, time_ps = self._gains.get(rule, (0, 0))
        return change / max(time_ps, 1)

    def weighed(self, changes: Iterable[tuple[Match, int]]) -> None:
        """Note by how much matches change the value that were the next of `upcoming`."""
        for match, change in changes:
            _, time_ps, known = self._rows[self._row_of(match)].pop()
            assert known == match
            before = self._gains.get(match.rule, (0, 0))
            self._gains[match.rule] = before[0] + change, before[1] + time_ps
