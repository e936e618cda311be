"""The real environment as a world model sees it: latent, hidden state and what is legal; the spaces of the dream."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from taso_agents.environment.real_env import Arrays, with_ids
from taso_agents.policies.policy_search import as_batch
from taso_agents.world_models.base import Memory
from taso_agents.world_models.mdn_rnn import WorldModel


def latent_space(model: WorldModel) -> spaces.Dict:
    """Return the observation space of a dream and of `LatentObservation`."""
    bound = np.sqrt(np.float32(model.settings.latent))
    return spaces.Dict(
        {
            "latent": spaces.Box(-bound, bound, (model.settings.latent,), np.float32),
            "hidden": spaces.Box(-1.0, 1.0, (model.settings.hidden,), np.float32),
            "xfer_mask": spaces.Box(0, 1, (model.xfers + 1,), np.int8),
            "location_counts": spaces.Box(0, model.locations, (model.xfers + 1,), np.int32),
        }
    )


def latent_observation(model: WorldModel, latent: Tensor, memory: Memory, counts: Tensor) -> Arrays:
    """Return observations, a batch of them: fresh arrays.

    Args:
        model: the world model.
        latent: (B, Z).
        memory: (B, H) each.
        counts: (B, N) numbers of locations; NO-OP's 1 is added.
    """
    bound = float(np.sqrt(np.float32(model.settings.latent)))
    counts = model.shown(counts)
    with_noop = torch.cat([counts, counts.new_ones(len(counts), 1)], 1).numpy().astype(np.int32)
    return {
        "latent": model.shown_latent(latent).clamp(-bound, bound).numpy().astype(np.float32),
        "hidden": memory[0].clamp(-1, 1).numpy().astype(np.float32),
        "xfer_mask": (with_noop > 0).astype(np.int8),
        "location_counts": with_noop,
    }


class Follower:
    """Follows a real episode with a world model's memory.

    Args:
        model: the world model.
    """

    def __init__(self, model: WorldModel) -> None:
        self.model = model
        self._memory = model.initial_memory(1)
        self._latent = torch.zeros(1, model.settings.latent)
        self._counts = torch.zeros(1, model.xfers, dtype=torch.long)

    @property
    def now(self) -> tuple[Tensor, Tensor, Memory]:
        """Latent (1, Z), numbers of locations (1, N) and memory (1, H) at the present state."""
        return self._latent, self._counts, self._memory

    def begin(self, observation: Arrays) -> Arrays:
        """Return how an episode's first observation, with its ``ids``, looks with an empty memory."""
        self._memory = self.model.initial_memory(1)
        return self._see(observation)

    def follow(self, action: NDArray[np.int64], observation: Arrays) -> Arrays:
        """Return how the observation after a legal action looks; the memory takes note of the action but for NO-OP."""
        if int(action[0]) < self.model.xfers:
            taken = torch.as_tensor(np.asarray(action)).long().view(1, 1, 2)
            with torch.no_grad():
                given = (self._latent[:, None], self._counts[:, None], taken[..., 0], taken[..., 1], self._memory)
                self._memory = self.model(*given)[2]
        return self._see(observation)

    def _see(self, observation: Arrays) -> Arrays:
        with torch.no_grad():
            self._latent = self.model.encode(as_batch(observation))
        self._counts = torch.from_numpy(observation["location_counts"][None, :-1]).long()
        shown = latent_observation(self.model, self._latent, self._memory, self._counts)
        return {key: array[0] for key, array in shown.items()}


class LatentObservation(gym.Wrapper):
    """Shows the real environment as its dream looks, so that one policy plays both.

    Args:
        env: a real environment with ``location_counts``.
        model: the world model; its memory follows the episode.
    """

    def __init__(self, env: gym.Env, model: WorldModel) -> None:
        super().__init__(env)
        self.observation_space = latent_space(model)
        self._follower = Follower(model)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Arrays, dict[str, Any]]:
        """Begin an episode with an empty memory."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._follower.begin(with_ids(self.env, observation)), info

    def step(self, action: NDArray[np.int64]) -> tuple[Arrays, float, bool, bool, dict[str, Any]]:
        """Take an action; an illegal one leaves the memory as it was."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        legal = action if not info["invalid_action"] else np.array([self._follower.model.xfers, 0])
        return self._follower.follow(legal, with_ids(self.env, observation)), float(reward), terminated, truncated, info
