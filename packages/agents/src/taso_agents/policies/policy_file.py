"""Files of trained policies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gymnasium import spaces

from taso_agents import checkpoint
from taso_agents.policies import policy_named
from taso_agents.policies.pointer import CandidatePolicy
from taso_gym.errors import CheckpointError


def save_policy(path: str | Path, policy: CandidatePolicy, taso: Mapping[str, Any]) -> None:
    """Write a policy together with what it belongs to; ``taso["rules"]`` is its rule set's digest."""
    assert "rules" in taso
    checkpoint.save(path, "policy", taso, policy=policy.name, arguments=policy.arguments, weights=policy.state_dict())


def build_policy(
    name: str, observation_space: spaces.Dict, action_space: spaces.Space, arguments: Mapping[str, Any]
) -> CandidatePolicy:
    """Make a policy without an optimizer's schedule, to be loaded or only played."""
    return policy_named(name)(observation_space, action_space, lambda _progress: 0.0, **arguments)


def load_policy(
    path: str | Path, observation_space: spaces.Dict, action_space: spaces.Space, rules_digest: str
) -> CandidatePolicy:
    """Read a policy into a freshly built one for these spaces.

    The spaces may be those of another graph than it was trained on, but not of other rules: its outputs are theirs.

    Raises:
        CheckpointError: the file is no policy, or one for another rule set or observation.
    """
    data = checkpoint.load(path, "policy")
    digest = data["taso"].get("rules")
    if digest != rules_digest:
        raise CheckpointError(f"{path}: expected a policy for the rule set {rules_digest}, found one for {digest}")
    try:
        policy = build_policy(data["policy"], observation_space, action_space, data["arguments"])
        policy.load_state_dict(data["weights"])
    except (KeyError, TypeError, RuntimeError) as error:
        raise CheckpointError(f"{path}: the policy doesn't fit this version's observation: {error}") from error
    policy.set_training_mode(False)
    return policy
