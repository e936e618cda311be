"""World model (Ha & Schmidhuber 2018; dissertation §4.3): graph encoder → latent, LSTM, mixture over the next latent.

Unlike the dissertation's published code it also predicts what may be done next, masks and numbers of locations, so that
a dream never asks the real environment.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn import functional

from taso_agents import checkpoint, world_models
from taso_agents.data.episodes import Dataset
from taso_agents.environment.real_env import layout_of, spaces_of
from taso_agents.networks.candidates import Observation
from taso_agents.networks.encoder import GraphEncoder, box
from taso_agents.world_models.base import Memory, SavedModel
from taso_agents.world_models.mdn import LatentDistribution, MixtureHead
from taso_gym.errors import CheckpointError


@dataclass(frozen=True)
class WorldModelSettings:
    """Sizes; those of latent, LSTM and mixture are the dissertation's (§5.2).

    Attributes:
        latent: dimensions Z of the latent.
        hidden: units H of the LSTM.
        mixtures: Gaussians K.
        embedding: width of the embeddings of actions and counts.
        encoder: width of the graph encoder.
        rounds: its rounds of message passing.
        max_change: largest change of a number of locations in one step that can be predicted.
        separate_reward: predict the reward by a network of its own (dissertation §5.3.4), not from the LSTM.
    """

    latent: int = 32
    hidden: int = 256
    mixtures: int = 8
    embedding: int = 64
    encoder: int = 32
    rounds: int = 3
    max_change: int = 8
    separate_reward: bool = False


class Prediction(NamedTuple):
    """What the model expects of the next step, for any leading dimensions.

    Attributes:
        latent: distribution over the next latent.
        reward: (...) in units of ``reward_scale``.
        end: (...) logit that no substitution is left afterwards.
        mask: (..., S) logits that a substitution is legal afterwards, for those S that were ever seen to match.
        change: (..., S, 2R + 1) logits of the change of their numbers of locations: -R … R.
        reward_logits: (..., bins) of models that predict the reward as a distribution over bins.
    """

    latent: LatentDistribution
    reward: Tensor
    end: Tensor
    mask: Tensor
    change: Tensor
    reward_logits: Tensor | None = None


class WorldModel(SavedModel):
    """Predicts the environment step by step in latent space.

    Args:
        observation_space: of the real environment.
        action_space: its ``MultiDiscrete([N + 1, L])``.
        settings: sizes, of the class ``Settings``.
    """

    kind: ClassVar[str] = "mdn"
    has_memory: ClassVar[bool] = True
    has_gradients: ClassVar[bool] = True
    Settings: ClassVar[Any] = WorldModelSettings
    loss_weights: ClassVar[Mapping[str, float]] = {
        "latent": 1 / 32,
        "reward": 1.0,
        "end": 0.1,
        "mask": 0.1,
        "change": 0.1,
    }
    """Weights of the losses; the mixture's is divided by the dimensions, as in the dissertation's code."""

    def __init__(
        self, observation_space: spaces.Dict, action_space: spaces.MultiDiscrete, settings: Any = None
    ) -> None:
        s = settings or self.Settings()
        super().__init__(action_space, s)
        assert box(observation_space, "xfer_mask").shape == (self.xfers + 1,)
        self.encoder = GraphEncoder(observation_space, s.encoder, s.rounds)
        self._make_decoder(observation_space)
        self.embed_xfer = nn.Embedding(self.xfers + 1, s.embedding)
        self.embed_location = nn.Embedding(self.locations, s.embedding)
        self.embed_counts = nn.Linear(2 * self.xfers, s.embedding)
        width = s.latent + 2 * s.embedding + 1
        self._build(width, width if s.separate_reward else width + s.hidden)
        self.end = nn.Linear(s.hidden, 1)
        self.mask = nn.Linear(s.hidden, self.xfers)
        self.change = nn.Linear(s.hidden, self.xfers * (2 * s.max_change + 1))
        self.keep = nn.Parameter(torch.tensor(2.0))

    def _build(self, width: int, source: int) -> None:
        """Make what kinds differ in: latents, recurrent network and heads of latent and reward.

        Args:
            width: of the recurrent network's input.
            source: width of what the reward is predicted from.
        """
        s = self.settings
        self.to_latent = nn.Sequential(nn.Linear(s.encoder, s.latent), nn.LayerNorm(s.latent, elementwise_affine=False))
        self.lstm = nn.LSTM(width, s.hidden, batch_first=True)
        self.mixture = MixtureHead(s.hidden, s.latent, s.mixtures)
        self.reward = nn.Sequential(nn.Linear(source, s.hidden), nn.ReLU(), nn.Linear(s.hidden, 1))

    def _make_decoder(self, observation_space: spaces.Dict) -> None:  # noqa: ARG002
        """Make what a latent is read back with; only the fit of the encoder uses it."""
        s = self.settings
        self.decode = nn.Sequential(nn.Linear(s.latent, s.hidden), nn.ReLU(), nn.Linear(s.hidden, self.xfers))

    def encode(self, observation: Observation) -> Tensor:
        """Return the latents (B, Z) of observations; each has mean 0 and variance 1, so |z| < √Z."""
        return self.to_latent(self.encoder(observation))

    def sample_latent(
        self, prediction: Prediction, temperature: float, generator: torch.Generator | None = None
    ) -> Tensor:
        """Draw next latents (..., Z) as `encode` would give them."""
        sampled = prediction.latent.sample(temperature, generator)
        return functional.layer_norm(sampled, sampled.shape[-1:])

    def latent_loss(self, prediction: Prediction, following: Tensor) -> Tensor:
        """Return how improbable the next latents (..., Z) are by the prediction, (...)."""
        return -prediction.latent.log_prob(following)

    def reward_loss(self, prediction: Prediction, reward: Tensor) -> Tensor:
        """Return how wrong predicted rewards are, given the real ones (...) in units of ``reward_scale``."""
        return functional.smooth_l1_loss(prediction.reward, reward, reduction="none", beta=0.1)

    def prepare(self, dataset: Dataset) -> None:
        """Take note of what occurs in the data: the size of rewards, and substitutions."""
        rewards = np.concatenate([e.rewards for e in dataset.episodes])
        self.reward_scale.fill_(max(float(np.abs(rewards).mean()), 1e-3))
        self.seen |= dataset.seen()

    def policy_arguments(self) -> dict[str, Any]:
        """Return what a controller of its dreams has to know."""
        return {}

    def shown(self, counts: Tensor) -> Tensor:
        """Return the numbers of locations (B, N) that a controller is offered, of those there are: all."""
        return counts

    def initial_memory(self, size: int) -> Memory:
        """Return the memory (B, H) at the start of an episode."""
        zeros = torch.zeros(size, self.settings.hidden, device=self.keep.device)
        return zeros, zeros

    def scaled_counts(self, counts: Tensor) -> Tensor:
        """Return numbers of locations on a logarithmic scale from 0 to 1."""
        return counts.float().log1p() / math.log1p(self.locations)

    def inputs(self, latent: Tensor, counts: Tensor, xfer: Tensor, location: Tensor) -> Tensor:
        """Return the LSTM's input (..., D).

        Args:
            latent: (..., Z).
            counts: (..., N) numbers of locations.
            xfer: (...) substitution.
            location: (...) its location.
        """
        offered = torch.cat([self.scaled_counts(counts), (counts > 0).float()], -1)
        chosen = counts.gather(-1, xfer.clamp(max=self.xfers - 1)[..., None]).float().clamp(min=1)
        position = (location[..., None].float() + 0.5) / chosen
        action = self.embed_xfer(xfer) + self.embed_location(location)
        return torch.cat([latent, self.embed_counts(offered), action, position], -1)

    def forward(
        self, latent: Tensor, counts: Tensor, xfer: Tensor, location: Tensor, memory: Memory | None = None
    ) -> tuple[Prediction, Tensor, Memory]:
        """Predict each step of sequences that start at the start of an episode, or go on from a memory.

        Args:
            latent: (B, T, Z) before each action.
            counts: (B, T, N) before each action.
            xfer: (B, T) substitutions.
            location: (B, T) their locations.
            memory: (B, H) at the first step; None for the start.

        Returns:
            The predictions (B, T, …), the LSTM's outputs (B, T, H), the memory after the last step.
        """
        given = self.inputs(latent, counts, xfer, location)
        hidden, after = self._recur(given, memory)
        source = given if self.settings.separate_reward else torch.cat([hidden, given], -1)
        legal = (counts[..., self.seen] > 0).float() * 2 - 1
        reward, reward_logits = self._rewards(source)
        prediction = Prediction(
            self._following(hidden),
            reward,
            self.end(hidden)[..., 0],
            self._of_seen(self.mask, hidden)[..., 0] + self.keep * legal,
            self._of_seen(self.change, hidden),
            reward_logits,
        )
        return prediction, hidden, after

    def _recur(self, given: Tensor, memory: Memory | None) -> tuple[Tensor, Memory]:
        """Return the recurrent network's outputs (B, T, H) and its memory after the last step."""
        state = None if memory is None else (memory[0][None], memory[1][None])
        hidden, (last, cell) = self.lstm(given, state)
        return hidden, (last[0], cell[0])

    def _following(self, hidden: Tensor) -> LatentDistribution:
        """Return the distribution over the next latent."""
        return self.mixture(hidden)

    def _rewards(self, source: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return rewards (...), and their logits (..., bins) where they are predicted as distributions."""
        return self.reward(source)[..., 0], None

    def _of_seen(self, layer: nn.Linear, hidden: Tensor) -> Tensor:
        """Apply the part of a layer that belongs to the substitutions that were seen, (..., S, outputs of each)."""
        weight = layer.weight.unflatten(0, (self.xfers, -1))[self.seen]
        bias = layer.bias.unflatten(0, (self.xfers, -1))[self.seen]
        return functional.linear(hidden, weight.flatten(0, 1), bias.flatten()).unflatten(-1, bias.shape)

    def next_counts(self, prediction: Prediction, counts: Tensor) -> Tensor:
        """Return the most probable numbers of locations (..., N) after a step; zero where the mask says illegal."""
        change = prediction.change.argmax(-1) - self.settings.max_change
        expected = (counts[..., self.seen] + change).clamp(1, self.locations)
        following = torch.zeros_like(counts)
        following[..., self.seen] = expected * (prediction.mask > 0)
        return following

    def rewards(self, latent: Tensor, counts: Tensor, xfer: Tensor, location: Tensor, memory: Memory) -> Tensor:
        """Return the rewards (B,) of single actions, in units of ``reward_scale``."""
        return self(latent[:, None], counts[:, None], xfer[:, None], location[:, None], memory)[0].reward[:, 0]

    def follow(
        self, prediction: Prediction, counts: Tensor, temperature: float, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the next latents (..., Z), drawn, and the most probable next numbers of locations (..., N)."""
        following = self.next_counts(prediction, counts)
        return self.sample_latent(prediction, temperature, generator), following


def load_world_model(path: str | Path) -> tuple[WorldModel, dict[str, Any]]:
    """Read a world model; return it and everything that was saved with it.

    Raises:
        CheckpointError: the file is no world model, or one of another version.
    """
    data = checkpoint.load(path, "world model")
    try:
        kind = world_models.world_model(data["world_model"])
        model: WorldModel = kind(*spaces_of(layout_of(data["taso"]["sizes"])), kind.Settings(**data["settings"]))
        model.load_state_dict(data["weights"])
    except (KeyError, TypeError, RuntimeError) as error:
        raise CheckpointError(f"{path}: the world model doesn't fit this version's observation: {error}") from error
    return model.eval(), data
