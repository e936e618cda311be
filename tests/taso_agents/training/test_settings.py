"""Hyperparameters."""

import pytest

from taso_agents.policies import POLICIES, policy_named
from taso_agents.training.settings import PPOSettings
from taso_gym.errors import OptionError


def test_names_are_those_of_the_policies() -> None:
    assert list(POLICIES) == [policy_named(name).name for name in POLICIES]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"policy": "oracle"}, "pointer, autoregressive"),
        ({"steps": 0}, "at least 1"),
        ({"steps": "1000"}, "expected a whole number as steps, found '1000'"),
        ({"epochs": 1.5}, "expected a whole number as epochs, found 1.5"),
        ({"seed": None}, "expected a whole number as seed, found None"),
        ({"learning_rate": "1e-3"}, "expected a finite number as learning_rate, found '1e-3'"),
        ({"gamma": float("nan")}, "expected a finite number as gamma, found nan"),
        ({"seed": -1}, "expected a seed of 0 to 4294967295, found -1"),
        ({"seed": 2**32}, "expected a seed of 0 to 4294967295, found 4294967296"),
    ],
)
def test_what_can_t_be_meant_is_refused(wrong: dict, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        PPOSettings(**wrong)


@pytest.mark.parametrize(("steps", "played"), [(3, 8), (1000, 1000), (1001, 1008), (1025, 2048), (12_288, 12_288)])
def test_whole_updates_are_played(steps: int, played: int) -> None:
    assert PPOSettings(steps=steps).played_steps == played
