"""A step in the dream: what a world model expects of substitutions."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from taso_agents.world_models.base import Memory
from taso_agents.world_models.mdn_rnn import WorldModel


class Imagined(NamedTuple):
    """What a batch of imagined steps leads to.

    Attributes:
        latent: (B, Z).
        counts: (B, N) locations of each substitution; 0 where the dream ended.
        memory: what the world model remembers, two of (B, H).
        reward: (B,) in % of the start graph's cost.
        ended: (B,) nothing is left to substitute.
    """

    latent: Tensor
    counts: Tensor
    memory: Memory
    reward: Tensor
    ended: Tensor


@torch.no_grad()
def imagine(
    model: WorldModel,
    latent: Tensor,
    counts: Tensor,
    memory: Memory,
    actions: Tensor,
    temperature: float,
    generator: torch.Generator | None = None,
) -> Imagined:
    """Take one step in the dream.

    Args:
        model: what dreams.
        latent: (B, Z) where the dreams are.
        counts: (B, N) locations of each substitution there.
        memory: two of (B, H).
        actions: (B, 2) substitution and location, none of them NO-OP.
        temperature: of what is drawn; 0 takes the most likely.
        generator: what it is drawn with; torch's own by default.
    """
    prediction, _, memory = model(latent[:, None], counts[:, None], actions[:, None, 0], actions[:, None, 1], memory)
    latent, following = model.follow(prediction, counts[:, None], temperature, generator)
    following = following[:, 0]
    ended = ~(following > 0).any(1)
    if model.has_gradients:  # else what is left is known as soon as it is there
        ended |= prediction.end[:, 0] > 0
    following = following * ~ended[:, None]
    reward = prediction.reward[:, 0] * model.reward_scale
    return Imagined(latent[:, 0], following, memory, reward, ended)
