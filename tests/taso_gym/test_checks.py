"""A wrong value is named with what was expected, and what NumPy calls a whole number is one."""

from typing import Any

import numpy as np
import pytest

from taso_gym.checks import (
    MOST_THREADS,
    check_bools,
    check_choices,
    check_count,
    check_finite,
    check_kind,
    check_positive,
    check_seed,
    check_threads,
    check_whole,
    items_of,
)
from taso_gym.errors import OptionError


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "1", None, np.float64(1)])
def test_what_is_no_count_is_named(value: Any) -> None:
    with pytest.raises(OptionError, match=r"expected width to be a whole number from 1 on, found "):
        check_positive(width=value)


@pytest.mark.parametrize("value", [1.0, True, "1", None])
def test_what_is_no_whole_number_is_named(value: Any) -> None:
    with pytest.raises(OptionError, match=f"expected a whole number as seed, found {value!r}"):
        check_whole(seed=value)
    with pytest.raises(OptionError, match=f"expected a seed of 0 or more, found {value!r}"):
        check_seed(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1", None])
def test_what_is_not_finite_is_named(value: Any) -> None:
    with pytest.raises(OptionError, match=f"expected a finite number as alpha, found {value!r}"):
        check_finite(alpha=value)


def test_other_kinds_and_choices_are_named() -> None:
    with pytest.raises(OptionError, match="expected a name as search, found 5"):
        check_kind("search", 5, (str,), "a name")
    with pytest.raises(OptionError, match="expected mode among a, b, found 'c'"):
        check_choices("mode", ["a", "c"], ("a", "b"))


@pytest.mark.parametrize("values", [5, None, "ab", ["a", 5], np.array(3)])
def test_what_are_no_items_of_a_kind_is_named(values: Any) -> None:
    with pytest.raises(OptionError, match="expected names, found"):
        items_of(values, str, "names")
    assert items_of(iter("ab"), str, "names") == ("a", "b")


def test_a_single_value_is_no_items_of_any_kind() -> None:
    with pytest.raises(OptionError, match="expected seeds, found 5"):
        items_of(5, object, "seeds")


def test_numbers_of_numpy_are_numbers() -> None:
    one = np.int64(1)
    check_positive(width=one)
    check_whole(seed=-one)
    assert type(check_seed(one)) is int
    check_finite(alpha=np.float32(1))
    check_count("size", 0, 0)


@pytest.mark.parametrize("value", ["false", 0, 1, None])
def test_what_is_neither_true_nor_false_is_named(value: Any) -> None:
    with pytest.raises(OptionError, match=f"expected True or False as portable, found {value!r}"):
        check_bools(portable=value)
    check_bools(portable=np.False_, flat=True)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2", MOST_THREADS + 1, 3 * 10**9])
def test_what_is_no_number_of_threads_is_named(value: Any) -> None:
    with pytest.raises(
        OptionError, match=f"expected a whole number from 1 to {MOST_THREADS} as threads, found {value!r}"
    ):
        check_threads(value)
    assert check_threads(np.int64(MOST_THREADS)) == MOST_THREADS
