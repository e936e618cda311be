"""World model with discrete latents, after DreamerV3 (Hafner et al. 2023), with heads for what may be done next.

What it has of DreamerV3: categorical latents drawn with straight-through gradients, 1 % uniform, a GRU, a prior that
is trained towards the posterior and back with free bits, and rewards as two-hot distributions over bins that are
equally far apart on a symmetric logarithmic scale. What differs: the posterior looks at the graph alone, not at the
memory, for a graph says everything about the state; so latents can be computed once, and are the same in any order of
episodes. The deterministic latent of a graph, which policies see, is the most probable one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from taso_agents.networks.candidates import Observation
from taso_agents.networks.encoder import box
from taso_agents.world_models.base import Memory
from taso_agents.world_models.categorical import Categoricals, mixed_with_uniform, symexp, two_hot
from taso_agents.world_models.mdn import LatentDistribution
from taso_agents.world_models.mdn_rnn import Prediction, WorldModel


@dataclass(frozen=True)
class DiscreteSettings:
    """Sizes.

    Attributes:
        groups, classes: categoricals of the latent, and classes of each; DreamerV3 has 32 × 32 for images.
        hidden: units H of the GRU.
        embedding: width of the embeddings of actions and counts.
        encoder: width of the graph encoder.
        rounds: its rounds of message passing.
        max_change: largest change of a number of locations in one step that can be predicted.
        separate_reward: predict the reward by a network of its own, not from the GRU.
        uniform: part of every categorical that is uniform ("unimix").
        free_nats: divergence between posterior and prior that costs nothing.
        bins: of the reward.
        reach: the outer bins are at symexp(±reach) mean absolute rewards.
    """

    groups: int = 16
    classes: int = 16
    hidden: int = 256
    embedding: int = 64
    encoder: int = 32
    rounds: int = 3
    max_change: int = 8
    separate_reward: bool = False
    uniform: float = 0.01
    free_nats: float = 1.0
    bins: int = 127
    reach: float = 6.0

    @property
    def latent(self) -> int:
        """Width Z of a latent as a row of numbers."""
        return self.groups * self.classes


class DiscreteWorldModel(WorldModel):
    """Predicts the environment step by step in a space of categorical latents."""

    kind: ClassVar[str] = "discrete"
    Settings: ClassVar[Any] = DiscreteSettings
    loss_weights: ClassVar[Mapping[str, float]] = {
        "latent": 0.1,
        "dynamics": 0.5,
        "representation": 0.1,
        "reward": 1.0,
        "end": 0.1,
        "mask": 0.1,
        "change": 0.1,
    }
    """Weights of the losses; those of dynamics and representation are DreamerV3's."""

    bins: Tensor

    def _build(self, width: int, source: int) -> None:
        s: DiscreteSettings = self.settings
        self.to_posterior = nn.Linear(s.encoder, s.latent)
        self.gru = nn.GRU(width, s.hidden, batch_first=True)
        self.to_prior = nn.Sequential(nn.Linear(s.hidden, s.hidden), nn.SiLU(), nn.Linear(s.hidden, s.latent))
        last = nn.Linear(s.hidden, s.bins)
        nn.init.zeros_(last.weight)  # the first predictions are 0, not noise
        nn.init.zeros_(last.bias)
        self.reward = nn.Sequential(nn.Linear(source, s.hidden), nn.SiLU(), last)
        self.register_buffer("bins", symexp(torch.linspace(-s.reach, s.reach, s.bins)))

    def _make_decoder(self, observation_space: Any) -> None:
        super()._make_decoder(observation_space)
        self.decode_globals = nn.Linear(self.settings.latent, box(observation_space, "globals").shape[0])

    def posterior(self, observation: Observation) -> Categoricals:
        """Return the distribution (B, G, C) over the latents of observations."""
        return self._categoricals(self.to_posterior(self.encoder(observation)))

    def encode(self, observation: Observation) -> Tensor:
        """Return the most probable latents (B, Z) of observations: one-hot, without gradient."""
        return self.posterior(observation).mode()

    def sample_latent(
        self, prediction: Prediction, temperature: float, generator: torch.Generator | None = None
    ) -> Tensor:
        """Draw next latents (..., Z)."""
        return prediction.latent.sample(temperature, generator)

    def reward_loss(self, prediction: Prediction, reward: Tensor) -> Tensor:
        """Return the cross entropy between predicted and two-hot encoded rewards (...)."""
        assert prediction.reward_logits is not None
        return -(two_hot(reward, self.bins) * prediction.reward_logits.log_softmax(-1)).sum(-1)

    def initial_memory(self, size: int) -> Memory:
        """Return the memory at the start of an episode; a GRU has no cells."""
        return torch.zeros(size, self.settings.hidden), torch.zeros(size, 0)

    def _categoricals(self, logits: Tensor) -> Categoricals:
        s: DiscreteSettings = self.settings
        return mixed_with_uniform(logits.unflatten(-1, (s.groups, s.classes)), s.uniform)

    def _recur(self, given: Tensor, memory: Memory | None) -> tuple[Tensor, Memory]:
        hidden, last = self.gru(given, None if memory is None else memory[0][None].contiguous())
        return hidden, (last[0], last.new_zeros(len(given), 0))

    def _following(self, hidden: Tensor) -> LatentDistribution:
        return self._categoricals(self.to_prior(hidden))

    def _rewards(self, source: Tensor) -> tuple[Tensor, Tensor | None]:
        logits = self.reward(source)
        return (logits.softmax(-1) * self.bins).sum(-1), logits
