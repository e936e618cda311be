"""Mixtures of Gaussians."""

import math

import pytest
import torch

from taso_agents.world_models.mdn import Mixture, MixtureHead


def two_components() -> Mixture:
    """In one dimension: weight 3/4 at -1 with deviation 0.5, weight 1/4 at 2 with deviation 0.1."""
    logits = torch.tensor([math.log(3.0), 0.0])
    return Mixture(logits, torch.tensor([[-1.0], [2.0]]), torch.tensor([[0.5], [0.1]]).log())


def test_density_is_that_of_torch() -> None:
    parts = torch.distributions.Normal(torch.tensor([-1.0, 2.0]), torch.tensor([0.5, 0.1]))
    expected = torch.distributions.MixtureSameFamily(torch.distributions.Categorical(torch.tensor([0.75, 0.25])), parts)
    for x in (-1.3, 0.0, 2.05):
        assert two_components().log_prob(torch.tensor([x])) == pytest.approx(float(expected.log_prob(torch.tensor(x))))


def batch(mixture: Mixture, size: int) -> Mixture:
    return Mixture(*(part.expand(size, *part.shape) for part in mixture))


def test_samples_have_the_mixture_s_mean() -> None:
    samples = batch(two_components(), 20_000).sample(1.0, torch.Generator().manual_seed(0))
    assert samples.shape == (20_000, 1)
    assert samples.mean() == pytest.approx(0.75 * -1 + 0.25 * 2, abs=0.05)


def test_low_temperature_prefers_the_heaviest_component() -> None:
    samples = batch(two_components(), 2000).sample(0.1, torch.Generator().manual_seed(0))
    assert (samples < 0.5).float().mean() > 0.99


def test_temperature_zero_is_the_heaviest_mean() -> None:
    assert batch(two_components(), 3).sample(0.0).tolist() == [[-1.0]] * 3


def test_high_temperature_evens_the_weights_out() -> None:
    samples = batch(two_components(), 4000).sample(100.0, torch.Generator().manual_seed(0))
    # At 10 times the deviation the components overlap: compare with the mean of even weights.
    assert samples.mean() == pytest.approx(0.5, abs=0.3)


def test_head_has_the_dissertation_s_size_and_learns_two_modes() -> None:
    torch.manual_seed(0)
    assert MixtureHead(256, 32, 8).layer.out_features == (2 * 32 + 1) * 8
    head = MixtureHead(1, 1, 2)
    optimizer = torch.optim.Adam(head.parameters(), 0.05)
    target = torch.tensor([[-1.0], [1.0]]).repeat(32, 1)
    for _ in range(200):
        loss = -head(torch.ones(64, 1)).log_prob(target).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert sorted(head(torch.ones(1)).means.flatten().tolist()) == pytest.approx([-1.0, 1.0], abs=0.1)
