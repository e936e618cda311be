"""Files of agents: nothing in them is executed, and a wrong one is refused with a reason."""

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from taso_agents import checkpoint
from taso_gym.errors import CheckpointError, OptionError


def test_another_kind_is_refused(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "r.pt", "run", {})
    with pytest.raises(CheckpointError, match=r"expected a policy .* found run"):
        checkpoint.load(tmp_path / "r.pt", "policy")


@pytest.mark.parametrize("content", [b"", b"not a policy", b"PK\x03\x04 half a zip"])
def test_a_damaged_file_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "p.pt").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"expected a policy of taso-agents in .*p.pt"):
        checkpoint.load(tmp_path / "p.pt", "policy")


def test_a_cut_off_file_is_one_clear_error(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "p.pt", "policy", {}, weights=torch.arange(1000))
    whole = (tmp_path / "p.pt").read_bytes()
    (tmp_path / "p.pt").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointError, match="expected a policy"):
        checkpoint.load(tmp_path / "p.pt", "policy")


@pytest.mark.parametrize("name", ["p.pt", "x" * 300])
def test_a_missing_file_is_one_clear_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(CheckpointError, match="found no file"):
        checkpoint.load(tmp_path / name, "policy")


@pytest.mark.parametrize("wrong", [None, 5, "a\0b.pt"])
def test_what_is_no_path_is_named(wrong: Any) -> None:
    with pytest.raises(OptionError, match="expected the path of a policy, found"):
        checkpoint.load(wrong, "policy")


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
