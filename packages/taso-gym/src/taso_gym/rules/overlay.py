"""Copies of a graph's maps: whole, or as changes that lie over them."""

from __future__ import annotations

from collections.abc import Mapping
from sys import getsizeof
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

ROOMY_BYTES = 55
"""Bytes per entry from which on a dictionary fits into a table of half the size; a full one takes 27."""


class Overlay(Generic[V]):
    """A dictionary that keeps changes apart from the one beneath it, and which keys of that were read."""

    def __init__(self, base: Mapping[int, V]) -> None:
        """Lie over ``base``, which stays as it is."""
        self._base = base
        self.read: set[int] = set()
        self._changes: dict[int, V | None] = {}

    def get(self, key: int, default: V | None = None, /) -> V | None:
        """Return the value at a key, or ``default``."""
        if key in self._changes:
            value = self._changes[key]
        else:
            self.read.add(key)
            value = self._base.get(key)
        return default if value is None else value

    def __getitem__(self, key: int, /) -> V:
        """Return the value at a key."""
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: int, value: V, /) -> None:
        """Set the value at a key."""
        self._changes[key] = value

    def pop(self, key: int, default: V | None = None, /) -> V | None:
        """Remove a key and return its value, or ``default``."""
        value = self.get(key, default)
        self._changes[key] = None
        return value


def copied(table: dict[K, V]) -> dict[K, V]:
    """Return a copy, now and then without the room that entries which came and went have left.

    A copied dictionary keeps the size of its table, which doubles after some rewrites; packing costs ten copies.
    """
    return {**table} if getsizeof(table) > ROOMY_BYTES * len(table) > 0 else table.copy()
