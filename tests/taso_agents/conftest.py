"""Environments and observations that several tests look at."""

import gymnasium as gym
import pytest
from agent_batches import Batch, walk

from taso_agents.environment.real_env import make_env


@pytest.fixture(scope="session")
def squeezenet() -> gym.Env:
    """SqueezeNet with counts and cost changes shown."""
    return make_env("TasoGraph-SqueezeNet1.1-v0", extra_views=("cost_changes",))


@pytest.fixture(scope="session")
def batch(squeezenet: gym.Env) -> Batch:
    """Eight states of SqueezeNet."""
    return walk(squeezenet, 7)


@pytest.fixture(scope="session")
def masks_env() -> gym.Env:
    """SqueezeNet as registered, with location masks."""
    return make_env("TasoGraph-SqueezeNet1.1-v0", location_counts=False)
