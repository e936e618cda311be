from __future__ import annotations

import errno
import os
import pathlib

import pytest

from taso_gym.atomic import check_target, check_targets, replacing, write_text
from taso_gym.errors import OptionError, WriteError


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


def test_names_that_cannot_be_written_are_found_before_the_work(tmp_path):
    write_text(tmp_path / ("x" * 255), "new")
    with pytest.raises(OptionError, match="expected the name of a file to write of at most 255 bytes, found xxx"):
        check_target(tmp_path / ("x" * 256))
    with pytest.raises(OptionError, match=r"expected the path of a file to write in UTF-8, found '.*\\udcff'"):
        check_target(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))


def test_a_folder_of_that_name_is_named(tmp_path):
    with pytest.raises(OptionError, match="expected the name of a file to write, found the folder"):
        write_text(tmp_path, "x")
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OptionError, match=r"expected the name of a file to write, found the device or pipe .*pipe"):
        check_target(tmp_path / "pipe")


def test_a_folder_that_nobody_may_ask_about_is_none(tmp_path):
    with pytest.raises(OptionError, match="expected a folder to write a into, found none at"):
        check_target(tmp_path / ("x" * 300) / "a")


def test_files_replace_neither_each_other_nor_what_is_read(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    (tmp_path / "link").symlink_to(first)
    check_targets(first, None, second, kept={tmp_path / "c": "is the model"})
    with pytest.raises(OptionError, match=r"expected another file to write than .*link, which is to be written"):
        check_targets(first, tmp_path / "link")
    with pytest.raises(OptionError, match=r"expected another file to write than .*b, which is the model"):
        check_targets(first, second, kept={second: "is the model"})


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

    with pytest.raises(WriteError, match=r"expected to write .*a\.onnx\.data, found: "):
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

    with pytest.raises(WriteError, match=r"expected room for a\.txt in .*, found: No space left on device"):
        fill(errno.ENOSPC)
    with pytest.raises(FileNotFoundError):
        fill(errno.ENOENT)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


OLD = {"a.onnx": "old model", "a.onnx.data": "old weights", "below/b.data": "old weights"}
NEW = {"a.onnx": "model", "a.onnx.data": "weights", "below/b.data": "weights", "new.data": "weights"}


def write_files(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def files_in(folder):
    return {f.relative_to(folder).as_posix(): f.read_text() for f in folder.rglob("*") if f.is_file()}


def expect_consistent(folder):
    found = files_in(folder)
    if model := found.get("a.onnx"):
        assert {found.get(name) for name in OLD if name != "a.onnx"} == {model.replace("model", "weights")}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EACCES, "no")])
@pytest.mark.parametrize("last", range(7))
def test_all_old_files_come_back_if_the_moves_end_early(tmp_path, monkeypatch, last, error):
    """At no time is the old target beside new files, or the new one beside old files."""
    write_files(tmp_path, OLD)
    move, moves = pathlib.Path.replace, []

    def replace(file, place):
        moves.append(place)
        if len(moves) - 1 != last or isinstance(error, KeyboardInterrupt):
            move(file, place)
        expect_consistent(tmp_path)
        if len(moves) - 1 == last:
            raise error

    def write():
        with replacing(tmp_path / "a.onnx") as temporary:
            write_files(temporary.parent, NEW)

    monkeypatch.setattr(pathlib.Path, "replace", replace)
    with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else OptionError):
        write()
    assert files_in(tmp_path) == OLD
    assert sorted(f.name for f in tmp_path.iterdir()) == ["a.onnx", "a.onnx.data", "below"]


def test_files_that_the_target_refers_to_are_replaced_with_it(tmp_path):
    write_files(tmp_path, OLD)
    with replacing(tmp_path / "a.onnx") as temporary:
        write_files(temporary.parent, NEW)
    assert files_in(tmp_path) == NEW
    assert sorted(f.name for f in tmp_path.iterdir()) == ["a.onnx", "a.onnx.data", "below", "new.data"]
