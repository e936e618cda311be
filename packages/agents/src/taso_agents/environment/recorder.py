"""The environments that training plays: recorded, to be taken up later, and begun anew on the way to the best graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.vec_env import DummyVecEnv

from taso_agents.environment.real_env import Action, Arrays, expect_one_network, make_env, state_of
from taso_gym.env import Snapshot
from taso_gym.env.game import GraphGame


class Archive:
    """The cheapest graph that several environments have seen, the first of equals, and the way to it.

    Attributes:
        time_ps: its cost.
        actions: the actions that lead to it from the start graph.
        episodes: how many were begun; numbers the draws.
    """

    def __init__(self, time_ps: int) -> None:
        self.time_ps, self.episodes = time_ps, 0
        self.actions: list[Action] = []
        self._points: list[Snapshot] = []

    def note(self, time_ps: int, actions: Sequence[Action]) -> None:
        """Take a graph into account."""
        if time_ps < self.time_ps:
            self.time_ps, self.actions, self._points = time_ps, list(actions), []

    def points(self, game: GraphGame) -> list[Snapshot]:
        """Return the points after each of its actions; they are gone through once and then kept."""
        if not self._points:
            game.begin()
            for action in self.actions:
                game.play(action)
                self._points.append(game.get_state())
        return self._points


class Recorder(gym.Wrapper):
    """Scales rewards, remembers the episode's actions, and begins some episodes on the way to the cheapest graph.

    Such restarts (Ecoffet et al. 2021, "First return, then explore") spend the steps where something new may be found.

    Args:
        game: the environment.
        archive: shared by several recorders.
        reward_scale: factor on rewards.
        restarts: part of the episodes that begin at a random point on the way to the cheapest graph.
        seed: of these draws.

    Attributes:
        actions: from the start graph to the present one: with them an episode is taken up again later.
        restarted: this episode didn't begin at the start graph.
    """

    def __init__(self, game: GraphGame, archive: Archive, reward_scale: float, restarts: float, seed: int) -> None:
        super().__init__(game)
        self.game, self.archive = game, archive
        self.reward_scale, self.restarts, self.seed = reward_scale, restarts, seed
        self.actions: list[Action] = []
        self.restarted = False
        self._lowest_ps = archive.time_ps

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Arrays, dict[str, Any]]:
        """Start an episode."""
        info = self.game.begin(seed=seed, options=options)
        self.actions = []
        rng = np.random.default_rng([self.seed, self.archive.episodes])
        self.archive.episodes += 1
        most = min(len(self.archive.actions), self.game.max_steps - 1)  # an episode takes a step at least
        self.restarted = most > 0 and rng.random() < self.restarts
        if self.restarted:
            count = int(rng.integers(most)) + 1
            self.game.set_state(self.archive.points(self.game)[count - 1])
            self.actions = self.archive.actions[:count]
            info = self.game.episode.info()
        self._lowest_ps = state_of(self).cost.time_ps
        return self.game.observe(), info

    def step(self, action: Sequence[int]) -> tuple[Arrays, float, bool, bool, dict[str, Any]]:
        """Apply an action; at the end of an episode from the start ``info["lowest_time_ps"]`` is its lowest cost."""
        observation, reward, terminated, truncated, info = self.game.step(action)
        self.actions.append((int(action[0]), int(action[1])))
        time_ps = state_of(self).cost.time_ps
        self._lowest_ps = min(self._lowest_ps, time_ps)
        self.archive.note(time_ps, self.actions)
        if (terminated or truncated) and not self.restarted:
            info["lowest_time_ps"] = self._lowest_ps
        return observation, reward * self.reward_scale, terminated, truncated, info

    def take_up(self, actions: Sequence[Action], restarted: bool) -> Arrays:
        """Go to where these actions lead from the start graph, in an episode that began there or was restarted."""
        self.game.begin()
        self._lowest_ps = state_of(self).cost.time_ps
        for action in actions:
            self.game.play(action)
            self._lowest_ps = min(self._lowest_ps, state_of(self).cost.time_ps)
        self.actions, self.restarted = list(actions), restarted
        return self.game.observe()


class RecordedVecEnv(DummyVecEnv):
    """A vector of recorders, one after the other in this process: a step is cheaper than sending it to another one.

    Attributes:
        archive: the cheapest graph that any of them has seen.
        start_ps: cost of the start graph.
    """

    def __init__(
        self,
        model: str,
        count: int,
        arguments: Mapping[str, Any],
        *,
        reward_scale: float = 1.0,
        restarts: float = 0.0,
        seed: int = 0,
    ) -> None:
        game = expect_one_network(make_env(model, **arguments), model).unwrapped
        assert isinstance(game, GraphGame)
        game.begin()
        self.start_ps = game.state.cost.time_ps
        self.archive = archive = Archive(self.start_ps)

        def make() -> gym.Env:
            return Recorder(game.clone(), archive, reward_scale, restarts, seed)

        super().__init__([make] * count)

    def relative(self, time_ps: int) -> float:
        """Return a cost as part of that of the start graph; of views alone, which cost nothing, it is 1."""
        return time_ps / self.start_ps if self.start_ps else 1.0

    def histories(self) -> list[tuple[list[Action], bool]]:
        """Return the actions of each environment's present episode, and whether it was restarted."""
        return [(env.actions, env.restarted) for env in self.envs if isinstance(env, Recorder)]

    def take_up(self, histories: Sequence[tuple[Sequence[Action], bool]]) -> Arrays:
        """Go on where `histories` was asked for; return the stacked observations."""
        recorders = [env for env in self.envs if isinstance(env, Recorder)]
        seen = [env.take_up(*history) for env, history in zip(recorders, histories, strict=True)]
        return {key: np.stack([o[key] for o in seen]) for key in seen[0]}
