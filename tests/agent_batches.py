"""Batches of observations and episodes of the real environment, for tests of agents."""

import gymnasium as gym
import numpy as np
import torch

from taso_agents.data.collect import Actor, collect, empty_dataset
from taso_agents.data.episodes import Dataset

Batch = dict[str, torch.Tensor]


def walk(env: gym.Env, steps: int, seed: int = 0) -> Batch:
    """Return the observations of a random legal walk, as a batch."""
    rng, game = np.random.default_rng(seed), env.unwrapped
    observation, _ = env.reset()
    seen = [observation]
    for _ in range(steps):
        observation, _, terminated, truncated, _ = env.step(game.sample_valid(rng))
        seen.append(observation)
        if terminated or truncated:
            observation, _ = env.reset()
    return {key: torch.from_numpy(np.stack([o[key] for o in seen])) for key in observation}


def collected(env: gym.Env, *played: tuple[Actor, int], seed: int = 0) -> Dataset:
    """Return episodes of actors that each play so many steps, one after the other."""
    found, rng = empty_dataset(env), np.random.default_rng(seed)
    for actor, steps in played:
        collect(env, actor, steps, rng, found)
    return found


def without_first(batch: Batch, key: str) -> Batch:
    """Return a batch in which the first candidate is not legal by one of the masks."""
    changed = {name: tensor.clone() for name, tensor in batch.items()}
    xfer, location = batch["matches"][:, 0, 0].long(), batch["matches"][:, 0, 1].long()
    rows = torch.arange(len(xfer))
    if key == "match_mask":
        changed[key][:, 0] = 0
    elif key == "location_masks":
        changed[key][rows, xfer, location] = 0
    else:
        changed[key][rows, xfer] = 0
    return changed
