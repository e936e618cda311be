"""Remembering what happened where: outcomes by context, from a wide context to a narrow one."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

IMPURITY = 0.001
"""A narrower context is as good if it mixes up no more than this part of the cases beyond what the best does."""

Cell = dict[Any, int]
"""Outcome -> how often."""


class Recall:
    """Counts the outcomes of groups of questions in contexts, which are told at several levels, the narrowest first.

    A group is answered at the narrowest level that tells its outcomes apart as well as any; where that context
    hasn't been met, at the next narrower one that has.

    Args:
        levels: how many.
    """

    def __init__(self, levels: int) -> None:
        self.cells: list[dict[Hashable, Cell]] = [{} for _ in range(levels)]
        self.seen: dict[tuple[Hashable, tuple[int, ...]], Cell] = {}
        self.level: dict[Hashable, int] = {}

    def learn(self, group: Hashable, keys: Sequence[int], outcome: Hashable, count: int = 1) -> None:
        """Take note of an outcome."""
        cell = self.seen.setdefault((group, tuple(keys)), {})
        cell[outcome] = cell.get(outcome, 0) + count
        for table, key in zip(self.cells, keys, strict=True):
            cell = table.setdefault((group, key), {})
            cell[outcome] = cell.get(outcome, 0) + count

    def settle(self) -> None:
        """Choose the level of every group."""
        mixed: list[dict[Hashable, int]] = []
        total: dict[Hashable, int] = {}
        for table in self.cells:
            wrong: dict[Hashable, int] = {}
            total = {}
            for (group, _), cell in table.items():  # pyright: ignore[reportGeneralTypeIssues]
                count = sum(cell.values())
                wrong[group] = wrong.get(group, 0) + count - max(cell.values())
                total[group] = total.get(group, 0) + count
            mixed.append(wrong)
        for group, count in total.items():
            allowed = min(wrong[group] for wrong in mixed) + IMPURITY * count
            self.level[group] = next(i for i, wrong in enumerate(mixed) if wrong[group] <= allowed)

    def find(self, group: Hashable, keys: Sequence[int]) -> Cell | None:
        """Return the outcomes in a context, or in the next narrower one that was met; None if none was."""
        chosen = self.level.get(group, 0)
        for level in range(chosen, -1, -1):
            cell = self.cells[level].get((group, keys[level]))
            if cell is None:
                continue
            if len(cell) > 1:
                wider = (self.cells[i].get((group, keys[i])) for i in range(chosen + 1, len(keys)))
                return next((other for other in wider if other and len(other) == 1), cell)
            return cell
        return None

    def known(self, group: Hashable, keys: Sequence[int]) -> Cell | None:
        """Return the outcomes in a context at the level of its group; None if it wasn't met there."""
        level = self.level.get(group, 0)
        return self.cells[level].get((group, keys[level]))

    def rows(self) -> Iterator[tuple[Hashable, tuple[int, ...], Any, int]]:
        """Return all that was learned, for `learn`."""
        for (group, keys), cell in self.seen.items():
            for outcome, count in cell.items():
                yield group, keys, outcome, count


def ranked(cell: Cell) -> list[Any]:
    """Return outcomes by how often they were met, the most frequent first; in an order that no history changes."""
    return sorted(cell, key=lambda outcome: (-cell[outcome], outcome)) if len(cell) > 1 else list(cell)


def choose(cell: Cell, temperature: float, rng: random.Random) -> Any:
    """Draw an outcome with τ dividing the logarithms of its counts; 0 takes the most frequent."""
    outcomes = ranked(cell)
    if len(cell) == 1 or temperature == 0:
        return outcomes[0]
    most = cell[outcomes[0]]
    return rng.choices(outcomes, [(cell[outcome] / most) ** (1 / temperature) for outcome in outcomes])[0]
