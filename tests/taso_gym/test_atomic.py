from __future__ import annotations

import errno
import os

import pytest

from taso_gym.atomic import check_target, replacing, write_text
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


def test_what_is_no_path_is_named(tmp_path):
    with pytest.raises(OptionError, match=r"expected the path of a file to write, found '.*a\\x00b'"):
        write_text(tmp_path / "a\0b", "new")
    for path in (5, None, b"a"):
        with pytest.raises(OptionError, match=f"expected the path of a file to write, found {path!r}"):
            write_text(path, "new")


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


def test_files_in_folders_go_beside_what_is_there(tmp_path):
    target, other = tmp_path / "a.onnx", tmp_path / "weights" / "other.bin"
    other.parent.mkdir()
    other.write_text("kept")
    with replacing(target) as temporary:
        temporary.write_text("model")
        for name in ("weights/a.bin", "more/a.onnx"):
            (temporary.parent / name).parent.mkdir()
            (temporary.parent / name).write_text("data")
    found = sorted(f.relative_to(tmp_path).as_posix() for f in tmp_path.rglob("*") if f.is_file())
    assert found == ["a.onnx", "more/a.onnx", "weights/a.bin", "weights/other.bin"]
    assert other.read_text() == "kept"


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path):
    target = tmp_path / "a.onnx"
    (tmp_path / "a.onnx.data").mkdir()

    def write():
        with replacing(target) as temporary:
            temporary.write_text("model")
            temporary.with_name("a.onnx.data").write_text("weights")

    with pytest.raises(OptionError, match=r"expected to write .*a\.onnx\.data, found: "):
        write()
    assert not target.exists()


def test_a_folder_that_cannot_be_written_is_found_before_the_work(tmp_path, monkeypatch):
    def refuses(path, mode):  # tests may run as root, whom nothing is refused
        return not (path == tmp_path and mode & os.W_OK)

    monkeypatch.setattr(os, "access", refuses)
    with pytest.raises(OptionError, match="expected a folder that can be written, found"):
        check_target(tmp_path / "a.txt")


def test_a_full_disk_is_said_in_a_line_and_leaves_the_old_file(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def fill(number):
        with replacing(target):
            raise OSError(number, os.strerror(number))

    with pytest.raises(OptionError, match=r"expected room for a\.txt in .*, found: No space left on device"):
        fill(errno.ENOSPC)
    with pytest.raises(FileNotFoundError):
        fill(errno.ENOENT)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
