import os
from pathlib import Path

import pytest

from taso_gym.errors import OptionError
from taso_gym.rules.notation import parse_rules
from taso_substitutions import __version__
from taso_substitutions.generation.store import check_writable, named_lines
from taso_substitutions.generation.work import WorkFolder

FORWARD = "rule: MatMul(MatMul(x0, x1), x2) => MatMul(x0, MatMul(x1, x2))"
BACK = "rule-back: MatMul(x0, MatMul(x1, x2)) => MatMul(MatMul(x0, x1), x2)"

FILES = ("full.rules", "basis.rules", "exceptions.txt", "full.certificates.jsonl", "basis.certificates.jsonl")


def test_what_holds_both_ways_is_one_line() -> None:
    (line,) = named_lines([[FORWARD, BACK]])
    assert " <=> " in line
    assert len(parse_rules(line)) == 2


def test_directions_with_other_conditions_are_two_lines() -> None:
    assert len(named_lines([[FORWARD, f"{BACK} if rank(x0) == 2"]])) == 2


def test_variables_may_have_other_names_in_the_other_direction() -> None:
    forward = "a: MatMul(Transpose(x, perm=[1, 0]), y) => Add(y, x) if rank(x) == 2 and rank(y) == 1"
    back = "b: Add(s, t) => MatMul(Transpose(t, perm=[1, 0]), s) if rank(s) == 1 and rank(t) == 2"
    swapped = "b: Add(s, t) => MatMul(Transpose(t, perm=[1, 0]), s) if rank(s) == 2 and rank(t) == 1"
    assert len(named_lines([[forward, back]])) == 1
    assert len(named_lines([[forward, swapped]])) == 2


def test_a_name_follows_from_what_a_rule_says() -> None:
    assert named_lines([[FORWARD]]) == named_lines([["other: " + FORWARD.partition(": ")[2]]])


def test_a_name_too_long_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"expected a folder to write into, found .*: File name too long"):
        check_writable(tmp_path / ("x" * 300), force=False)


def test_folders_that_refuse_are_found_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)  # tests may run as root
    with pytest.raises(OptionError, match="expected a folder that can be written, found"):
        check_writable(tmp_path, force=False)
    with pytest.raises(OptionError, match="expected a folder to work in that can be read and written, found"):
        WorkFolder(tmp_path, resume=True)


@pytest.mark.parametrize("name", FILES)
def test_no_file_of_a_generation_is_replaced_unless_it_is_to_be(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine\n")
    for resumed in ("", "taso-gen-subst --ops 2"):
        with pytest.raises(OptionError, match=rf"expected no file at .*{name}, found one.*: --force replaces it"):
            check_writable(tmp_path, force=False, resumed=resumed)
    check_writable(tmp_path, force=True)


def test_a_resumed_run_replaces_what_stands_beside_its_own_rules(tmp_path: Path) -> None:
    command = "taso-gen-subst --ops 2"
    for name in FILES:
        (tmp_path / name).write_text(f"# Rules, written by taso-substitutions {__version__}: {command}\n")
    check_writable(tmp_path, force=False, resumed=command)
    (tmp_path / "full.rules").write_text("mine\n")
    with pytest.raises(OptionError, match="found one of other options"):
        check_writable(tmp_path, force=False, resumed=command)


@pytest.mark.parametrize("name", FILES)
def test_a_folder_of_a_files_name_is_found_before_the_work(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(OptionError, match=f"expected the name of a file to write, found the folder .*{name}"):
        check_writable(tmp_path, force=True)
