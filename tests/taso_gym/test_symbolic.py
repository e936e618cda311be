"""Dimensions: what a polynomial over symbols is between."""

from __future__ import annotations

from math import inf

import pytest

from taso_gym.symbolic import Dim, bounds, symbol

N, M = symbol("N"), symbol("M")


@pytest.mark.parametrize(
    ("dim", "least", "expected"),
    [
        (3, 1, (3, 3)),
        (0, 0, (0, 0)),
        (N, 0, (0, inf)),
        (N, 1, (1, inf)),
        (2 * N * M + M + 1, 1, (4, inf)),
        (2 - N, 1, (-inf, 1)),
        (N - M, 1, (-inf, inf)),
    ],
)
def test_bounds_hold_for_all_sizes_from_the_least_on(dim: Dim, least: int, expected: tuple[float, float]) -> None:
    assert bounds(dim, least) == expected
