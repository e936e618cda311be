"""Files of trained policies and of training runs to go on with: tensors and plain data, nothing that is executed."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from gymnasium import spaces

from taso_agents.policies.pointer import POLICIES, CandidatePolicy
from taso_gym.atomic import replacing
from taso_gym.errors import CheckpointError

FORMAT = 1


def save(path: str | Path, kind: str, taso: Mapping[str, Any], **parts: Any) -> None:
    """Write a file, whole or not at all.

    Args:
        path: where.
        kind: "policy", "world model" or "run"; `load` asks for it again.
        taso: what it belongs to, as text, numbers, lists and dicts: rule set's digest, environment, settings.
        parts: state dicts and other containers of tensors, numbers and text.
    """
    with replacing(path) as temporary:
        torch.save({"format": FORMAT, "kind": kind, "taso": dict(taso), **parts}, temporary)


def load(path: str | Path, kind: str) -> dict[str, Any]:
    """Read what `save` wrote; ``weights_only`` keeps torch from building anything but tensors and plain data.

    Raises:
        CheckpointError: the file is missing, damaged, of another kind, or holds anything else.
    """
    if not Path(path).is_file():
        raise CheckpointError(f"expected a {kind} of taso-agents in {path}, found no file")
    if not zipfile.is_zipfile(path):
        raise CheckpointError(f"expected a {kind} of taso-agents in {path}, found something else, or part of one")
    try:
        data = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise CheckpointError(f"expected a {kind} of taso-agents in {path}, found objects of other kinds") from error
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise CheckpointError(f"expected a {kind} of taso-agents in {path}: {reason}") from error
    if not isinstance(data, dict) or data.get("kind") != kind:
        found = data.get("kind", "something else") if isinstance(data, dict) else type(data).__name__
        raise CheckpointError(f"expected a {kind} of taso-agents in {path}, found {found}")
    if data.get("format") != FORMAT:
        raise CheckpointError(f"expected format {FORMAT} in {path}, found {data.get('format')}: another version's file")
    return data


def load_run(path: str | Path, kind: str, taso: Mapping[str, Any]) -> dict[str, Any]:
    """Read the file of a run to go on with, which must belong to the same as this one.

    Raises:
        CheckpointError: the file is damaged, or of another run.
    """
    data = load(path, kind)
    for key, expected in taso.items():
        if data["taso"].get(key) != expected:
            found = data["taso"].get(key)
            raise CheckpointError(f"{path}: expected a run with {key} {expected!r}, found one with {found!r}")
    return data


def save_policy(path: str | Path, policy: CandidatePolicy, taso: Mapping[str, Any]) -> None:
    """Write a policy together with what it belongs to; ``taso["rules"]`` is its rule set's digest."""
    assert "rules" in taso
    save(path, "policy", taso, policy=policy.name, arguments=policy.arguments, weights=policy.state_dict())


def build_policy(
    name: str, observation_space: spaces.Dict, action_space: spaces.Space, arguments: Mapping[str, Any]
) -> CandidatePolicy:
    """Make a policy without an optimizer's schedule, to be loaded or only played."""
    return POLICIES[name](observation_space, action_space, lambda _progress: 0.0, **arguments)


def load_policy(
    path: str | Path, observation_space: spaces.Dict, action_space: spaces.Space, rules_digest: str
) -> CandidatePolicy:
    """Read a policy into a freshly built one for these spaces.

    The spaces may be those of another graph than it was trained on, but not of other rules: its outputs are theirs.

    Raises:
        CheckpointError: the file is no policy, or one for another rule set or observation.
    """
    data = load(path, "policy")
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
