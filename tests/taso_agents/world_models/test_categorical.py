"""Categorical latents and two-hot numbers."""

import pytest
import torch

from taso_agents.world_models.categorical import (
    Categoricals,
    balanced_kl,
    kl,
    mixed_with_uniform,
    symexp,
    symlog,
    two_hot,
)


def some(seed: int = 0, shape: tuple[int, ...] = (5, 3, 4)) -> Categoricals:
    return mixed_with_uniform(torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 3, 0.01)


def test_no_class_is_impossible() -> None:
    sure = mixed_with_uniform(torch.tensor([[[1e4, 0.0, 0.0, 0.0]]]), 0.01)
    assert sure.log_probs.exp().min() == pytest.approx(0.0025)
    torch.testing.assert_close(sure.log_probs.exp().sum(-1), torch.ones(1, 1))


def test_samples_are_one_hot_and_as_frequent_as_probable() -> None:
    given = mixed_with_uniform(torch.tensor([[1.0, 0.0, -1.0]]), 0.0)
    many = Categoricals(given.log_probs.expand(20_000, 1, 3))
    drawn = many.sample(1.0, torch.Generator().manual_seed(0))
    assert ((drawn == 0) | (drawn == 1)).all() and (drawn.sum(-1) == 1).all()
    torch.testing.assert_close(drawn.mean(0), given.log_probs.exp()[0], atol=0.02, rtol=0)


def test_temperature_0_is_the_mode_and_low_ones_come_near_it() -> None:
    given = some()
    assert torch.equal(given.sample(0.0), given.mode())
    assert torch.equal(given.sample(1e-3, torch.Generator().manual_seed(1)), given.mode())


def test_the_probability_of_a_latent_is_the_product_over_its_categoricals() -> None:
    given = some(shape=(1, 2, 3))
    latent = torch.tensor([[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]])
    expected = given.log_probs[0, 0, 1] + given.log_probs[0, 1, 2]
    torch.testing.assert_close(given.log_prob(latent)[0], expected)


def test_straight_through_has_the_value_of_a_sample_and_the_gradient_of_the_probabilities() -> None:
    logits = torch.zeros(1, 1, 3, requires_grad=True)
    drawn = mixed_with_uniform(logits, 0.0).straight_through()
    assert sorted(drawn.detach().flatten().round(decimals=6).tolist()) == [0.0, 0.0, 1.0]
    (drawn * torch.tensor([1.0, 0.0, 0.0])).sum().backward()
    third = 1 / 3
    expected = torch.tensor([third * (1 - third), -third * third, -third * third])
    torch.testing.assert_close(logits.grad[0, 0], expected)


def test_kl_is_torch_s() -> None:
    p, q = some(1), some(2)
    expected = torch.distributions.kl_divergence(
        torch.distributions.Categorical(logits=p.log_probs), torch.distributions.Categorical(logits=q.log_probs)
    )
    torch.testing.assert_close(kl(p, q), expected.sum(-1))


def test_each_loss_of_the_balance_trains_one_side() -> None:
    left, right = torch.randn(2, 3, 4, requires_grad=True), torch.randn(2, 3, 4, requires_grad=True)
    for number, (trained, other) in enumerate([(right, left), (left, right)]):
        left.grad = right.grad = None
        losses = balanced_kl(mixed_with_uniform(left, 0.01), mixed_with_uniform(right, 0.01), 0.0)
        losses[number].sum().backward()
        assert trained.grad is not None and trained.grad.abs().sum() > 0 and other.grad is None


def test_free_nats_cost_nothing_to_change() -> None:
    near = torch.zeros(1, 2, 3, requires_grad=True)
    dynamics, _ = balanced_kl(mixed_with_uniform(near.detach() + 0.01, 0.01), mixed_with_uniform(near, 0.01), 1.0)
    dynamics.sum().backward()
    assert dynamics.item() == 1.0 and not near.grad.any()


def test_symexp_undoes_symlog() -> None:
    x = torch.tensor([-300.0, -1.0, 0.0, 1e-3, 7.0])
    torch.testing.assert_close(symexp(symlog(x)), x)


def test_two_hot_has_the_number_as_its_mean() -> None:
    bins = symexp(torch.linspace(-4, 4, 21))
    x = torch.tensor([[-50.0, -0.3, 0.0], [0.01, 2.0, 50.0]])
    weights = two_hot(x, bins)
    assert ((weights > 0).sum(-1) <= 2).all() and (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3))
    torch.testing.assert_close((weights * bins).sum(-1), x)


def test_two_hot_ends_at_the_outer_bins() -> None:
    bins = torch.tensor([-1.0, 0.0, 1.0])
    assert two_hot(torch.tensor([-9.0, 9.0]), bins).tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
