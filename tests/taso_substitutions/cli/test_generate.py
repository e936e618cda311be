import shutil
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
from rule_discovery import SMALL, run

from taso_gym.rules.ruleset import RuleSet

FILES = ("full.rules", "basis.rules", "exceptions.txt")
THREE = ["--ops", 2, "--fragments", "scalar,matrix,linear", "--operators", "MatMul,Relu,Sigmoid", "--jobs", 1]
"""Three fragments, for as many shards."""


def contents(folder: Path) -> list[bytes]:
    certificates = sorted(folder.glob("*.certificates.jsonl"))
    return [path.read_bytes() for path in (*(folder / name for name in FILES), *certificates)]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("three") / "rules"
    assert run("generate", *THREE, "-o", folder) == 0
    return folder


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated") / "rules"
    assert run("generate", *SMALL, "-o", folder) == 0
    return folder


def test_files_are_rule_sets(generated: Path) -> None:
    full, basis = (RuleSet.load(generated / f"{name}.rules") for name in ("full", "basis"))
    assert len(full) >= len(basis) > 0


def test_a_header_says_how_it_was_made(generated: Path) -> None:
    text = (generated / "basis.rules").read_text()
    for word in ("--ops 2", "--fragments scalar", "MatMul", "Completeness"):
        assert word in text


def test_lists_with_breaks_of_lines_are_one_line_of_the_header(tmp_path: Path) -> None:
    lists = ["--fragments", "scalar,\nmatrix", "--operators", "Relu,\n Transpose,Relu"]
    assert run("generate", "--ops", 1, *lists, "--no-certificates", "--jobs", 1, "-o", tmp_path) == 0
    first = (tmp_path / "basis.rules").read_text().splitlines()[0]
    assert first.endswith(" --ops 1 --fragments scalar,matrix --operators Relu,Transpose")
    RuleSet.load(tmp_path / "basis.rules")


def test_memory_is_estimated_only_for_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    estimated: list[str] = []
    module = import_module("taso_substitutions.cli.generate")  # the package has the command under this name
    monkeypatch.setattr(module, "estimated_bytes", lambda fragment, _: estimated.append(fragment.name) or 0)
    options = ["--ops", 1, "--operators", "MatMul", "--jobs", 1, "--work", tmp_path, "--resume", "--shard", "1/1"]
    for fragments in ("scalar", "scalar,matrix"):
        assert run("generate", *options, "--fragments", fragments) == 0
    assert estimated == ["scalar", "matrix"]


def test_options_alone_generate_the_same(generated: Path, tmp_path: Path) -> None:
    assert run(*SMALL, "-o", tmp_path / "again", "--work", tmp_path / "work") == 0
    assert contents(tmp_path / "again") == contents(generated)


def test_shards_give_the_same(generated: Path, tmp_path: Path) -> None:
    options = [*SMALL, "--work", tmp_path / "work"]
    assert run(*options, "--shard", "1/1", "--resume") == 0
    merge = ["merge", tmp_path / "work", *SMALL, "-o", tmp_path / "merged"]
    assert run(*merge) == 0
    assert (tmp_path / "merged" / "full.rules").read_bytes() == (generated / "full.rules").read_bytes()


def test_several_shards_give_the_same(three: Path, tmp_path: Path) -> None:
    merged, work = tmp_path / "merged", tmp_path / "work"
    for shard in ("3/3", "1/3", "2/3"):
        assert run(*THREE, "--shard", shard, "--work", tmp_path / shard[0]) == 0
    work.mkdir()
    for file in tmp_path.glob("[123]/*.jsonl"):
        shutil.copy(file, work)
    assert run("merge", work, *THREE, "-o", merged) == 0
    assert contents(merged) == contents(three)


def test_merge_wants_all_that_shards_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And searches for nothing itself: the results of other options would be replaced."""
    assert run(*THREE, "--shard", "1/3", "--work", tmp_path) == 0
    before = sorted((file.name, file.read_bytes()) for file in tmp_path.glob("*"))
    for options in (THREE, ["--ops", 1, *THREE[2:]]):
        assert run("merge", tmp_path, *options, "-o", tmp_path / "rules") == 2
        assert "expected what all shards found, by this version and with these options" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "rules")
    assert before == sorted((file.name, file.read_bytes()) for file in tmp_path.glob("*"))


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [4, 6, 8])
def test_a_killed_run_goes_on_to_the_same(three: Path, tmp_path: Path, seconds: int) -> None:
    folder = tmp_path / "rules"
    code = "from taso_substitutions.cli import main; main()"
    arguments = [sys.executable, "-c", code, "generate", *map(str, THREE), "-o", str(folder), "--resume"]
    with subprocess.Popen(arguments, stderr=subprocess.DEVNULL, start_new_session=True) as running:
        time.sleep(seconds)
        running.kill()
    assert run("generate", *THREE, "-o", folder, "--resume", "--force") == 0
    assert contents(folder) == contents(three)


@pytest.mark.ray
def test_a_cluster_gives_the_same(three: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    assert run("generate", *THREE, "--engine", "ray", "-o", tmp_path / "rules") == 0
    assert contents(tmp_path / "rules") == contents(three)


@pytest.mark.parametrize(
    "options",
    [
        ["--max-shape", "4xx4"],
        ["--max-shape", "0x4"],
        ["--max-shape", "4"],
        ["--max-shape", "100000x100000x100000x100000"],
        ["--ops", "0"],
        ["--ops", "9"],
        ["--fragments", "nothing"],
        ["--operators", "Nothing"],
        ["--shard", "3/2"],
        ["--shard", "one"],
        ["--engine", "cloud"],
        ["--max-shape", "4x" + "9" * 5000],
        ["--shard", "1/" + "9" * 5000],
        ["--memory", "inf"],
        ["--memory", "0.000001"],
        ["--fragments", "matrix", "--operators", "Conv"],
    ],
)
def test_bad_options(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("generate", *options, "-o", tmp_path / "rules") == 2
    error = capsys.readouterr().err
    assert "error: expected" in error
    assert "Traceback" not in error
    assert not list(tmp_path.glob("**/*.rules"))


@pytest.mark.parametrize("options", [["--engine", "slurm"], ["--ops", "9"]])
def test_refused_options_leave_no_folder(options: list[str], tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for command in (["generate"], ["merge", work]):
        assert run(*command, *SMALL, *options, "-o", tmp_path / "rules") == 2
    assert list(tmp_path.rglob("*")) == [work]


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        (["generate"], "--jobs", "-1"),
        (["generate"], "--memory", "-1"),
        (["merge", "work"], "--jobs", "0"),
        (["recheck", "cse"], "--jobs", "0"),
        (["import", "a.rules"], "--jobs", "0"),
    ],
)
def test_numbers_out_of_range(command: list[str], option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*command, option, value) == 2
    assert f"Invalid value for '{option}'" in capsys.readouterr().err


def test_resuming_replaces_only_what_the_same_options_wrote(
    generated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = [*SMALL[:5], "Mul", *SMALL[6:]]
    folder = shutil.copytree(generated, tmp_path / "rules")
    before = contents(folder)
    for options in (other, ["--most", 1, *SMALL]):
        assert run("generate", *options, "-o", folder, "--work", tmp_path / "work", "--resume") == 2
        assert "found one of other options or another version: --force replaces it" in capsys.readouterr().err
    assert contents(folder) == before
    assert run("generate", *SMALL, "-o", folder, "--resume") == 0
    assert contents(folder) == before


def test_nothing_is_overwritten(generated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (generated / "full.rules").read_bytes()
    assert run("generate", *SMALL, "-o", generated) == 2
    assert "--force" in capsys.readouterr().err
    assert (generated / "full.rules").read_bytes() == before


def test_ray_is_named_where_it_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("typer")
    try:
        import ray  # noqa: F401
    except ImportError:
        assert run("generate", *SMALL, "--engine", "ray", "-o", tmp_path / "rules") == 2
        assert "taso-substitutions[ray]" in capsys.readouterr().err
        assert not list(tmp_path.iterdir())
