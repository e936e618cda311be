"""A rewrite in two moves: first the rule, then the place."""

from __future__ import annotations

from copy import copy
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from taso_gym.env.actions import ILLEGAL, read_index
from taso_gym.env.game import GraphGame
from taso_gym.wrappers.base import MaskedWrapper, Step, dict_space, pair_space

NOTHING_DONE = {"xfer": np.int64(-1), "location": np.int64(-1), "invalid_action": False}
"""What an environment says of a move that is none: a choice of a rule is half of one."""


class TwoStage(MaskedWrapper):
    """`Discrete(max(N + 1, L))`: a rule, then one of its locations; exact masks and small heads for any library.

    ``pending_xfer`` (N + 1,) is added to the observation: all 0 while a rule is to be chosen, then 1 at that rule. The
    first move earns 0, so a discount of γ for a pair is √γ here. NO-OP, and a rule that is illegal, are one move.
    `set_state` of the environment below leads to a first move: a rule that was chosen before it is forgotten.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        """Wrap an environment whose actions are (xfer, location)."""
        super().__init__(env)
        self._xfers, self._locations = pair_space(env)
        pending = spaces.Box(0, 1, (self._xfers + 1,), np.int8)
        self.observation_space = spaces.Dict({**dict_space(env), "pending_xfer": pending})
        self._width = max(self._xfers + 1, self._locations)
        self.action_space = spaces.Discrete(self._width)
        self._pending: int | None = None
        self._last: tuple[dict[str, Any], dict[str, Any]] = {}, {}
        self._game: object = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, with no rule chosen."""
        self._pending = None
        self._last = self.env.reset(seed=seed, options=options)
        self._game = _game(self.env)
        return self.observation(self._last[0]), self.masked(self._last[1])

    def step(self, action: Any) -> Step:
        """Choose a rule, or apply the chosen one at a location."""
        number = read_index(action)
        self._follow()
        if self._pending is None and 0 <= number < self._xfers and self._counts()[number]:
            self._pending = number
            observation, info = self._last
            info = {key: NOTHING_DONE.get(key, value) for key, value in info.items()}
            return self.observation(observation), 0.0, False, False, self.masked(info)
        pair = (number, 0) if self._pending is None else (self._pending, number)
        if number < 0:
            pair = ILLEGAL
        self._pending = None
        observation, reward, terminated, truncated, info = self.env.step(np.array(pair))
        self._last = observation, info
        return self.observation(observation), float(reward), terminated, truncated, self.masked(info)

    def observation(self, observation: dict[str, Any]) -> dict[str, Any]:
        """Return the observation as fresh arrays, with the chosen rule."""
        pending = np.zeros(self._xfers + 1, np.int8)
        if self._pending is not None:
            pending[self._pending] = 1
        return {**{key: value.copy() for key, value in observation.items()}, "pending_xfer": pending}

    def masked(self, info: dict[str, Any]) -> dict[str, Any]:
        """Return the info as fresh values, with the mask of this move."""
        return super().masked({key: copy(value) for key, value in info.items()})

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which rules, or which locations of the chosen rule, are legal."""
        self._follow()
        counts = self._counts()
        mask = np.zeros(self._width, np.bool_)
        if self._pending is None:
            mask[: self._xfers + 1] = counts > 0
        else:
            mask[: counts[self._pending]] = True
        return mask

    def _follow(self) -> None:
        """Forget the chosen rule and what was seen last if the environment below was set to another game since."""
        game = _game(self.env)
        if game is not self._game:
            self._game, self._pending, self._last = game, None, (_seen(self.env), game.info())

    def _counts(self) -> NDArray[np.int64]:
        return self.get_wrapper_attr("legal_locations")()


def _game(env: gym.Env[Any, Any]) -> Any:
    """Return the game in progress, of which `set_state` makes another; None where there is no `GraphGame` below."""
    inner = env.unwrapped
    return inner.episode if isinstance(inner, GraphGame) else None


def _seen(env: Any) -> Any:
    """Return the present observation as the wrappers of observations show it."""
    if isinstance(env, GraphGame):
        return env.observe()
    below = _seen(env.env)
    return cast(Any, env).observation(below) if isinstance(env, gym.ObservationWrapper) else below
