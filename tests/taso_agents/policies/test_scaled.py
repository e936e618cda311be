"""Scaled rewards."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from taso_agents.policies.scaled import ScaledRewards
from taso_gym.vector import to_sb3


def test_rewards_are_scaled_and_returns_are_not() -> None:
    mode = {"autoreset_mode": AutoresetMode.SAME_STEP}
    vector = gym.make_vec("TasoGraph-SqueezeNet1.1-v0", 2, "sync", vector_kwargs=mode, max_steps=3)
    venv = ScaledRewards(to_sb3(vector), 0.5)
    observation, total = venv.reset(), np.zeros(2)
    assert np.isnan(venv.mean_return())
    for _ in range(3):
        observation, rewards, done, _ = venv.step(observation["matches"][:, 0, :2])
        total += rewards
    assert done.all() and rewards.dtype == np.float32
    assert venv.mean_return() == pytest.approx(2 * total.mean(), rel=1e-5)
