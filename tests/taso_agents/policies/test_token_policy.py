"""The controller over tokens."""

import torch
from gymnasium import spaces

from taso_agents.policies.token_policy import TokenPolicy

TOKENS, WIDTH = 4, 3
SPACE = spaces.Dict(
    {
        "latent": spaces.Box(-9, 9, (TOKENS * WIDTH,)),
        "hidden": spaces.Box(-1, 1, (1,)),
        "xfer_mask": spaces.Box(0, 1, (4,), "int8"),
        "location_counts": spaces.Box(0, 5, (4,), "int32"),
    }
)


def make(**arguments: float) -> TokenPolicy:
    torch.manual_seed(0)
    return TokenPolicy(SPACE, spaces.MultiDiscrete([4, 5]), lambda _: 1e-3, tokens=TOKENS, **arguments)


def observation(rewards: list[float]) -> dict[str, torch.Tensor]:
    """Two locations of substitution 0, one of 2, and NO-OP."""
    tokens = torch.zeros(1, TOKENS, WIDTH)
    tokens[0, : len(rewards), -1] = torch.tensor(rewards)
    counts = torch.tensor([[2, 0, 1, 1]])
    return {
        "latent": tokens.flatten(1),
        "hidden": torch.zeros(1, 1),
        "xfer_mask": (counts > 0).to(torch.int8),
        "location_counts": counts,
    }


def test_all_probability_is_on_legal_actions() -> None:
    policy = make()
    legal = torch.tensor([[0, 0], [0, 1], [2, 0], [3, 0]])
    seen = {key: part.expand(4, -1) for key, part in observation([0.1, 0.2, 0.3]).items()}
    log_prob = policy.get_distribution(seen).log_prob(legal)
    torch.testing.assert_close(log_prob.exp().sum(), torch.tensor(1.0))


def test_it_begins_greedy_by_the_rewards_of_the_model() -> None:
    policy = make()
    assert policy.get_distribution(observation([0.0, 2.0, 1.0])).mode().tolist() == [[0, 1]]
    assert policy.get_distribution(observation([0.0, 0.0, 2.0])).mode().tolist() == [[2, 0]]


def test_without_greed_it_is_near_uniform() -> None:
    probabilities = make(greed=0.0, noop_bias=0.0).get_distribution(observation([0.0, 2.0, 1.0])).log_probs.exp()
    assert probabilities[0].isfinite().all() and probabilities[0, :3].std() < 0.02


def test_the_value_has_a_gradient() -> None:
    policy = make()
    policy.predict_values(observation([0.5, -0.5, 0.0])).sum().backward()
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in policy.embed.parameters())
