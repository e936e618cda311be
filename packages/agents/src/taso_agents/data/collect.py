"""Collecting episodes of the real environment: the dissertation's random agent, and mixtures that see more of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from taso_agents.data.episodes import Dataset, EpisodeRecord
from taso_agents.data.graph_store import GraphStore
from taso_agents.environment.real_env import Action, Arrays, with_ids
from taso_gym.rules.state import Match

Actor = Callable[[gym.Env, Arrays, np.random.Generator], NDArray[np.int64]]
"""Chooses an action in an environment, given the observation."""


def random_actor(noop_probability: float = 0.2) -> Actor:
    """Draw a candidate, or NO-OP with the given probability; 0.2 is the dissertation's code, 0 goes on to the end."""

    def act(env: gym.Env, _observation: Arrays, rng: np.random.Generator) -> NDArray[np.int64]:
        game: Any = env.unwrapped
        if rng.random() < noop_probability:
            return np.array([game.layout.xfers, 0])
        return game.sample_valid(rng)

    return act


def greedy_actor(epsilon: float) -> Actor:
    """Take the candidate that lowers the cost most, or with probability ε, and where none does, any."""

    def act(env: gym.Env, _observation: Arrays, rng: np.random.Generator) -> NDArray[np.int64]:
        game: Any = env.unwrapped
        changes = game.view("cost_changes")
        best = int(changes.argmin())
        if rng.random() < epsilon or changes[best] >= 0:
            return game.sample_valid(rng)
        return np.array(game.candidate_action(best))

    return act


def replaying(actions: Sequence[Action]) -> Actor:
    """Take these actions, one after the other."""
    left = iter(actions)
    return lambda _env, _observation, _rng: np.array(next(left))


def empty_dataset(env: gym.Env) -> Dataset:
    """Return a dataset for the episodes of an environment."""
    space: Any = env.observation_space
    return Dataset(GraphStore(space["nodes"].shape[1], space["edge_features"].shape[1]))


def collect(env: gym.Env, actor: Actor, steps: int, rng: np.random.Generator, dataset: Dataset) -> None:
    """Add whole episodes to a dataset until they have at least so many steps.

    Args:
        env: shows ``location_counts``.
        actor: who plays.
        steps: real environment steps.
        rng: what the actor draws from.
        dataset: to add to.
    """
    target = dataset.steps + steps
    while dataset.steps < target:
        dataset.episodes.append(play_record(env, actor, rng, dataset.store))


def play_record(env: gym.Env, actor: Actor, rng: np.random.Generator, store: GraphStore) -> EpisodeRecord:
    """Play one episode and return its record."""
    observation, _ = env.reset()
    record, ended = EpisodeRecord(), False
    _note(record, env, observation, store)
    while not ended:
        action, before = actor(env, observation, rng), candidates_of(env)
        observation, reward, terminated, truncated, info = env.step(action)
        assert not info["invalid_action"], f"the actor chose {action}, which is illegal"
        record.actions.append((int(action[0]), int(action[1])))
        record.rewards.append(float(np.float32(reward)))  # as they are saved
        number = {match: i for i, match in enumerate(before)}
        record.origins.append(np.array([number.get(match, -1) for match in candidates_of(env)], np.int16))
        _note(record, env, observation, store)
        record.exhausted = terminated and not observation["match_mask"].any()
        ended = terminated or truncated
    return record


def candidates_of(env: gym.Env) -> list[Match]:
    """Return the legal matches in the order of the observation's candidates."""
    game: Any = env.unwrapped
    counts, matches = game.legal_locations(), game.state.matches
    return [match for found, count in zip(matches, counts, strict=False) for match in found[:count]]


def _note(record: EpisodeRecord, env: gym.Env, observation: Arrays, store: GraphStore) -> None:
    game: Any = env.unwrapped
    total = int(observation["match_mask"].sum())
    record.graphs.append(store.add(with_ids(env, observation), game.view("cost_changes")[:total]))
    record.counts.append(observation["location_counts"][:-1].astype(np.int16))
