"""The environments that training plays: made by id or from an ONNX file, recorded, so that a run can go on later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv
from taso_gym.rules.state import RewriteState

import taso_gym
from taso_gym.errors import OptionError

gym.register_envs(taso_gym)

Action = tuple[int, int]
"""(substitution, location)."""

Arrays = dict[str, NDArray[Any]]


def make_env(model: str, **arguments: Any) -> gym.Env:
    """Make an environment from a registered id or the path of an ONNX file.

    ``location_counts`` is on unless it is given: counts say the same as masks and keep rollouts small.

    Raises:
        OptionError: it is neither.
    """
    arguments = {"location_counts": True, **arguments}
    if model in gym.registry:
        return gym.make(model, **arguments)
    if Path(model).suffix == ".onnx" or Path(model).exists():
        return gym.make("TasoGraph-v0", model=model, **arguments)
    known = ", ".join(sorted(i for i in gym.registry if i.startswith("TasoGraph-")))
    raise OptionError(f"expected an ONNX file or one of {known}, found {model!r}")


def state_of(env: gym.Env) -> RewriteState:
    """Return the graph that an environment is at, with its matches and cost."""
    return env.unwrapped.state  # pyright: ignore[reportAttributeAccessIssue]


def sizes_of(env: gym.Env) -> dict[str, Any]:
    """Return the sizes that a policy's observations were laid out with, as plain data."""
    game: Any = env.unwrapped
    layout = game.layout
    fields = ("xfers", "locations", "matches", "pattern_nodes", "location_counts")
    plain: dict[str, Any] = {name: getattr(layout, name) for name in fields}
    return {"layout": {**plain, "extra_views": list(layout.extra_views)}, "max_steps": game.max_steps}


@dataclass
class Cheapest:
    """The cheapest graph that several environments have seen; the first of equals.

    Attributes:
        time_ps: its cost.
        actions: the actions that lead to it from the start graph.
    """

    time_ps: int
    actions: list[Action] = field(default_factory=list)

    def note(self, time_ps: int, actions: Sequence[Action]) -> None:
        """Take a graph into account."""
        if time_ps < self.time_ps:
            self.time_ps, self.actions = time_ps, list(actions)


class Recorder(gym.Wrapper):
    """Scales rewards by a constant, remembers the episode's actions and the cheapest graph.

    Attributes:
        actions: those of the present episode: with them it is taken up again later, since nothing in it is random.
    """

    def __init__(self, env: gym.Env, cheapest: Cheapest, reward_scale: float) -> None:
        super().__init__(env)
        self.cheapest, self.reward_scale = cheapest, reward_scale
        self.actions: list[Action] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Arrays, dict[str, Any]]:
        """Start an episode."""
        self.actions = []
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Sequence[int]) -> tuple[Arrays, float, bool, bool, dict[str, Any]]:
        """Apply an action; at the end of an episode ``info["final_time_ps"]`` is the cost that it ended with."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.actions.append((int(action[0]), int(action[1])))
        time_ps = state_of(self).cost.time_ps
        self.cheapest.note(time_ps, self.actions)
        if terminated or truncated:
            info["final_time_ps"] = time_ps
        return observation, float(reward) * self.reward_scale, terminated, truncated, info


class RecordedVecEnv(DummyVecEnv):
    """A vector of recorders, one after the other in this process: a step is cheaper than sending it to another one.

    Attributes:
        cheapest: the cheapest graph that any of them has seen.
    """

    def __init__(self, model: str, count: int, reward_scale: float, arguments: Mapping[str, Any]) -> None:
        first = make_env(model, **arguments)
        first.reset()
        self.start_ps = state_of(first).cost.time_ps
        self.cheapest = cheapest = Cheapest(self.start_ps)

        def make() -> Recorder:
            return Recorder(make_env(model, **arguments), cheapest, reward_scale)

        super().__init__([make] * count)

    def histories(self) -> list[list[Action]]:
        """Return the actions of each environment's present episode."""
        return [env.actions for env in self.envs if isinstance(env, Recorder)]

    def replay(self, histories: Sequence[Sequence[Action]]) -> Arrays:
        """Start an episode in each environment and go on to where these actions lead; return the observations there."""
        return _stack([play(env, actions) for env, actions in zip(self.envs, histories, strict=True)])


def play(env: gym.Env, actions: Sequence[Action]) -> Arrays:
    """Start an episode and apply actions; return the last observation."""
    observation, _ = env.reset()
    for action in actions:
        observation, *_ = env.step(np.array(action))
    return observation


def _stack(observations: Sequence[Arrays]) -> Arrays:
    return {key: np.stack([o[key] for o in observations]) for key in observations[0]}
