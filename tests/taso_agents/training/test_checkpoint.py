"""Files of policies: nothing in them is executed, and a wrong one is refused with a reason."""

import pickle
from pathlib import Path

import gymnasium as gym
import pytest
import torch
from agent_batches import Batch

from taso_agents.policies.pointer import CandidatePolicy
from taso_agents.training import checkpoint
from taso_agents.training.training_env import make_env, state_of
from taso_gym.errors import CheckpointError

TASO = {"rules": "abc"}


@pytest.fixture
def policy(squeezenet: gym.Env) -> CandidatePolicy:
    torch.manual_seed(0)
    arguments = {"hidden": 16, "rounds": 2, "greed": 1.0}
    return checkpoint.build_policy("pointer", squeezenet.observation_space, squeezenet.action_space, arguments)


def test_a_loaded_policy_says_the_same(
    tmp_path: Path, policy: CandidatePolicy, squeezenet: gym.Env, batch: Batch
) -> None:
    checkpoint.save_policy(tmp_path / "p.pt", policy, TASO)
    spaces = squeezenet.observation_space, squeezenet.action_space
    loaded = checkpoint.load_policy(tmp_path / "p.pt", *spaces, "abc")
    assert torch.equal(loaded.get_distribution(batch).log_probs, policy.get_distribution(batch).log_probs)


def test_a_policy_serves_another_graph(tmp_path: Path, policy: CandidatePolicy) -> None:
    env = make_env("TasoGraph-ResNet18-v0", extra_views=("cost_changes",))
    observation, _ = env.reset()
    checkpoint.save_policy(tmp_path / "p.pt", policy, {"rules": state_of(env).rules.digest})
    spaces = env.observation_space, env.action_space
    loaded = checkpoint.load_policy(tmp_path / "p.pt", *spaces, state_of(env).rules.digest)
    action, _ = loaded.predict(observation)
    assert not env.step(action)[4]["invalid_action"]


def test_another_rule_set_is_refused(tmp_path: Path, policy: CandidatePolicy, squeezenet: gym.Env) -> None:
    checkpoint.save_policy(tmp_path / "p.pt", policy, TASO)
    with pytest.raises(CheckpointError, match=r"rule set def, found one for abc"):
        checkpoint.load_policy(tmp_path / "p.pt", squeezenet.observation_space, squeezenet.action_space, "def")


def test_another_observation_is_refused(tmp_path: Path, policy: CandidatePolicy, masks_env: gym.Env) -> None:
    checkpoint.save_policy(tmp_path / "p.pt", policy, TASO)
    with pytest.raises(CheckpointError, match="doesn't fit this version's observation"):
        checkpoint.load_policy(tmp_path / "p.pt", masks_env.observation_space, masks_env.action_space, "abc")


def test_another_kind_is_refused(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "r.pt", "run", {})
    with pytest.raises(CheckpointError, match=r"expected a policy .* found run"):
        checkpoint.load(tmp_path / "r.pt", "policy")


@pytest.mark.parametrize("content", [b"", b"not a policy", b"PK\x03\x04 half a zip"])
def test_a_damaged_file_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "p.pt").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"expected a policy of taso-agents in .*p.pt"):
        checkpoint.load(tmp_path / "p.pt", "policy")


def test_a_cut_off_file_is_one_clear_error(tmp_path: Path, policy: CandidatePolicy) -> None:
    checkpoint.save_policy(tmp_path / "p.pt", policy, TASO)
    whole = (tmp_path / "p.pt").read_bytes()
    (tmp_path / "p.pt").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointError, match="expected a policy"):
        checkpoint.load(tmp_path / "p.pt", "policy")


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="found no file"):
        checkpoint.load(tmp_path / "p.pt", "policy")


class Trap:
    """Unpickled, it writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("write", [torch.save, lambda o, p: p.write_bytes(pickle.dumps(o))], ids=["torch", "pickle"])
def test_nothing_in_a_file_is_executed(tmp_path: Path, write) -> None:
    write({"format": 1, "kind": "policy", "taso": Trap(tmp_path / "sprung")}, tmp_path / "p.pt")
    with pytest.raises(CheckpointError):
        checkpoint.load(tmp_path / "p.pt", "policy")
    assert not (tmp_path / "sprung").exists()
