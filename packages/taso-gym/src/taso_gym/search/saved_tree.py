"""Checks of the numbers that a checkpoint gives for a tree of rewrites, before a search goes on from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


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


def _expect_counts(where: str, *numbers: object) -> None:
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ValueError(f"{number!r} in {where}")


def _expect_numbers(*values: object) -> None:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{value!r} as a value")
