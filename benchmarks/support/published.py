"""The dream as RLFlow's published code had it, to see what its scores say.

What it did (read in the code; nothing is copied), and is done here on purpose:

* data: a random agent that takes NO-OP with probability 0.2, so that episodes have four rewrites on average;
* losses are means over episodes that are padded to a fixed length with zeros, padding included;
* the reward is the absolute run time after the step, which PPO maximises;
* the dream steps the real environment along with it and takes masks and ends from there;
* score: (last - first) / first of the run times predicted in an episode, the first being that after the first action;
  of reality: (last - start) / start; of each the lowest over all episodes, which needn't be of the same policy.

Run times are in % of the start graph's, so signs and ratios are those of the published table. The encoder is trained
here, and the memory is empty at the start of an episode; both would have made it worse.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from taso_agents.data.collect import collect, empty_dataset, random_actor
from taso_agents.data.episodes import Dataset
from taso_agents.dreams.imagined import imagine
from taso_agents.dreams.latent import LatentObservation, latent_observation, latent_space
from taso_agents.environment.real_env import make_env
from taso_agents.policies.latent_policy import LatentPolicy
from taso_agents.policies.policy_search import as_batch
from taso_agents.world_models.fit import FitSettings, fit
from taso_agents.world_models.mdn_rnn import WorldModel

PADDED = 64
"""Steps that episodes are padded to; 256 in the published code."""


def as_published(dataset: Dataset) -> None:
    """Make rewards of episodes absolute run times, and pad them with zeros."""
    for episode in dataset.episodes:
        episode.rewards = (100 - np.cumsum(episode.rewards)).tolist()
        missing = PADDED - len(episode.actions)
        episode.actions += [(0, 0)] * missing
        episode.rewards += [0.0] * missing
        episode.graphs += [episode.graphs[-1]] * missing
        episode.counts += [np.zeros_like(episode.counts[0])] * missing
        episode.exhausted = False


class PublishedDream(gym.Env):
    """Latents and run times are dreamt; masks and ends are the real environment's, which is stepped along."""

    def __init__(self, model: WorldModel, env: gym.Env, temperature: float) -> None:
        self.model, self.env, self.temperature = model, env, temperature
        self.observation_space = latent_space(model)
        self.action_space = env.action_space
        self.scores: list[float] = []
        self._times: list[float] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin with the real start graph."""
        super().reset(seed=seed, options=options)
        observation, _ = self.env.reset()
        with torch.no_grad():
            self._latent = self.model.encode(as_batch(observation))
        self._memory, self._times = self.model.initial_memory(1), []
        return self._see(observation), {}

    def step(self, action: NDArray[np.int64]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Dream a step and take it for real."""
        taken = torch.as_tensor(np.asarray(action)).long().view(1, 2)
        reward = self._times[-1] if self._times else 100.0
        if int(action[0]) < self.model.xfers:
            step = imagine(self.model, self._latent, self._counts, self._memory, taken, self.temperature)
            self._latent, self._memory, reward = step.latent, step.memory, float(step.reward)
        self._times.append(reward)
        observation, _, terminated, truncated, _ = self.env.step(action)
        if terminated or truncated:
            self.scores.append(100 * (self._times[-1] - self._times[0]) / max(abs(self._times[0]), 1.0))
        return self._see(observation), reward / 100, terminated, truncated, {}

    def _see(self, observation: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        self._counts = torch.from_numpy(observation["location_counts"][None, :-1]).long()
        seen = latent_observation(self.model, self._latent, self._memory, self._counts)
        return {key: array[0] for key, array in seen.items()}


def published_run(
    options: argparse.Namespace, seed: int, temperature: float, models: Callable[[int], tuple[gym.Env, WorldModel]]
) -> dict[str, Any]:
    """Train a controller as the published code did; scores are in % saved, so a fall of the run time is positive."""
    env, model = models(seed)
    torch.manual_seed(seed)
    dream = PublishedDream(model, env, temperature)
    controller = PPO(
        LatentPolicy, DummyVecEnv([lambda: dream]), n_steps=256, batch_size=256, gae_lambda=1.0, seed=seed, device="cpu"
    )
    controller.learn(options.dream_steps)
    seen = LatentObservation(env, model)
    real = [_play(controller, seen) for _ in range(4 * options.episodes)]
    return {"dream": -min(dream.scores), "real": -min(real), "curve": []}


def fitted_as_published(options: argparse.Namespace, seed: int) -> tuple[gym.Env, WorldModel]:
    """Return the environment and the world model of a seed, which all temperatures share."""
    torch.manual_seed(seed)
    env = make_env(options.network, max_steps=options.max_steps)
    env.reset()
    dataset = empty_dataset(env)
    collect(env, random_actor(0.2), options.steps, np.random.default_rng(seed), dataset)
    as_published(dataset)
    model = WorldModel(env.observation_space, env.action_space)
    fit(model, dataset, FitSettings(encoder_epochs=options.epochs, epochs=4 * options.epochs, forget=0.0, seed=seed))
    return env, model


def _play(controller: PPO, env: gym.Env) -> float:
    """Play a real episode with chance; return the change of the run time in %."""
    observation, _ = env.reset()
    saved, ended = 0.0, False
    while not ended:
        action, _ = controller.predict(observation)
        observation, reward, terminated, truncated, _ = env.step(action)
        saved, ended = saved + float(reward), terminated or truncated
    return -saved
