"""Certifying whole files, and rechecking them."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from taso_gym.errors import EquivalenceError, OptionError, RuleError
from taso_gym.rules.ruleset import RuleSet, rule_digest
from taso_substitutions.verify import certify, certifying, recheck
from taso_substitutions.verify.certificates import LEAST_ERROR
from taso_substitutions.verify.certifying import part_of

TRUE = "f [exact any]: Neg(Neg(x)) => x\ng: MatMul(x, MatMul(y, z)) <=> MatMul(MatMul(x, y), z) if rank(y) == 2\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.rules"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_row_for_each_direction_that_the_rule_set_reads(tmp_path: Path) -> None:
    path = write(tmp_path, TRUE)
    rows = [json.loads(line) for line in certify(path, instances=4).read_text(encoding="utf-8").splitlines()]
    rules = RuleSet.load(path)
    assert [row["rule"] for row in rows] == [rule_digest(rule) for rule in rules]
    assert [row["name"] for row in rows] == ["f", "g", "g.reverse"]
    assert rules.certificates == dict.fromkeys(["f", "g", "g.reverse"], "proved")


def test_a_row_says_how_it_was_tested(tmp_path: Path) -> None:
    row = json.loads(certify(write(tmp_path, TRUE), instances=4, draws=3, seed=7).read_text().splitlines()[0])
    assert (row["status"], row["numerics"], row["error"]) == ("proved", "exact", 0.0)
    assert {k: row["t3"][k] for k in ("method", "p", "tests", "seed")} == {
        "method": "field",
        "p": 2**31 - 1,
        "tests": 24,
        "seed": 7,
    }
    assert row["t3"]["dims"]["ranks"][0] <= row["t3"]["dims"]["ranks"][1]


def test_certifying_again_gives_the_same_bytes(tmp_path: Path) -> None:
    path = write(tmp_path, TRUE)
    assert certify(path, instances=4).read_bytes() == certify(path, instances=4).read_bytes()


def test_a_changed_rule_has_no_certificate(tmp_path: Path) -> None:
    path = write(tmp_path, TRUE)
    certify(path, instances=4)
    write(tmp_path, TRUE.replace("Neg(Neg(x)) => x", "Neg(Neg(x)) => Abs(x)"))
    assert "f" not in RuleSet.load(path).certificates


def test_a_false_rule_is_refused_with_its_counterexample_and_nothing_is_written(tmp_path: Path) -> None:
    path = write(tmp_path, TRUE + "h: Sub(x, y) => Sub(y, x)\n")
    with pytest.raises(EquivalenceError, match="h is false: output 0 at"):
        certify(path, instances=4)
    assert RuleSet.load(path).certificates == {}


class Counting:
    """Counts what it maps over, and stops after some items."""

    def __init__(self, most: int) -> None:
        self.most, self.items = most, 0

    def __call__(self, function: Callable[[Any], Any], items: Sequence[Any], /) -> Iterable[Any]:
        for item in items:
            if self.items == self.most:
                raise KeyboardInterrupt
            self.items += 1
            yield function(item)


def test_a_run_that_was_ended_goes_on_where_it_was(tmp_path: Path) -> None:
    path, second = write(tmp_path, TRUE), Counting(9)
    with pytest.raises(KeyboardInterrupt):
        certify(path, instances=4, mapped=Counting(2))
    sidecar = certify(path, instances=4, mapped=second)
    assert second.items == 1
    assert not part_of(path).exists()
    assert sidecar.read_bytes() == certify(path, instances=4).read_bytes()


def test_a_false_rule_that_is_mended_costs_no_more_than_itself(tmp_path: Path) -> None:
    path, second = write(tmp_path, "h: Sub(x, y) => Sub(y, x)\n" + TRUE), Counting(9)
    with pytest.raises(EquivalenceError, match="h is false"):
        certify(path, instances=4)
    certify(write(tmp_path, TRUE), instances=4, mapped=second)
    assert second.items == 0


@pytest.mark.parametrize("change", ["other code", "torn row", "no row"])
def test_rows_of_other_code_or_damaged_ones_are_not_taken(tmp_path: Path, change: str) -> None:
    path, second = write(tmp_path, TRUE), Counting(9)
    with pytest.raises(KeyboardInterrupt):
        certify(path, instances=4, mapped=Counting(1))
    header, row = part_of(path).read_text().splitlines()
    texts = {
        "other code": f"{header.replace('code', 'edoc')}\n{row}\n",
        "torn row": f"{header}\n{row}",
        "no row": f"{header}\n[]\n",
    }
    part_of(path).write_text(texts[change])
    certify(path, instances=4, mapped=second)
    assert second.items == 3


def test_progress_is_told_of_every_rule(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    certify(write(tmp_path, TRUE), instances=4, progress=lambda *what: told.append(what))
    assert told == [("show mine", n, 3) for n in (1, 2, 3)]


@pytest.mark.parametrize("act", [certify, recheck])
def test_what_is_no_path_is_named(act: Any) -> None:
    for wrong in (None, 5, "a\0b.rules"):
        with pytest.raises(OptionError, match="expected the path of a rule file, found"):
            act(wrong)


def test_certificates_that_hold_are_rechecked_without_a_difference(tmp_path: Path) -> None:
    path = write(tmp_path, TRUE + "s [fast]: Tanh(x) => Sub(Mul(Sigmoid(Mul(x, 2)), 2), 1)\n")
    certify(path, instances=4)
    assert recheck(path) == []


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ('"status": "proved"', '"status": "analytic"', 'status "analytic", found "proved"'),
        ('"digest": "', '"digest": "0', "f: expected t1"),
        ('"elements": ', '"elements": 1', "f: expected t2"),
        ('"small_model": 1', '"small_model": 0', "small_model 0, found 1"),
        ('"axioms": []', '"axioms": ["max"]', 'axioms ["max"], found []'),
        ('"tests": 16', '"tests": 32', "f: expected t3"),
        ('"rule": "', '"rule": "0', "f: expected a certificate, found none"),
    ],
)
def test_a_tampered_certificate_is_found(tmp_path: Path, old: str, new: str, difference: str) -> None:
    path = write(tmp_path, TRUE)
    sidecar = certify(path, instances=4)
    text = sidecar.read_text()
    assert old in text
    sidecar.write_text(text.replace(old, new, 1))
    assert difference in "\n".join(recheck(path))


@pytest.mark.parametrize(("factor", "same"), [(0.1, True), (10, True), (100, False), (0.01, False), (0, False)])
def test_another_cpu_may_round_differently_by_a_power_of_ten(tmp_path: Path, factor: float, same: bool) -> None:
    path = write(tmp_path, "s [fast]: Exp(Mul(x, 64)) => Exp(Mul(Mul(x, 0.1), 640))\n")
    sidecar = certify(path, instances=4)
    row = json.loads(sidecar.read_text())
    assert row["error"] > 100 * LEAST_ERROR
    sidecar.write_text(json.dumps({**row, "error": row["error"] * factor}) + "\n")
    assert ("s: expected error" not in "\n".join(recheck(path))) is same


@pytest.mark.parametrize(
    ("stated", "found", "same"),
    [(0.0, 1e-15, True), (1e-15, 0.0, True), (0.0, 1e-14, False), (1e-13, 1e-15, False), (0.0, 0.0, True)],
)
def test_the_least_error_is_none_elsewhere(stated: float, found: float, same: bool) -> None:
    assert certifying._agree("error", stated, found) is same


def test_a_certificate_that_cannot_be_read_is_one_clear_error(tmp_path: Path) -> None:
    path = write(tmp_path, TRUE)
    certify(path, instances=4).write_text("[]\n")
    with pytest.raises(RuleError, match="expected a certificate as a JSON object"):
        recheck(path)


def test_rechecking_a_file_without_certificates_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="expected certificates in"):
        recheck(write(tmp_path, TRUE))
