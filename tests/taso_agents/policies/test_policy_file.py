"""Files of policies: what is read says the same as what was written, and another's is refused."""

from pathlib import Path

import gymnasium as gym
import pytest
import torch
from agent_batches import Batch

from taso_agents.environment.real_env import make_env, state_of
from taso_agents.policies.pointer import CandidatePolicy
from taso_agents.policies.policy_file import build_policy, load_policy, save_policy
from taso_gym.errors import CheckpointError

TASO = {"rules": "abc"}


@pytest.fixture
def policy(squeezenet: gym.Env) -> CandidatePolicy:
    torch.manual_seed(0)
    arguments = {"hidden": 16, "rounds": 2, "greed": 1.0}
    return build_policy("pointer", squeezenet.observation_space, squeezenet.action_space, arguments)


def test_a_loaded_policy_says_the_same(
    tmp_path: Path, policy: CandidatePolicy, squeezenet: gym.Env, batch: Batch
) -> None:
    save_policy(tmp_path / "p.pt", policy, TASO)
    spaces = squeezenet.observation_space, squeezenet.action_space
    loaded = load_policy(tmp_path / "p.pt", *spaces, "abc")
    assert torch.equal(loaded.get_distribution(batch).log_probs, policy.get_distribution(batch).log_probs)


def test_a_policy_serves_another_graph(tmp_path: Path, policy: CandidatePolicy) -> None:
    env = make_env("TasoGraph-ResNet18-v0", extra_views=("cost_changes",))
    observation, _ = env.reset()
    save_policy(tmp_path / "p.pt", policy, {"rules": state_of(env).rules.digest})
    spaces = env.observation_space, env.action_space
    loaded = load_policy(tmp_path / "p.pt", *spaces, state_of(env).rules.digest)
    action, _ = loaded.predict(observation)
    assert not env.step(action)[4]["invalid_action"]


def test_another_rule_set_is_refused(tmp_path: Path, policy: CandidatePolicy, squeezenet: gym.Env) -> None:
    save_policy(tmp_path / "p.pt", policy, TASO)
    with pytest.raises(CheckpointError, match=r"rule set def, found one for abc"):
        load_policy(tmp_path / "p.pt", squeezenet.observation_space, squeezenet.action_space, "def")


def test_another_observation_is_refused(tmp_path: Path, policy: CandidatePolicy, masks_env: gym.Env) -> None:
    save_policy(tmp_path / "p.pt", policy, TASO)
    with pytest.raises(CheckpointError, match="doesn't fit this version's observation"):
        load_policy(tmp_path / "p.pt", masks_env.observation_space, masks_env.action_space, "abc")
