"""Small models of regions."""

from __future__ import annotations

import pytest
from cost_graphs import weight

from taso_gym.builder import GraphBuilder
from taso_gym.cost.dims import Dims
from taso_gym.cost.recorded import RecordedCost
from taso_gym.cost.small_model import MOST_ROWS, SmallModel
from taso_gym.tensor import TensorType

MANY = 2 * MOST_ROWS


@pytest.mark.parametrize(("axis", "made"), [(0, (MOST_ROWS, 8)), (1, (MANY, 8)), (-1, (MANY, 8))])
def test_a_table_is_cut_along_the_axis_that_a_gather_picks_from(axis: int, made: tuple[int, int]) -> None:
    """Along another one the result would shrink with it."""
    b = GraphBuilder({"": 20})
    places = b.input("i", TensorType("int64", (4,)))
    b.output("y", b.add("Gather", weight(b, "w", MANY, 8), places, axis=axis))
    (region,) = RecordedCost("epyc-zen4-1t").regions(b.build())
    assert [value.shape for value in SmallModel(region, Dims()).feeds.values()] == [made, (4,)]
