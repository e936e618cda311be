"""Environments by id or from an ONNX file, and what agents ask of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

import taso_gym
from taso_gym.checks import check_kind
from taso_gym.env.source import names_file
from taso_gym.errors import CheckpointError, OptionError
from taso_gym.graph import producer_of
from taso_gym.observation import Layout
from taso_gym.rules.state import RewriteState

gym.register_envs(taso_gym)

Action = tuple[int, int]
"""(substitution, location)."""

Arrays = dict[str, NDArray[Any]]


def make_env(model: str, **arguments: Any) -> gym.Env:
    """Make an environment from a registered id or the path of an ONNX file.

    ``location_counts`` is on unless it is given: counts say the same as masks and keep rollouts small.

    Raises:
        OptionError: it is neither, or the id of an environment of something else.
    """
    check_kind("model", model, (str, Path), "an id or the path of an ONNX file")
    arguments = {"location_counts": True, **arguments}
    if model in gym.registry:
        try:
            return gym.make(model, **arguments)
        except TypeError as error:
            taken = ", ".join(arguments)
            raise OptionError(f"expected an environment that takes {taken}, found {model!r}: {error}") from error
    if names_file(model):
        return gym.make("TasoGraph-v0", model=model, **arguments)
    known = ", ".join(sorted(i for i in gym.registry if i.startswith("TasoGraph") and i != "TasoGraph-v0"))
    raise OptionError(f"expected an ONNX file or one of {known}, found {model!r}")


def expect_one_network(env: gym.Env, model: str) -> gym.Env:
    """Return an environment whose episodes all begin with the same graph.

    Raises:
        OptionError: it draws one of several.
    """
    game: Any = env.unwrapped
    if len(game.starts) != 1:
        raise OptionError(f"expected an environment of one network, found {len(game.starts)} in {model}")
    return env


def state_of(env: gym.Env) -> RewriteState:
    """Return the graph that an environment is at, with its matches and cost."""
    return env.unwrapped.state  # pyright: ignore[reportAttributeAccessIssue]


def sizes_of(env: gym.Env) -> dict[str, Any]:
    """Return the sizes that observations are laid out with, but for those that follow the graph's, as plain data."""
    game: Any = env.unwrapped
    layout = game.layout
    fields = ("xfers", "locations", "matches", "pattern_nodes", "location_counts")
    plain: dict[str, Any] = {name: getattr(layout, name) for name in fields}
    return {"layout": {**plain, "extra_views": list(layout.extra_views)}, "max_steps": game.max_steps}


def layout_of(sizes: Mapping[str, Any], nodes: int = 1, edges: int = 1) -> Layout:
    """Return the layout of such sizes for graphs of so many nodes and edges; networks don't depend on these."""
    return Layout(**sizes["layout"], max_nodes=max(nodes, 1), max_edges=max(edges, 1))


def spaces_of(layout: Layout) -> tuple[spaces.Dict, spaces.MultiDiscrete]:
    """Return the observation space and the action space that belong to a layout."""
    return layout.space(), spaces.MultiDiscrete([layout.xfers + 1, layout.locations])


def with_ids(env: gym.Env, observation: Arrays) -> Arrays:
    """Return an environment's present observation with ``ids`` (N,): of each row's node, -1 where there is none.

    Locations are numbered in the order of these, which rows don't show: a new node takes the first free row.
    """
    game: Any = env.unwrapped
    observer, graph = game.episode.observer, game.state.graph
    ids = np.full(len(observation["node_mask"]) + 1, -1, np.int32)
    nodes = [*map(producer_of, graph.info.inputs), *graph.nodes]
    ids[[observer.row_of(x) for x in nodes]] = nodes  # the last entry is for constants, which have no row
    return {**observation, "ids": ids[:-1]}


def play(env: gym.Env, actions: Sequence[Action]) -> Arrays:
    """Start an episode and apply actions; return the last observation."""
    observation, _ = env.reset()
    for action in actions:
        observation, *_ = env.step(np.array(action))
    return observation


def expect_graph_of(taso: dict[str, Any], env: gym.Env, path: str | Path) -> None:
    """Make sure that an environment has the graph and the rules that a file is of, as `describe` said.

    Raises:
        CheckpointError: it has others.
    """
    state = state_of(env)
    found = {"graph": state.graph.canonical_digest(), "rules": state.rules.digest}
    if other := [name for name, digest in found.items() if taso[name] != digest]:
        raise CheckpointError(f"expected {' and '.join(other)} of {taso['model']} as {path} was made of, found others")


def describe(model: str | Path, env: gym.Env, settings: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Say what a policy, run or world model belongs to, as plain data."""
    state = state_of(env)
    return {
        "model": str(model),
        "graph": state.graph.canonical_digest(),
        "rules": state.rules.digest,
        "cost": state.cost_model.key if state.cost_model else "",
        "arguments": plain(arguments),
        "sizes": sizes_of(env),
        "settings": settings,
        "torch": version("torch"),
    }


def opened(model: str, settings: dict[str, Any], arguments: dict[str, Any]) -> tuple[gym.Env, dict[str, Any]]:
    """Make an environment of one network at the start of an episode; return it and what a run in it belongs to.

    Raises:
        OptionError: it is of several, or nothing can be substituted in it.
    """
    env = expect_one_network(make_env(model, **arguments), model)
    env.reset()
    if not any(state_of(env).matches):
        raise OptionError(
            f"expected a network with something to substitute, found none of the rules to apply to {model}"
        )
    return env, describe(model, env, settings, arguments)


def plain(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return an environment's arguments as what a file may hold.

    Raises:
        OptionError: one is neither text, number nor a list of them, so that a file couldn't say what it was.
    """
    for name, value in arguments.items():
        parts = value if isinstance(value, list | tuple) else [value]
        if not all(part is None or isinstance(part, str | int | float | bool) for part in parts):
            raise OptionError(f"expected text or numbers for {name}, found {value!r}")
    return {name: list(value) if isinstance(value, tuple) else value for name, value in sorted(arguments.items())}
