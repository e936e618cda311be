"""What acts: networks over the candidates of a graph, or over what a world model knows of it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

POLICIES = {
    "pointer": "taso_agents.policies.pointer:PointerPolicy",
    "autoregressive": "taso_agents.policies.pointer:AutoregressivePolicy",
}
"""Name -> import string of a policy that `taso_agents.training.ppo` trains; its class has the same ``name``."""


def policy_named(name: str) -> Any:
    """Return the class of a policy of `POLICIES`."""
    module, _, attribute = POLICIES[name].partition(":")
    return getattr(import_module(module), attribute)
