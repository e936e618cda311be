"""What tests and mutants of many rules found is kept, by code and rules."""

from pathlib import Path

import pytest
from support import soundness
from support.cells import cell
from support.mutants import Tally


def in_this_process(function, work, jobs):
    return [function(*given) for given in work]


@pytest.mark.parametrize(("changed", "text"), [("code_digest", "other code"), ("rules_digest", "other rules")])
def test_mutants_of_other_code_or_rules_are_tried_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], changed: str, text: str
) -> None:
    tried: list[int] = []

    def tally(count: int, seed: int) -> Tally:
        tried.append(seed)
        return Tally(mutants=count)

    monkeypatch.setattr(soundness, "_mapped", in_this_process)
    monkeypatch.setattr(soundness, "tally", tally)
    monkeypatch.setattr(soundness, "code_digest", lambda: "code")
    monkeypatch.setattr(soundness, "rules_digest", lambda: "rules")
    for _ in range(2):
        soundness.mutate(2 * soundness.MUTANTS, 1, tmp_path)
    assert tried == [1, 2]
    monkeypatch.setattr(soundness, changed, lambda: text)
    soundness.mutate(2 * soundness.MUTANTS, 1, tmp_path)
    assert tried == [1, 2, 1, 2]
    assert capsys.readouterr().out.count("one version of code and rules") == 3


@pytest.mark.timeout(100)  # a pool waits for a worker that ended
def test_a_piece_of_other_settings_is_an_error_in_a_worker_too(tmp_path: Path) -> None:
    cell(tmp_path, "0", {"most": 1}, dict)
    with pytest.raises(ValueError, match=r"other settings .*'most': \(2, 1\)"):
        soundness._mapped(cell, [(tmp_path, "0", {"most": 2}, dict)], 1)


def test_tests_by_other_code_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[int] = []

    def tests(rules: object, seed: int) -> dict[str, object]:
        made.append(seed)
        return {"rules": 1, "tests": 1, "failures": [], "untested": [], "version": soundness.code_digest()}

    monkeypatch.setattr(soundness, "_mapped", in_this_process)
    monkeypatch.setattr(soundness, "_tests", tests)
    monkeypatch.setattr(soundness, "package_sets", lambda: ["attention"])
    monkeypatch.setattr(soundness, "generated_sets", list)
    for code in ("one", "one", "two"):
        monkeypatch.setattr(soundness, "code_digest", lambda code=code: code)
        soundness.sound(2, 1, tmp_path)
    assert made == [1000, 1001] * 2
    assert capsys.readouterr().out.count("one version of code") == 3
