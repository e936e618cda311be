"""Scaled rewards for Stable-Baselines3, and the returns as they were."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper


class ScaledRewards(VecEnvWrapper):
    """Multiplies rewards by a fixed factor and remembers the returns of the last hundred episodes without it.

    Args:
        venv: the environments.
        factor: of the rewards.
    """

    def __init__(self, venv: VecEnv, factor: float) -> None:
        super().__init__(venv)
        self.factor = factor
        self._returns = np.zeros(venv.num_envs)
        self._ended: deque[float] = deque(maxlen=100)

    def reset(self) -> Any:
        """Begin all episodes."""
        self._returns[:] = 0.0
        return self.venv.reset()

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Take the step."""
        observation, rewards, done, infos = self.venv.step_wait()
        self._returns += rewards
        self._ended += self._returns[done].tolist()
        self._returns[done] = 0.0
        return observation, rewards * np.float32(self.factor), done, infos

    def mean_return(self) -> float:
        """Return the mean return of the last hundred episodes; nan if none has ended."""
        return float(np.mean(self._ended)) if self._ended else float("nan")
