"""Single looks are corrected by the nodes of about the same time that were measured in turns, too."""

from __future__ import annotations

import pytest

from taso_gym.cost.looks import FEW, NEIGHBOURS, Looks


@pytest.mark.parametrize("count", [0, 1, FEW - 1])
def test_of_few_nodes_nothing_is_learned(count: int) -> None:
    assert Looks([(100, 50)] * count).expected(100) == 100


def test_short_times_are_corrected_as_short_ones_and_long_ones_as_long_ones() -> None:
    short = [(100 + i, (100 + i) // 2) for i in range(NEIGHBOURS)]
    long = [(10_000 + i, 9 * (10_000 + i) // 10) for i in range(NEIGHBOURS)]
    looks = Looks([*long, *short])
    assert [looks.expected(look) for look in (0, 10, 100, 20_000, 10**9)] == pytest.approx(
        [0, 5, 50, 18_000, 9 * 10**8], rel=0.01
    )


def test_caution_takes_a_look_for_more_than_most_of_its_like_turn_out_to_be() -> None:
    looks = Looks([(100, 50 + i) for i in range(NEIGHBOURS)])
    assert looks.expected(1000) == 615 and looks.expected(1000, 0.9) == 707 and looks.expected(1000, 1.0) == 730


def test_a_few_odd_ones_and_times_of_nothing_do_not_matter() -> None:
    pairs = [(0, 5), (0, 0), *[(100, 80)] * FEW, (100, 1), (100, 10_000)]
    assert Looks(pairs).expected(1000) == 800
