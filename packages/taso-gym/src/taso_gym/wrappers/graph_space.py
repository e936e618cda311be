"""The graph alone, in Gymnasium's own space for graphs."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from taso_gym.wrappers.base import MaskedWrapper, dict_space


class ToGraphSpace(MaskedWrapper):
    """`spaces.Graph` of node features, edge features and edges (producer, consumer), without padding or candidates.

    For libraries that take it; Stable-Baselines3, RLlib and TorchRL don't. Masks are in ``info["action_mask"]``.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        """Wrap an environment with `TasoGraphEnv`'s observations and any actions."""
        super().__init__(env)
        space = dict_space(env, "nodes", "edge_features")
        self.observation_space = spaces.Graph(_row(space["nodes"]), _row(space["edge_features"]))

    def observation(self, observation: dict[str, NDArray[Any]]) -> spaces.GraphInstance:
        """Return the rows in use, numbered anew without gaps."""
        nodes, edges = observation["node_mask"] > 0, observation["edge_mask"] > 0
        number = np.cumsum(nodes) - 1
        return spaces.GraphInstance(
            nodes=observation["nodes"][nodes],
            edges=observation["edge_features"][edges],
            edge_links=number[observation["edges"][edges]].astype(np.int32),
        )


def _row(box: Any) -> spaces.Box:
    return spaces.Box(box.low[0], box.high[0], dtype=np.float32)
