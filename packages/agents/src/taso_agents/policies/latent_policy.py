"""The controller (Ha & Schmidhuber 2018, C): a policy over latent and hidden state, for dreams and reality alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from taso_agents.networks.candidates import Observation
from taso_agents.networks.encoder import box


class PairDistribution:
    """p(substitution) · p(location | substitution), both masked by the numbers of locations; exact in every respect.

    Args:
        xfer_logits: (B, N + 1).
        location_logits: (B, N + 1, L'), where L' is at least the largest count.
        counts: (B, N + 1) legal locations: 0 … count - 1.
    """

    def __init__(self, xfer_logits: Tensor, location_logits: Tensor, counts: Tensor) -> None:
        locations = torch.arange(location_logits.shape[2], device=counts.device)
        lowest = torch.finfo(xfer_logits.dtype).min
        within = locations < counts.clamp(min=1)[..., None]
        self.log_xfer = xfer_logits.masked_fill(counts == 0, lowest).log_softmax(1)
        self.log_location = location_logits.masked_fill(~within, lowest).log_softmax(2)

    def sample(self) -> Tensor:
        """Draw actions (B, 2)."""
        xfer = torch.multinomial(self.log_xfer.exp(), 1)[:, 0]
        return torch.stack([xfer, torch.multinomial(self._of(xfer).exp(), 1)[:, 0]], 1)

    def mode(self) -> Tensor:
        """Return the most probable pairs (B, 2)."""
        best, location = (self.log_xfer[..., None] + self.log_location).max(2)
        xfer = best.argmax(1)
        return torch.stack([xfer, location.gather(1, xfer[:, None])[:, 0]], 1)

    def get_actions(self, deterministic: bool = False) -> Tensor:
        """Return the mode or a sample."""
        return self.mode() if deterministic else self.sample()

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return the log-probabilities (B,) of actions (B, 2)."""
        xfer, location = actions.long().unbind(1)
        of_xfer = self.log_xfer.gather(1, xfer[:, None])[:, 0]
        return of_xfer + self._of(xfer).gather(1, location[:, None])[:, 0]

    def entropy(self) -> Tensor:
        """Return the entropies (B,) in nats."""
        p = self.log_xfer.exp()
        of_location = -(self.log_location.exp() * self.log_location).sum(2)
        return (p * (of_location - self.log_xfer)).sum(1)

    def _of(self, xfer: Tensor) -> Tensor:
        """Log-probabilities (B, L) of the locations of a substitution."""
        return self.log_location[torch.arange(len(xfer), device=xfer.device), xfer]


class LatentPolicy(MaskableActorCriticPolicy):
    """Actor and critic over ``latent`` and ``hidden``; the score of a location is a bilinear form, so it stays cheap.

    Args:
        observation_space: `latent_space`.
        action_space: ``MultiDiscrete([N + 1, L])``.
        lr_schedule: learning rate as a function of the remaining progress.
        width: units of the layers.
        noop_bias: what is added to NO-OP's logit at the start.
        use_sde: accepted since Stable-Baselines3 passes it.
        kwargs: those of sb3-contrib's policy.
    """

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Space,
        lr_schedule: Schedule,
        width: int = 64,
        noop_bias: float = -3.0,
        use_sde: bool = False,
        **kwargs: Any,
    ) -> None:
        assert not use_sde
        self.width, self.noop_bias = width, noop_bias
        kwargs["net_arch"] = []
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        assert isinstance(self.observation_space, spaces.Dict)
        size = sum(box(self.observation_space, key).shape[0] for key in ("latent", "hidden", "location_counts"))
        xfers, locations = map(int, box_counts(self.action_space))
        self.body = nn.Sequential(nn.Linear(size, self.width), nn.Tanh(), nn.Linear(self.width, self.width), nn.Tanh())
        self.critic = nn.Sequential(
            nn.Linear(size, self.width),
            nn.Tanh(),
            nn.Linear(self.width, self.width),
            nn.Tanh(),
            nn.Linear(self.width, 1),
        )
        self.choose_xfer = nn.Linear(self.width, xfers)
        self.choose_location = nn.Linear(self.width, locations)
        self.xfer_location = nn.Parameter(torch.zeros(xfers, locations))
        with torch.no_grad():
            self.choose_xfer.weight.mul_(0.01)
            self.choose_xfer.bias.zero_()
            self.choose_xfer.bias[-1] = self.noop_bias
            self.choose_location.weight.mul_(0.01)
        arguments: dict[str, Any] = {"lr": lr_schedule(1.0), **self.optimizer_kwargs}
        self.optimizer = self.optimizer_class(self.parameters(), **arguments)

    def _features(self, observation: Observation) -> Tensor:
        counts = observation["location_counts"].float().log1p()
        return torch.cat([observation["latent"].float(), observation["hidden"].float(), counts], 1)

    def _distribution(self, observation: Observation, features: Tensor) -> PairDistribution:
        body = self.body(features)
        counts = observation["location_counts"].long()
        used = int(counts.max())  # far fewer than there may be
        locations = self.choose_location(body)[:, None, :used] + self.xfer_location[:, :used]
        return PairDistribution(self.choose_xfer(body), locations, counts)

    def forward(
        self, obs: Observation, deterministic: bool = False, action_masks: np.ndarray | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return actions, values (B, 1) and log-probabilities (B,); the masks are those of the observation."""
        assert action_masks is None
        features = self._features(obs)
        distribution = self._distribution(obs, features)
        actions = distribution.get_actions(deterministic)
        return actions, self.critic(features), distribution.log_prob(actions)

    def evaluate_actions(
        self,
        obs: Observation,
        actions: Tensor,
        action_masks: Tensor | None = None,  # noqa: ARG002 - the buffer's are ones
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return values (B, 1), log-probabilities (B,) and entropies (B,)."""
        features = self._features(obs)
        distribution = self._distribution(obs, features)
        return self.critic(features), distribution.log_prob(actions), distribution.entropy()

    def get_distribution(self, obs: Observation, action_masks: np.ndarray | None = None) -> PairDistribution:
        """Return the distribution over actions."""
        assert action_masks is None
        return self._distribution(obs, self._features(obs))

    def predict_values(self, obs: Observation) -> Tensor:
        """Return the values (B, 1)."""
        return self.critic(self._features(obs))


def box_counts(action_space: spaces.Space) -> np.ndarray:
    """Return (N + 1, L) of an action space."""
    assert isinstance(action_space, spaces.MultiDiscrete)
    return action_space.nvec
