"""Times of a node in its turns: the first quartile, the interval that it is in, and whether it is worth more turns."""

from __future__ import annotations

import pytest

from taso_gym.cost.turns import MOST, SCATTERED, TURNS, UNKNOWN, between, quiet, uncertainty


def taken(*whole: int, copied: int = 0) -> list[tuple[int, int]]:
    """Return times that all have the same copy in them."""
    return [(time_ps, copied) for time_ps in whole]


def test_the_second_least_of_seven_counts_and_is_between_the_least_and_the_fifth() -> None:
    times = taken(70, 20, 50, 10, 60, 30, 40)
    assert (quiet(times), between(times)) == (20, (10, 50))
    copied = taken(70, 20, 50, 10, 60, 30, 40, copied=15)
    assert (quiet(copied), between(copied)) == (5, (0, 35))


def test_the_interval_narrows_with_more_times() -> None:
    places = [between(taken(*range(count))) for count in (1, 7, 28, 100)]
    assert places == [(0, 0), (0, 4), (3, 11), (18, 32)]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (None, UNKNOWN),
        ([], UNKNOWN),
        (taken(*[1000] * TURNS), 0.0),
        (taken(1000, 1000, 1000, 1000, round(1000 + 900 * SCATTERED), 5000, 5000), 0.0),
        (taken(1000, 1000, 1500, 1500, 1500, 1500, 1500), 0.5),
        (taken(*[1000, 2000] * (MOST // 2)), 0.0),
        (taken(*[0] * TURNS), 0.0),
    ],
)
def test_what_scatters_is_uncertain_until_there_are_many(times: list[tuple[int, int]] | None, expected: float) -> None:
    assert uncertainty(times) == pytest.approx(expected)
