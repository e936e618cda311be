"""Drawing sizes and shapes, small and uneven, so that a rule that is wrong anywhere shows it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

SIZES = (1, 2, 3, 4, 5, 7)
"""Sizes of axes: 1, which broadcasts, and mostly coprime ones."""
HIGHEST = 6
"""Rank of the largest shapes."""
MAX_ELEMENTS = 3000
"""Of one tensor; larger ones are cut down."""
LARGEST = 1_000_000
"""Elements of one tensor that conditions define: larger ones are tried with nothing."""


class Unfit(Exception):  # noqa: N818 - no error of the user's: this draw fits nothing, the next one may
    """A draw for which there is no continuation."""


class Draw:
    """Draws from a generator; sizes that were drawn before come again often, so that operands fit each other.

    Args:
        rng: the generator.
        divisors: numbers that sizes are to be multiples of, each at three sizes at least.
        bounds: numbers that sizes are to lie beyond, too.
    """

    def __init__(self, rng: np.random.Generator, divisors: Iterable[int] = (), bounds: Iterable[int] = ()) -> None:
        self.rng = rng
        beyond = sorted({n + k for n in bounds for k in (1, 2, 5)})
        self.sizes = (*SIZES, *(k * d for d in sorted(divisors) for k in (3, 4)), *beyond)
        self.seen: list[int] = []
        self.shapes: list[tuple[int, ...]] = []

    def chance(self, p: float) -> bool:
        """Return True with probability ``p``."""
        return bool(self.rng.random() < p)

    def pick(self, items: Sequence[Any]) -> Any:
        """Return one of the items."""
        if not items:
            raise Unfit("nothing to pick from")
        return items[int(self.rng.integers(len(items)))]

    def integer(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        if high < low:
            raise Unfit(f"no integer from {low} to {high}")
        return int(self.rng.integers(low, high + 1))

    def size(self) -> int:
        """Return the size of an axis."""
        found = self.pick(self.seen) if self.seen and self.chance(0.3) else self.pick(self.sizes)
        self.seen.append(found)
        return found

    def shape(self, low: int = 1, high: int | None = None) -> tuple[int, ...]:
        """Return a shape whose rank is from low to high; by default mostly to 4, now and then to 6."""
        if low > HIGHEST:
            raise Unfit(f"rank {low} is too high")
        high = (HIGHEST if self.chance(0.1) else max(low, 4)) if high is None else high
        while True:
            shape = tuple(self.size() for _ in range(self.integer(low, high)))
            if math.prod(shape) <= MAX_ELEMENTS:
                return shape

    def familiar(self, low: int = 1) -> tuple[int, ...]:
        """Return a new shape, or one that a tensor has already, sometimes with another size at one axis."""
        if not self.shapes or self.chance(0.4):
            return self.shape(low)
        shape = list(self.pick(self.shapes))
        if shape and self.chance(0.5):
            shape[self.integer(0, len(shape) - 1)] = self.size()
        return tuple(shape)

    def subset(self, items: Sequence[int], least: int = 1) -> tuple[int, ...]:
        """Return some of the items, in order."""
        if len(items) < least:
            raise Unfit("too few items")
        count = self.integer(least, len(items)) if self.chance(0.3) else least
        return tuple(sorted(self.rng.choice(list(items), count, replace=False).tolist())) if count else ()

    def parts(self, total: int, count: int) -> tuple[int, ...]:
        """Return ``count`` positive sizes that add up to ``total``."""
        if total < count:
            raise Unfit(f"{total} can't be cut into {count} parts")
        cuts = sorted(self.rng.choice(range(1, total), count - 1, replace=False).tolist()) if count > 1 else []
        return tuple(b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True))

    def broadcastable(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape that broadcasts with another: the same, a scalar, one axis of it, …, or a larger one."""
        how = self.integer(0, 8)
        if how <= 1:
            return shape
        if how == 2:
            return (1,) * self.integer(0, len(shape) + 1)
        if how == 3:
            return shape[-1:]
        if how == 4:
            axis = 1 if len(shape) > 1 else 0
            kept = tuple(1 if i != axis else self.size() if d == 1 else d for i, d in enumerate(shape))
            return kept[self.integer(0, axis) :] if shape else ()
        if how == 5:
            return (
                (*self.shape(1, 1), *shape)
                if len(shape) < 4 and self.chance(0.5)
                else tuple(self.size() if d == 1 else d for d in shape)
            )
        if how == 6:
            return (1, *shape) if len(shape) < 5 else shape
        return self.narrower(shape)

    def narrower(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape that doesn't widen another: without some of its first axes, and some others of size 1."""
        return tuple(1 if self.chance(0.4) else d for d in shape[self.integer(0, len(shape)) :])

    def regrouped(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return another shape of as many elements: axes split and neighbours merged."""
        axes: list[int] = []
        for d in shape:
            divisors = [k for k in range(2, d) if d % k == 0]
            first = self.pick(divisors) if divisors and self.chance(0.5) else d
            axes += [first, d // first] if first != d else [d]
        merged: list[int] = []
        for d in axes:
            if merged and self.chance(0.4):
                merged[-1] *= d
            else:
                merged.append(d)
        if len(merged) < 5 and self.chance(0.2):
            merged.insert(self.integer(0, len(merged)), 1)
        return tuple(merged)
