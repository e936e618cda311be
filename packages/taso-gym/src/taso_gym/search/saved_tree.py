"""Checks of the numbers that a checkpoint gives for a tree of rewrites and for where a search stands in it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from taso_gym.rules.state import Match


def check_tree(data: Mapping[str, Any], rules: int) -> None:
    """Raise ValueError for numbers of a checkpoint that no search writes; a parent after its child would never end."""
    tree, (best, best_value) = data["tree"], data["best"]
    for index, (parent, rule, nodes, variant, value) in enumerate(tree, 1):
        _expect_counts(f"rewrite {index}", parent, rule, variant, *nodes)
        if parent >= index or rule >= rules:
            raise ValueError(f"rewrite {index} of rule {rule} after rewrite {parent}")
        _expect_numbers(value)
    _expect_numbers(data["start"], best_value)
    _expect_counts("explored and best", data["explored"], best)
    if best > len(tree) or not isinstance(data["exhausted"], bool):
        raise ValueError(f"rewrite {best} of {len(tree)} as the best, exhausted: {data['exhausted']!r}")


def check_frontier(
    states: int,
    rules: int,
    *,
    matches: Iterable[Match] = (),
    indices: Iterable[int] = (),
    counts: Iterable[int] = (),
    values: Iterable[float] = (),
) -> None:
    """Raise ValueError for what no search writes of where it stands: a later step would fail by it.

    Args:
        states: how many the tree has.
        rules: how many there are.
        matches: known and not yet applied.
        indices: of states.
        counts: other numbers that are whole and not negative.
        values: what is lowered, and changes of that.
    """
    for rule, nodes, variant in matches:
        _expect_counts("a match of the frontier", rule, variant, *nodes)
        if rule >= rules:
            raise ValueError(f"a match of rule {rule} of {rules}")
    places = list(indices)
    _expect_counts("the frontier", *places, *counts)
    if max(places, default=0) >= states:
        raise ValueError(f"state {max(places)} of {states}")
    _expect_numbers(*values)


def _expect_counts(where: str, *numbers: object) -> None:
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ValueError(f"{number!r} in {where}")


def _expect_numbers(*values: object) -> None:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{value!r} as a value")
