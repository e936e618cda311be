"""Steps down a loss; what whole fits come to is in the tests of each kind."""

import pytest
import torch
from torch import nn

from taso_agents.world_models.fit import descend


def test_what_an_earlier_phase_left_is_no_part_of_the_gradient_that_is_cut() -> None:
    frozen, trained = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    frozen.weight.grad = torch.full((1, 1), 99.0)
    before, loss = trained.weight.item(), 0.5 * trained.weight.sum()
    descend(loss, nn.ModuleList([frozen, trained]), torch.optim.SGD([trained.weight], lr=1.0), 1.0)
    assert trained.weight.item() == pytest.approx(before - 0.5)
