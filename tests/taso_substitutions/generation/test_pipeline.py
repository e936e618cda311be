from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from rule_discovery import pipeline, small

from taso_gym.errors import OptionError, RuleError
from taso_substitutions.generation import pipeline as module
from taso_substitutions.generation import stages
from taso_substitutions.generation.engine import Serial, engine
from taso_substitutions.generation.pipeline import Pipeline
from taso_substitutions.generation.search import Search
from taso_substitutions.generation.work import WorkFolder

BOTH = [small(), small("matrix", ("Relu", "Transpose"))]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.jsonl"))}


def test_work_is_kept_and_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = pipeline(tmp_path).fragments([small()], 2)
    before = files(tmp_path)
    monkeypatch.setattr(stages, "search", None)  # would fail if it were called
    (second,) = pipeline(tmp_path).fragments([small()], 2)
    assert first == second
    assert files(tmp_path) == before


def test_what_is_kept_of_a_search_is_what_is_read_again(tmp_path: Path) -> None:
    pipeline(tmp_path).fragments([small()], 2)
    found = Search(small(), 2).run()
    rows = (tmp_path / "scalar.found.jsonl").read_text().splitlines()
    assert len(rows) == 2 + len(found.statements) + len(found.small) + len(found.exceptions)


def test_a_run_that_was_stopped_goes_on_to_the_same_result(tmp_path: Path) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    pipeline(whole).fragments(BOTH, 2)

    def stop(stage: str, *_: int) -> None:
        if stage == "matrix: prove":
            raise KeyboardInterrupt

    broken = Pipeline(pipeline().engine, WorkFolder(stopped, resume=True), stop)
    with pytest.raises(KeyboardInterrupt):
        broken.fragments(BOTH, 2)
    assert "matrix.general.jsonl" not in files(stopped)
    pipeline(stopped).fragments(BOTH, 2)
    assert files(stopped) == files(whole)


def test_a_search_that_is_done_is_kept_though_an_earlier_one_is_not(tmp_path: Path) -> None:
    class Stopped(Serial):
        def completed(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
            yield 1, function(items[1])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Pipeline(Stopped(), WorkFolder(tmp_path, resume=True), lambda *_: None).fragments(BOTH, 1)
    assert list(files(tmp_path)) == ["matrix.found.jsonl"]


def test_several_processes_find_the_same(tmp_path: Path) -> None:
    pipeline(tmp_path / "one").fragments([small()], 2)
    with engine("processes", 2) as running:
        Pipeline(running, WorkFolder(tmp_path / "two", resume=False), lambda *_: None).fragments([small()], 2)
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_other_settings_are_other_work(tmp_path: Path) -> None:
    pipeline(tmp_path).fragments([small()], 1)
    before = files(tmp_path)
    with pytest.raises(OptionError, match=r"found others in .*/scalar\.found\.jsonl: --force makes them anew"):
        pipeline(tmp_path).fragments([small()], 2)
    assert files(tmp_path) == before
    forced = WorkFolder(tmp_path, resume=True, force=True)
    (again,) = Pipeline(pipeline().engine, forced, lambda *_: None).fragments([small()], 2)
    assert again.counts["graphs"] > 20


@pytest.mark.parametrize(("first", "second"), [(2, 1), (0, 2), (2, 0)])
def test_other_rules_of_the_same_searches_are_other_work(first: int, second: int, tmp_path: Path) -> None:
    kept = pipeline(tmp_path)
    results = kept.fragments([small()], 2)
    basis = kept.finish(results, 2, first).basis
    before = files(tmp_path)
    with pytest.raises(OptionError, match=r"found others in .*/rules\.0\.jsonl: --force makes them anew"):
        pipeline(tmp_path).finish(results, 2, second)
    assert files(tmp_path) == before
    forced = Pipeline(pipeline().engine, WorkFolder(tmp_path, resume=True, force=True), lambda *_: None)
    assert forced.finish(results, 2, second).basis == basis
    changed = {name for name, data in files(tmp_path).items() if before[name] != data}
    assert changed == {"rules.0.jsonl"}


def test_a_basis_of_fewer_fragments_is_not_replaced(tmp_path: Path) -> None:
    first = pipeline(tmp_path).fragments(BOTH, 1)
    pipeline(tmp_path).finish(first[:1], 1, 1)
    before = files(tmp_path)
    with pytest.raises(OptionError, match=r"found others in .*/basis\.jsonl: --force makes them anew"):
        pipeline(tmp_path).finish(first, 1, 1)
    assert files(tmp_path) == before


def test_results_of_other_code_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline(tmp_path).fragments([small()], 1)
    monkeypatch.setattr(module, "code_digest", lambda *_: "other")
    with pytest.raises(OptionError, match="the same options and version"):
        pipeline(tmp_path).fragments([small()], 1)


@pytest.mark.parametrize("name", ["scalar.found", "scalar.general"])
@pytest.mark.parametrize("kept", [1, -1])
def test_work_that_was_cut_off_is_refused(name: str, kept: int, tmp_path: Path) -> None:
    """At the end of a row it looks like what was written."""
    pipeline(tmp_path).fragments([small()], 2)
    file = tmp_path / f"{name}.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:kept]))
    with pytest.raises(RuleError, match=f"expected all rows that were written, found a damaged file .*{name}"):
        pipeline(tmp_path).fragments([small()], 2)


def test_results_are_not_overwritten(tmp_path: Path) -> None:
    pipeline(tmp_path).fragments([small()], 1)
    with pytest.raises(OptionError, match="--resume"):
        WorkFolder(tmp_path, resume=False)


@pytest.mark.parametrize("text", ["", "{", '{"stage": 1'])
def test_damaged_work_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "scalar.general.jsonl").write_text(text)
    with pytest.raises(RuleError, match="expected rows of JSON"):
        pipeline(tmp_path).fragments([small()], 1)
