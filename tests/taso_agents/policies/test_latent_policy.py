"""The controller's distribution over pairs."""

import math

import pytest
import torch

from taso_agents.policies.latent_policy import PairDistribution

COUNTS = torch.tensor([[2, 0, 1, 1]])


@pytest.fixture
def found() -> PairDistribution:
    generator = torch.Generator().manual_seed(0)
    return PairDistribution(torch.randn(1, 4, generator=generator), torch.randn(1, 4, 3, generator=generator), COUNTS)


LEGAL = [(0, 0), (0, 1), (2, 0), (3, 0)]


def probabilities(found: PairDistribution, pairs: list[tuple[int, int]]) -> list[float]:
    return [found.log_prob(torch.tensor([pair])).exp().item() for pair in pairs]


def test_legal_pairs_have_all_the_probability(found: PairDistribution) -> None:
    assert sum(probabilities(found, LEGAL)) == pytest.approx(1.0)
    assert probabilities(found, [(1, 0), (0, 2), (2, 1)]) == pytest.approx([0.0] * 3, abs=1e-12)


def test_entropy_is_exact(found: PairDistribution) -> None:
    expected = -sum(p * math.log(p) for p in probabilities(found, LEGAL))
    assert found.entropy().item() == pytest.approx(expected, rel=1e-5)


def test_mode_is_that_of_the_pair(found: PairDistribution) -> None:
    best = LEGAL[max(range(4), key=lambda i: probabilities(found, LEGAL)[i])]
    assert tuple(found.mode()[0].tolist()) == best


def test_samples_are_legal_and_follow_the_probabilities() -> None:
    torch.manual_seed(0)
    many = PairDistribution(torch.zeros(3000, 4), torch.zeros(3000, 4, 3), COUNTS.expand(3000, -1))
    drawn = [tuple(a) for a in many.sample().tolist()]
    assert [drawn.count(pair) / 3000 for pair in LEGAL] == pytest.approx([1 / 6, 1 / 6, 1 / 3, 1 / 3], abs=0.04)
