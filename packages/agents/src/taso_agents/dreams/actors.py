"""Trained policies as actors for `taso_agents.data.collect`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.policies import BasePolicy

from taso_agents import checkpoint
from taso_agents.data.collect import Actor, greedy_actor, random_actor
from taso_agents.dreams.latent import Follower
from taso_agents.environment.real_env import Arrays, state_of, with_ids
from taso_agents.policies.policy_file import load_policy
from taso_agents.world_models.mdn_rnn import WorldModel


def policy_actor(policy: BasePolicy) -> Actor:
    """Draw from a policy over the environment's own observations."""

    def act(_env: gym.Env, observation: Arrays, _rng: np.random.Generator) -> NDArray[np.int64]:
        return policy.predict(observation)[0]  # pyright: ignore[reportArgumentType]

    return act


def controller_actor(policy: BasePolicy, model: WorldModel) -> Actor:
    """Draw from a policy over latent observations."""
    follower, last = Follower(model), [np.zeros(2, np.int64)]

    def act(env: gym.Env, observation: Arrays, _rng: np.random.Generator) -> NDArray[np.int64]:
        game: Any = env.unwrapped
        first, observation = game.episode.steps == 0, with_ids(env, observation)
        seen = follower.begin(observation) if first else follower.follow(last[0], observation)
        last[0] = policy.predict(seen)[0]  # pyright: ignore[reportArgumentType]
        return last[0]

    return act


def views_of(names: Iterable[str]) -> list[str]:
    """Return the extra views of observations that policies' files among the names of actors want to see.

    Raises:
        CheckpointError: there is no such actor, and no such file.
    """
    files = [name for name in names if name not in _built_in()]
    sizes = (checkpoint.load(file, "policy")["taso"]["sizes"] for file in files)
    return sorted({view for size in sizes for view in size["layout"]["extra_views"]})


def _built_in(epsilon: float = 0.3) -> dict[str, Actor]:
    """Return the actors that need no file, by name; ``epsilon`` is how often the greedy one acts by chance."""
    return {"random": random_actor(0.0), "random-noop": random_actor(0.2), "greedy": greedy_actor(epsilon)}


def actor_named(name: str, env: gym.Env, epsilon: float = 0.3) -> Actor:
    """Return an actor: ``random``, ``random-noop`` (the dissertation's), ``greedy``, or that of a policy's file.

    Raises:
        CheckpointError: there is no such actor, and no such file.
    """
    if name in (built_in := _built_in(epsilon)):
        return built_in[name]
    space: Any = env.observation_space
    return policy_actor(load_policy(name, space, env.action_space, state_of(env).rules.digest))
