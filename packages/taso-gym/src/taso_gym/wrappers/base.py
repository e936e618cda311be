"""What the wrappers share: they know the game below them and hand masks on."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from taso_gym.errors import OptionError

Step = tuple[Any, float, bool, bool, dict[str, Any]]


class MaskedWrapper(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A wrapper with `action_masks()`, which is also ``info["action_mask"]`` (int8), as Gymnasium's Taxi has it.

    It wraps `TasoGraphEnv`, or an environment with its spaces and its methods `legal_locations` and
    `candidate_action`.
    """

    def __init__(self, env: gym.Env[Any, Any], **arguments: Any) -> None:
        """Wrap an environment; ``arguments`` are those of the subclass's constructor, for its spec."""
        RecordConstructorArgs.__init__(self, **arguments)
        gym.Wrapper.__init__(self, env)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are legal, in the form that sb3-contrib takes."""
        return self.env.get_wrapper_attr("action_masks")()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self.observation(observation), self.masked(info)

    def step(self, action: Any) -> Step:
        """Make a move; never raises, whatever the action is."""
        observation, reward, terminated, truncated, info = self.env.step(self.action(action))
        return self.observation(observation), float(reward), terminated, truncated, self.masked(info)

    def action(self, action: Any) -> Any:
        """Return the action of the wrapped environment; an illegal one for what isn't an action."""
        return action

    def observation(self, observation: Any) -> Any:
        """Return what is seen in place of an observation of the wrapped environment."""
        return observation

    def masked(self, info: dict[str, Any]) -> dict[str, Any]:
        """Return the info with the mask."""
        return {**info, "action_mask": self.action_masks().astype(np.int8)}


def dict_space(env: gym.Env[Any, Any], *wanted: str) -> dict[str, Any]:
    """Return the spaces of a dictionary observation by key.

    Raises:
        OptionError: its observations are something else, or have no boxes with rows at the wanted keys.
    """
    space: Any = env.observation_space
    if not isinstance(space, gym.spaces.Dict):
        raise OptionError(f"expected an environment with dictionaries as observations, found {space}")
    boxes: dict[str, Any] = dict(space.spaces)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    for key in wanted:
        found = boxes.get(key)
        if not isinstance(found, gym.spaces.Box) or not found.shape:
            raise OptionError(f"expected observations with rows at {key!r}, found {found or sorted(boxes)}")
    return boxes


def pair_space(env: gym.Env[Any, Any]) -> tuple[int, int]:
    """Return N and L of an environment whose actions are (xfer, location).

    Raises:
        OptionError: its actions are something else.
    """
    space: Any = env.action_space
    if not isinstance(space, gym.spaces.MultiDiscrete) or space.shape != (2,):
        raise OptionError(f"expected an environment with actions (xfer, location), found {space}")
    xfers, locations = space.nvec.tolist()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return int(xfers) - 1, int(locations)
