"""Observation and mask side by side, under the names that libraries look for."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from taso_gym.checks import check_bools, check_choices
from taso_gym.errors import OptionError
from taso_gym.wrappers.base import MaskedWrapper, dict_space


class Preset(NamedTuple):
    """Names and types of a library.

    Attributes:
        observation, mask: keys.
        dtype: of the mask.
        flat: the observation as one vector.
    """

    observation: str
    mask: str
    dtype: type[np.generic]
    flat: bool


PRESETS = {
    "rllib": Preset("observations", "action_mask", np.float32, flat=True),
    "pettingzoo": Preset("observation", "action_mask", np.int8, flat=False),
    "tianshou": Preset("obs", "mask", np.bool_, flat=True),
}
"""RLlib's ActionMaskingTorchRLModule; PettingZoo, OpenSpiel; Tianshou's DQN family (which negates the mask: bool)."""

REDUNDANT = frozenset({"xfer_mask", "location_masks", "location_counts", "match_mask"})
"""Keys that say what the mask says."""


class MaskInObs(MaskedWrapper):
    """Observation (without its own masks) and action mask under two keys, for an environment with Discrete actions.

    A flat observation is one float32 vector, each entry brought to 0 … 1 by the bounds of its space.
    """

    def __init__(self, env: gym.Env[Any, Any], preset: str = "pettingzoo", flat: bool | None = None) -> None:
        """Wrap an environment.

        Args:
            env: with a `Discrete` action space: put `FlattenAction`, `CandidateAction` or `TwoStage` below.
            preset: a row of `PRESETS`.
            flat: other than the preset says.

        Raises:
            OptionError: no such preset, another ``flat``, another action space, or observations within observations.
        """
        super().__init__(env, preset=preset, flat=flat)
        check_choices("preset", [preset], tuple(PRESETS))
        if flat is not None:
            check_bools(flat=flat)
        if not isinstance(env.action_space, spaces.Discrete):
            raise OptionError(
                f"expected a Discrete action space (wrap in FlattenAction, CandidateAction or TwoStage first), "
                f"found {env.action_space}"
            )
        self._preset = PRESETS[preset]._replace(**({} if flat is None else {"flat": flat}))
        self._boxes = {key: box for key, box in dict_space(env).items() if key not in REDUNDANT}
        if nested := [key for key, box in self._boxes.items() if not isinstance(box, spaces.Box)]:
            raise OptionError(f"expected observations of boxes (no MaskInObs below), found another at {nested[0]!r}")
        size = sum(box.low.size for box in self._boxes.values())
        inner: Any = spaces.Box(0.0, 1.0, (size,), np.float32) if self._preset.flat else spaces.Dict(self._boxes)
        mask: Any = spaces.Box(0, 1, (int(env.action_space.n),), self._preset.dtype)  # pyright: ignore[reportArgumentType, reportCallIssue]
        self.observation_space = spaces.Dict({self._preset.observation: inner, self._preset.mask: mask})

    def observation(self, observation: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Return observation and mask."""
        kept = {key: observation[key] for key in self._boxes}
        inner = self._flatten(kept) if self._preset.flat else kept
        return {self._preset.observation: inner, self._preset.mask: self.action_masks().astype(self._preset.dtype)}

    def _flatten(self, observation: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
        parts = [_scale(observation[key], box) for key, box in self._boxes.items()]
        return np.concatenate(parts)


def _scale(values: NDArray[Any], box: spaces.Box) -> NDArray[np.float32]:
    """Bring values to 0 … 1 by their bounds."""
    low = box.low.astype(np.float32)
    span = np.maximum(box.high.astype(np.float32) - low, 1)
    return ((values - low) / span).astype(np.float32).reshape(-1)
