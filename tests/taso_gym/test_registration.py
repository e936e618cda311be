from __future__ import annotations

import pytest

from taso_gym import cost, models
from taso_gym.registration import MEASURED, RECORDED


@pytest.mark.parametrize("name", RECORDED)
def test_the_table_knows_the_costs_of_its_networks(name):
    graph = models.build(name)
    model = cost.load(MEASURED["cost"], start=graph)
    assert model.share_recorded(graph) == 1
