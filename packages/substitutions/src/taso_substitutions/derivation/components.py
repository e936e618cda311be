"""Connected components of the applications of a fragment, by the pairs that rules turn into each other."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def components(count: int, ends: Ints) -> Ints:
    """Return the least node of each node's component, (count,).

    Args:
        count: number of nodes.
        ends: edges, (M, 2).
    """
    return joined(np.arange(count), ends)


def joined(label: Ints, ends: Ints) -> Ints:
    """Return the components after edges are added.

    Args:
        label: least node of each node's component, (N,).
        ends: edges, (M, 2).
    """
    label = label.copy()
    while True:
        a, b = label[ends[:, 0]], label[ends[:, 1]]
        apart = a != b
        if not apart.any():
            return label
        ends, a, b = ends[apart], a[apart], b[apart]
        np.minimum.at(label, np.maximum(a, b), np.minimum(a, b))
        while True:
            shorter = label[label]
            if (shorter == label).all():
                break
            label = shorter


class Web:
    """What connects the applications of a fragment: the edges of each statement, and what is taken as given.

    Attributes:
        count: number of nodes.
        rows: applications that have to be connected with their value's node, (R,).
        value: node of each one's value, (R,).
        size: operators of each, (R,).
    """

    def __init__(self, count: int, rows: Ints, value: Ints, size: Ints) -> None:
        self.count, self.rows, self.value, self.size = count, rows, value, size
        self.ends: dict[str, Ints] = {}
        self.levels: dict[str, Ints] = {}
        self.given = np.zeros((0, 2), np.int64)

    def add(self, name: str, ends: Ints, level: Ints) -> None:
        """Add the edges of a statement, each once."""
        pairs = np.unique(np.concatenate([np.sort(ends, axis=1), level[:, None]], axis=1), axis=0)
        self.ends[name], self.levels[name] = pairs[:, :2], pairs[:, 2]

    def give(self, ends: Ints) -> None:
        """Take edges as given."""
        self.given = np.concatenate([self.given, ends])

    def labels(self, names: Iterable[str], level: int) -> Ints:
        """Return the components by the edges of some statements that need smaller equalities only."""
        chosen = [self.ends[n][self.levels[n] <= level] for n in names if n in self.ends]
        return components(self.count, np.concatenate([self.given, *chosen]))

    def open_rows(self, label: Ints, level: int) -> Ints:
        """Return which rows up to a number of operators aren't connected."""
        return np.flatnonzero((self.size <= level) & (label[self.rows] != label[self.value]))
