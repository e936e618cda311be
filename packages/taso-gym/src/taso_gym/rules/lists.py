"""Lists in a rule's expressions: tuples of numbers or dimensions, and what has no value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taso_gym.symbolic import Dim, product

MAX_ITEMS = 4096
"""Longest list that an expression may make."""


class Undefined(Exception):  # noqa: N818 - no error of the user's: the answer is "not shown"
    """An expression that has no value for this match."""


def as_list(value: Any) -> tuple[Any, ...]:
    """Return a list of an expression; raises `Undefined` for anything else."""
    if not isinstance(value, tuple):
        raise Undefined(f"expected a list, found {value}")
    return value  # pyright: ignore[reportUnknownVariableType]


def item(items: Sequence[Any], index: Any) -> Any:
    """Return an item, counted from the end where negative; raises `Undefined` where there is none."""
    if not isinstance(index, int) or not -len(items) <= index < len(items):
        raise Undefined(f"no item {index} among {len(items)}")
    return items[index]


def product_of(items: Any) -> Dim:
    """The product of a list."""
    return product(as_list(items))


def sum_of(items: Any) -> Dim:
    """The sum of a list."""
    total: Dim = 0
    for item in as_list(items):
        total = total + item
    return total


def permuted(items: Any, perm: Any) -> tuple[Any, ...]:
    """The items in the order `perm`: `permute(shape(x), p)` is the shape of `Transpose(x, perm=p)`."""
    return tuple(item(as_list(items), i) for i in as_list(perm))


def composed(first: Any, second: Any) -> tuple[Any, ...]:
    """The permutation of a Transpose by the first and then one by the second."""
    return permuted(first, second)


def inverse(perm: Any) -> tuple[int, ...]:
    """The permutation that undoes `perm`."""
    if sorted(as_list(perm)) != list(range(len(perm))):
        raise Undefined(f"{perm} is no permutation")
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


def _moved_together(sizes: Any, perm: Any) -> list[list[int]]:
    """Return the axes that a Transpose moves, as runs that stay together, in the order that it puts them."""
    runs: list[list[int]] = []
    for axis in (i for i in as_list(perm) if item(as_list(sizes), i) != 1):
        last = runs[-1][-1] if runs else None
        if last is not None and last < axis and all(sizes[i] == 1 for i in range(last + 1, axis)):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return runs


def merged_sizes(sizes: Any, perm: Any) -> tuple[Dim, ...]:
    """The shape without axes of 1 and with axes merged that a Transpose by `perm` keeps side by side."""
    return tuple(product(sizes[i] for i in run) for run in sorted(_moved_together(sizes, perm)))


def merged_perm(sizes: Any, perm: Any) -> tuple[int, ...]:
    """The permutation of `merged_sizes(sizes, perm)` that moves the elements as `perm` does those of `sizes`."""
    runs = _moved_together(sizes, perm)
    return tuple(sorted(runs).index(run) for run in runs)


def whole_numbers(begin: Any, end: Any = None) -> tuple[int, ...]:
    """The whole numbers from 0, or from `begin`, to below `end`, a list."""
    first, last = (0, begin) if end is None else (begin, end)
    if not isinstance(first, int) or not isinstance(last, int):
        raise Undefined("a range with unknown ends")
    if last - first > MAX_ITEMS:
        raise Undefined(f"a list of over {MAX_ITEMS} items")
    return tuple(range(first, last))


def replaced(items: Any, index: Any, new: Any) -> tuple[Any, ...]:
    """The list with another item at a place."""
    item(as_list(items), index)
    at = index % len(items)
    return (*items[:at], new, *items[at + 1 :])


def inserted(items: Any, index: Any, new: Any) -> tuple[Any, ...]:
    """The list with one item more, which is at `index` then."""
    if not isinstance(index, int) or not 0 <= index <= len(as_list(items)):
        raise Undefined(f"no place {index} in {items}")
    return (*items[:index], new, *items[index:])


def deleted(items: Any, index: Any) -> tuple[Any, ...]:
    """The list without the item at a place."""
    item(as_list(items), index)
    at = index % len(items)
    return (*items[:at], *items[at + 1 :])


def without(items: Any, indices: Any) -> tuple[Any, ...]:
    """The list without the items at several places: `without(shape(x), [0, 2])`."""
    dropped = {index % max(len(items), 1) for index in as_list(indices) if item(as_list(items), index) is not None}
    return tuple(kept for i, kept in enumerate(items) if i not in dropped)


def plus(a: Any, b: Any) -> tuple[Any, ...]:
    """Two lists of one length, added item by item (`+` joins lists)."""
    if len(as_list(a)) != len(as_list(b)):
        raise Undefined(f"lists of unequal length, {a} and {b}")
    return tuple(x + y for x, y in zip(a, b, strict=True))
