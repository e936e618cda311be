"""World model (Ha & Schmidhuber 2018; dissertation §4.3): graph encoder → latent, LSTM, mixture over the next latent.

Unlike the dissertation's published code it also predicts what may be done next, masks and numbers of locations, so that
a dream never asks the real environment.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn import functional

from taso_agents import checkpoint
from taso_agents.candidates import Observation
from taso_agents.encoder import GraphEncoder, box
from taso_agents.mdn import Mixture, MixtureHead
from taso_agents.training_env import layout_of, spaces_of
from taso_gym.errors import CheckpointError

Memory = tuple[Tensor, Tensor]
"""Hidden and cell state of the LSTM, (B, H) each."""


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
        latent: mixture over the next latent.
        reward: (...) in units of ``reward_scale``.
        end: (...) logit that no substitution is left afterwards.
        mask: (..., S) logits that a substitution is legal afterwards, for those S that were ever seen to match.
        change: (..., S, 2R + 1) logits of the change of their numbers of locations: -R … R.
    """

    latent: Mixture
    reward: Tensor
    end: Tensor
    mask: Tensor
    change: Tensor


class WorldModel(nn.Module):
    """Predicts the environment step by step in latent space.

    Args:
        observation_space: of the real environment.
        action_space: its ``MultiDiscrete([N + 1, L])``.
        settings: sizes.
    """

    reward_scale: Tensor
    seen: Tensor

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.MultiDiscrete,
        settings: WorldModelSettings | None = None,
    ) -> None:
        super().__init__()
        self.settings = s = settings or WorldModelSettings()
        self.xfers, self.locations = int(action_space.nvec[0]) - 1, int(action_space.nvec[1])
        assert box(observation_space, "xfer_mask").shape == (self.xfers + 1,)
        self.encoder = GraphEncoder(observation_space, s.encoder, s.rounds)
        self.to_latent = nn.Sequential(nn.Linear(s.encoder, s.latent), nn.LayerNorm(s.latent, elementwise_affine=False))
        self.decode = nn.Sequential(nn.Linear(s.latent, s.hidden), nn.ReLU(), nn.Linear(s.hidden, self.xfers))
        self.embed_xfer = nn.Embedding(self.xfers + 1, s.embedding)
        self.embed_location = nn.Embedding(self.locations, s.embedding)
        self.embed_counts = nn.Linear(2 * self.xfers, s.embedding)
        width = s.latent + 2 * s.embedding + 1
        self.lstm = nn.LSTM(width, s.hidden, batch_first=True)
        self.mixture = MixtureHead(s.hidden, s.latent, s.mixtures)
        source = width if s.separate_reward else width + s.hidden
        self.reward = nn.Sequential(nn.Linear(source, s.hidden), nn.ReLU(), nn.Linear(s.hidden, 1))
        self.end = nn.Linear(s.hidden, 1)
        self.mask = nn.Linear(s.hidden, self.xfers)
        self.change = nn.Linear(s.hidden, self.xfers * (2 * s.max_change + 1))
        self.keep = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("reward_scale", torch.ones(()))
        self.register_buffer("seen", torch.zeros(self.xfers, dtype=torch.bool))

    def encode(self, observation: Observation) -> Tensor:
        """Return the latents (B, Z) of observations; each has mean 0 and variance 1, so |z| < √Z."""
        return self.to_latent(self.encoder(observation))

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
        state = None if memory is None else (memory[0][None], memory[1][None])
        hidden, (last, cell) = self.lstm(given, state)
        source = given if self.settings.separate_reward else torch.cat([hidden, given], -1)
        legal = (counts[..., self.seen] > 0).float() * 2 - 1
        prediction = Prediction(
            self.mixture(hidden),
            self.reward(source)[..., 0],
            self.end(hidden)[..., 0],
            self._of_seen(self.mask, hidden)[..., 0] + self.keep * legal,
            self._of_seen(self.change, hidden),
        )
        return prediction, hidden, (last[0], cell[0])

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

    def save(self, path: str | Path, taso: Mapping[str, Any], **parts: Any) -> None:
        """Write the model; ``taso`` holds the rule set's digest and `sizes_of` the environment.

        ``parts`` are more tensors and plain data to go with it.
        """
        assert {"rules", "sizes"} <= taso.keys()
        checkpoint.save(path, "world model", taso, settings=asdict(self.settings), weights=self.state_dict(), **parts)


def load_world_model(path: str | Path) -> tuple[WorldModel, dict[str, Any]]:
    """Read a world model; return it and everything that was saved with it.

    Raises:
        CheckpointError: the file is no world model, or one of another version.
    """
    data = checkpoint.load(path, "world model")
    try:
        model = WorldModel(*spaces_of(layout_of(data["taso"]["sizes"])), WorldModelSettings(**data["settings"]))
        model.load_state_dict(data["weights"])
    except (KeyError, TypeError, RuntimeError) as error:
        raise CheckpointError(f"{path}: the world model doesn't fit this version's observation: {error}") from error
    return model.eval(), data
