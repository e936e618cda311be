"""Checks of values that every layer makes: a wrong one is named with what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeGuard, TypeVar, cast

import numpy as np

from taso_gym.errors import OptionError

T = TypeVar("T")

MOST_THREADS = 4096
"""That onnxruntime is asked for."""


def check_kind(name: str, value: object, types: tuple[type, ...], called: str) -> None:
    """Raise OptionError for a value of none of the types, and for a mapping from something else than names.

    Args:
        name: of the argument.
        value: what it is.
        types: that it may have.
        called: what to call them.
    """
    if not isinstance(value, types) or not _has_names(value):
        raise OptionError(f"expected {called} as {name}, found {value!r:.200}")


def items_of(values: object, kind: type[T], called: str, count: int | None = None) -> tuple[T, ...]:
    """Return values as a tuple; raise OptionError for a string, what isn't iterable, other items, and another count."""
    try:
        found = None if isinstance(values, str) else iter(cast("Iterable[object]", values))
    except TypeError:
        found = None
    items = None if found is None else tuple(found)
    if items is None or not all(isinstance(item, kind) for item in items):
        raise OptionError(f"expected {called}, found {values!r:.200}")
    if count is not None and len(items) != count:
        raise OptionError(f"expected {called}, found {len(items)}")
    return cast("tuple[T, ...]", items)


def check_choices(name: str, values: Iterable[object], choices: Iterable[object]) -> None:
    """Raise OptionError for a value that isn't among the choices."""
    for value in values:
        if value not in choices:
            raise OptionError(f"expected {name} among {', '.join(map(str, choices))}, found {value!r}")


def check_positive(**counts: Any) -> None:
    """Raise OptionError for an argument that isn't a whole number from 1 on."""
    for name, count in counts.items():
        check_count(name, count, 1)


def check_limits(**limits: Any) -> None:
    """Raise OptionError for an argument that is neither None nor a whole number from 1 on."""
    check_positive(**{name: limit for name, limit in limits.items() if limit is not None})


def check_threads(threads: object) -> int:
    """Return a number of threads as an int; raise OptionError for what isn't one that onnxruntime takes."""
    if not _is_whole(threads) or not 1 <= int(threads) <= MOST_THREADS:
        raise OptionError(f"expected a whole number from 1 to {MOST_THREADS} as threads, found {threads!r}")
    return int(threads)


def check_count(name: str, count: object, least: int) -> None:
    """Raise OptionError for what isn't a whole number from ``least`` on."""
    if not _is_whole(count) or count < least:
        raise OptionError(f"expected {name} to be a whole number from {least} on, found {count!r}")


def check_sizes(dims: Mapping[str, int] | None, least: int = 0) -> None:
    """Raise OptionError for what isn't a mapping from names to whole numbers from ``least`` on, or None."""
    check_kind("dims", dims, (Mapping, type(None)), "a mapping from names to sizes")
    for name, size in (dims or {}).items():
        check_count(f"size of {name!r}", size, least)


def check_whole(**numbers: Any) -> None:
    """Raise OptionError for an argument that isn't a whole number, Python's or NumPy's."""
    for name, number in numbers.items():
        if not _is_whole(number):
            raise OptionError(f"expected a whole number as {name}, found {number!r}")


def check_seed(seed: object) -> int:
    """Return a whole number of any type as an int; raise OptionError for what isn't one of 0 or more."""
    if not _is_whole(seed) or seed < 0:
        raise OptionError(f"expected a seed of 0 or more, found {seed!r}")
    return int(seed)


def check_finite(**numbers: Any) -> None:
    """Raise OptionError for an argument that isn't a finite number."""
    for name, number in numbers.items():
        if not isinstance(number, Real) or not isfinite(number):
            raise OptionError(f"expected a finite number as {name}, found {number!r}")


def check_bools(**flags: Any) -> None:
    """Raise OptionError for an argument that is neither True nor False, Python's or NumPy's."""
    for name, flag in flags.items():
        if not isinstance(flag, bool | np.bool_):
            raise OptionError(f"expected True or False as {name}, found {flag!r:.200}")


def check_path(path: object, called: str) -> Path:
    """Return a path; raise OptionError for what no system takes as one: another type, or text with a NUL."""
    text: object = fspath(cast("PathLike[str]", path)) if isinstance(path, PathLike) else path
    if not isinstance(text, str) or "\0" in text:
        raise OptionError(f"expected {called}, found {text!r:.200}")
    return Path(text)


def _has_names(value: object) -> bool:
    """Whether the keys are names, if it is a mapping."""
    if not isinstance(value, Mapping):
        return True
    return all(isinstance(key, str) for key in cast("Mapping[object, object]", value))


def _is_whole(value: object) -> TypeGuard[Integral]:
    return not isinstance(value, bool) and isinstance(value, Integral)
