from __future__ import annotations

import pytest

from taso_gym.atomic import replacing, write_text
from taso_gym.errors import OptionError


def test_a_failed_block_leaves_the_old_file(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def fail():
        with replacing(target) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_finished_block_replaces_the_file(tmp_path):
    target = tmp_path / "a.txt"
    write_text(target, "new")
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(OptionError, match=r"expected a folder to write a\.txt into, found none at"):
        write_text(tmp_path / "none" / "a.txt", "x")


def test_a_folder_of_that_name_is_named(tmp_path):
    with pytest.raises(OptionError, match="expected the name of a file to write, found the folder"):
        write_text(tmp_path, "x")
    assert list(tmp_path.iterdir()) == []


def test_files_written_beside_the_temporary_one_are_moved_too(tmp_path):
    target = tmp_path / "a.onnx"
    with replacing(target) as temporary:
        temporary.write_text("model")
        temporary.with_name("a.onnx.data").write_text("weights")
    assert sorted(f.name for f in tmp_path.iterdir()) == ["a.onnx", "a.onnx.data"]
