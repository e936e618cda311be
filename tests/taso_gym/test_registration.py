from __future__ import annotations

import pytest

from taso_gym import cost, models
from taso_gym.registration import RECORDED, V1


@pytest.mark.parametrize("name", RECORDED)
def test_version_1_knows_the_costs_of_its_networks(name):
    graph = models.build(name)
    model = cost.load(V1["cost"], start=graph)
    assert model.share_recorded(graph) == 1
