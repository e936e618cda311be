"""The two-part action as one number: of all pairs, or of the candidates in the observation."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from taso_gym.env.actions import ILLEGAL, read_index
from taso_gym.wrappers.base import MaskedWrapper, dict_space, pair_space


class FlattenAction(MaskedWrapper):
    """`Discrete(N·L + 1)`: action xfer·L + location; the last is NO-OP. Its mask is exact.

    Simple and large: with 200 rules 40 001 actions, of which some dozen are legal; `CandidateAction` says the same
    in `max_matches` + 1.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        """Wrap an environment whose actions are (xfer, location)."""
        super().__init__(env)
        self._xfers, self._locations = pair_space(env)
        self.action_space = spaces.Discrete(self._xfers * self._locations + 1)

    def action(self, action: Any) -> NDArray[np.int64]:
        """Return (xfer, location)."""
        number, last = read_index(action), self._xfers * self._locations
        if number == last:
            return np.array((self._xfers, 0))
        return np.array(divmod(number, self._locations) if 0 <= number < last else ILLEGAL)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are legal, (N·L + 1,)."""
        counts = self.get_wrapper_attr("legal_locations")()[:-1]
        legal = np.arange(self._locations) < counts[:, None]
        return np.append(legal.reshape(-1), True)


class CandidateAction(MaskedWrapper):
    """`Discrete(max_matches + 1)`: the number of a row of ``matches``; the last is NO-OP. For pointer policies."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        """Wrap an environment whose actions are (xfer, location)."""
        super().__init__(env)
        self._xfers, _ = pair_space(env)
        self._candidates = int(dict_space(env, "match_mask")["match_mask"].shape[0])
        self.action_space = spaces.Discrete(self._candidates + 1)

    def action(self, action: Any) -> NDArray[np.int64]:
        """Return (xfer, location)."""
        number = read_index(action)
        if number == self._candidates:
            return np.array((self._xfers, 0))
        if not 0 <= number < self._total():
            return np.array(ILLEGAL)
        return np.array(self.get_wrapper_attr("candidate_action")(number))

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are legal, (max_matches + 1,)."""
        legal = np.arange(self._candidates + 1) < self._total()
        legal[-1] = True
        return legal

    def _total(self) -> int:
        return int(self.get_wrapper_attr("legal_locations")()[:-1].sum())
