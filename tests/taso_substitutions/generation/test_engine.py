"""Engines give the results in order, and say what they took."""

import pytest

from taso_substitutions.generation.engine import engine


def summed(count: int) -> int:
    return sum(range(count))


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_in_order_and_the_time_of_all_processes(jobs: int) -> None:
    with engine("processes", jobs) as running:
        assert list(running.map(summed, [3, 200_000, 2])) == [3, 19_999_900_000, 1]
        assert running.cpu_s > 1e-3
