"""Playing trained policies: single episodes, best of several, estimates over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.policies import BasePolicy

from taso_agents.environment.real_env import Action, state_of
from taso_agents.stats import Estimate, iqm_estimate


class Episode(NamedTuple):
    """What one episode came to.

    Attributes:
        steps: environment steps, NO-OP included.
        weighed: candidates whose cost change was shown; where it isn't, rewrites applied. A search counts the same.
        start_ps: cost of the start graph.
        final_ps: cost of the graph at the end.
        best_ps: lowest cost on the way.
        actions: all of them.
        best_length: how many of them lead to the cheapest graph.
    """

    steps: int
    weighed: int
    start_ps: int
    final_ps: int
    best_ps: int
    actions: tuple[Action, ...]
    best_length: int

    @property
    def improvement_percent(self) -> float:
        """Part of the start's cost that its cheapest graph saves."""
        return 100 * (self.start_ps - self.best_ps) / max(self.start_ps, 1)


def play_policy(policy: BasePolicy, env: gym.Env, *, deterministic: bool = True, seed: int | None = None) -> Episode:
    """Play one episode; torch's random stream is left as it was.

    Args:
        policy: what to play.
        env: the environment or a wrapper of it, with the policy's spaces.
        deterministic: take the most probable action each time.
        seed: of the draws.
    """
    with torch.random.fork_rng(devices=[]):
        if seed is not None:
            torch.manual_seed(seed)
        return _play(policy, env, deterministic)


def _play(policy: BasePolicy, env: gym.Env, deterministic: bool) -> Episode:
    observation, _ = env.reset()
    actions: list[Action] = []
    start_ps = best_ps = state_of(env).cost.time_ps
    best_length, weighed, ended = 0, 0, False
    while not ended:
        weighed += int(observation["match_mask"].sum()) if "cost_changes" in observation else 1
        action, _ = policy.predict(observation, deterministic=deterministic)
        observation, _, terminated, truncated, _ = env.step(action)
        actions.append((int(action[0]), int(action[1])))
        if state_of(env).cost.time_ps < best_ps:
            best_ps, best_length = state_of(env).cost.time_ps, len(actions)
        ended = terminated or truncated
    return Episode(len(actions), weighed, start_ps, state_of(env).cost.time_ps, best_ps, tuple(actions), best_length)


def best_of(policy: BasePolicy, env: gym.Env, episodes: int, seed: int = 0) -> Episode:
    """Return the cheapest of several episodes: the first without chance, the others drawn."""
    played = [play_policy(policy, env)]
    played += [play_policy(policy, env, deterministic=False, seed=seed + i) for i in range(1, episodes)]
    return min(played, key=lambda episode: episode.best_ps)


class Evaluation(NamedTuple):
    """How policies of several seeds do on one network; improvements are in % of the start graph's cost.

    Attributes:
        deterministic: over policies: the most probable action each time.
        sampled: over policies and episodes: actions drawn.
        best_of: over policies: the best of a policy's episodes.
        episodes: drawn episodes a policy.
        weighed: candidates weighed by a policy for one deterministic episode, and for all drawn ones; means.
    """

    deterministic: Estimate
    sampled: Estimate
    best_of: Estimate
    episodes: int
    weighed: tuple[float, float]


def evaluate(policies: Sequence[BasePolicy], env: gym.Env, episodes: int = 16, seed: int = 0) -> Evaluation:
    """Play each policy once without chance and several times with it."""
    fixed = [play_policy(policy, env) for policy in policies]
    drawn = [
        [play_policy(policy, env, deterministic=False, seed=seed + i) for i in range(episodes)] for policy in policies
    ]
    improvements = np.array([[e.improvement_percent for e in row] for row in drawn])
    return Evaluation(
        iqm_estimate([e.improvement_percent for e in fixed]),
        iqm_estimate(improvements.mean(1)),
        iqm_estimate(improvements.max(1)),
        episodes,
        (_mean_weighed([[e] for e in fixed]), _mean_weighed(drawn)),
    )


def _mean_weighed(rows: Sequence[Sequence[Episode]]) -> float:
    return float(np.mean([sum(e.weighed for e in row) for row in rows]))
