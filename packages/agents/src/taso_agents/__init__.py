"""Reinforcement-learning agents for taso_gym.

Importing the package registers the dreams: ``gymnasium.make("TasoDream-v0", world_model=PATH)``, and one id for each
network (``TasoDream-BERT-v0``) that takes only a world model of it. Nothing heavy is imported before it is used.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from taso_gym.models import NETWORKS
from taso_gym.registration import env_id


def _register_dreams() -> None:
    registry: Any = gym
    ids: dict[str, dict[str, Any]] = {f"TasoDream-{name}-v0": {"network": env_id(name)} for name in NETWORKS}
    for name, arguments in {**ids, "TasoDream-v0": {}}.items():
        if name not in gym.registry:
            registry.register(
                name,
                "taso_agents.dreams.env:load_dream",
                vector_entry_point="taso_agents.dreams.env:load_dreams",
                kwargs=arguments,
            )


_register_dreams()
