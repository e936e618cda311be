"""Environments by id or from an ONNX file, and what agents ask of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import taso_gym
from taso_gym.errors import OptionError
from taso_gym.rules.state import RewriteState

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


def play(env: gym.Env, actions: Sequence[Action]) -> Arrays:
    """Start an episode and apply actions; return the last observation."""
    observation, _ = env.reset()
    for action in actions:
        observation, *_ = env.step(np.array(action))
    return observation
