"""Rule sets: order, digest, loading, filters, certificates."""

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matching_graphs import rule_set

from taso_gym.errors import OptionError, RuleError
from taso_gym.rules.files import package_sets, read_certificates
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet, load_checked, only_reorders, rule_digest
from taso_gym.rules.unparse import unparse

TEXT = """
a [exact]: Relu(Relu(x)) => Relu(x)
b: Add(x, Add(y, z)) <=> Add(Add(x, y), z)
c [fast]: Sqrt(Mul(x, x)) => Abs(x)
d [exact]: Relu(Conv(x, w, **k)) => ms.FusedConv(x, w, activation="Relu", **k)
"""
CHOICES = r"expected a rule set \(default, .*\) or a path that ends in \.rules or \.pb"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "my.rules"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_a_set_keeps_its_order() -> None:
    rules = rule_set(TEXT)
    assert [rule.name for rule in rules] == ["a", "b", "b.reverse", "c", "d"]
    assert len(rules) == 5 and rules[1].name == "b" and rules.index("c") == 3 and rules.index(rules[2]) == 2
    with pytest.raises(RuleError, match="expected a rule of the set, found 'e'"):
        rules.index("e")


def test_the_digest_is_of_what_the_rules_say() -> None:
    rules = rule_set(TEXT)
    assert rules.digest == rule_set(TEXT.replace("a [exact]:", "a  [exact]  :") + "# a comment\n").digest
    assert rules == rule_set(TEXT) and hash(rules) == hash(rule_set(TEXT))
    assert rules.digest != RuleSet(reversed(rules)).digest
    assert rules.digest != rule_set(TEXT.replace("a [exact]", "a")).digest


@pytest.mark.parametrize(
    ("rule", "reorders"),
    [
        ("r: Add(x, Add(y, z)) => Add(Add(x, y), z)", True),
        ("r: Relu(Relu(x)) => Relu(x)", False),
        ("r: Neg(x), Neg(x) => y := Neg(x), y", False),
        ("r: MatMul(x, y), MatMul(x, y) => z := MatMul(x, y), z", False),
    ],
)
def test_a_rule_that_has_as_many_of_each_operator_only_reorders(rule: str, reorders: bool, tmp_path: Path) -> None:
    """Of two results that are equal on the left side one is taken away."""
    assert only_reorders(parse_rules(rule)[0]) == reorders
    (tmp_path / "one.rules").write_text(rule, encoding="utf-8")
    assert bool(RuleSet.load(tmp_path / "one.rules", reorders=False)) != reorders


def test_a_name_twice_is_refused() -> None:
    rules = parse_rules(TEXT)
    with pytest.raises(RuleError, match="expected different names, found 'a' twice"):
        RuleSet([*rules, rules[0]])


def test_loading_a_file_with_filters(path: Path) -> None:
    def names(**options: object) -> list[str]:
        return [rule.name for rule in RuleSet.load(path, **options)]

    assert names() == ["a", "b", "b.reverse", "d"]
    assert names(numerics="exact") == ["a", "d"]
    assert names(numerics="fast") == ["a", "b", "b.reverse", "c", "d"]
    assert names(portable=True) == ["a", "b", "b.reverse"]
    assert [rule.where for rule in RuleSet.load(str(path))][:2] == ["my.rules:2", "my.rules:3"]


def test_a_set_that_is_given_is_taken_as_it_is_but_not_against_what_is_wanted(path: Path) -> None:
    rules, exact = RuleSet.load(path, numerics="fast"), RuleSet.load(path, numerics="exact")
    assert load_checked(rules, portable=False, numerics="reassociate") is rules
    assert load_checked(exact, portable=False, numerics="exact") is exact
    with pytest.raises(OptionError, match=r"expected a RuleSet of exact rules only, found b: RuleSet\.load leaves"):
        load_checked(rules, portable=False, numerics="exact")
    with pytest.raises(OptionError, match="expected a RuleSet of portable rules only, found"):
        load_checked(rules, portable=True, numerics="fast")


def test_the_default_set_is_all_of_the_packages() -> None:
    every = [rule.name for name in package_sets() for rule in RuleSet.load(name)]
    assert [rule.name for rule in RuleSet.load()] == every


def test_what_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=rf"{CHOICES}, found 'defualt'"):
        RuleSet.load("defualt")
    with pytest.raises(RuleError, match=r"expected a rule file \(.*\.rules.*\), found .*a\.txt"):
        RuleSet.load(tmp_path / "a.txt")
    with pytest.raises(RuleError, match="expected a readable text file"):
        RuleSet.load(tmp_path / "missing.rules")
    with pytest.raises(OptionError, match="expected numerics among exact, reassociate, fast, found 'slow'"):
        RuleSet.load(numerics="slow")
    (tmp_path / "binary.rules").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RuleError, match="expected a readable text file"):
        RuleSet.load(tmp_path / "binary.rules")


@pytest.mark.parametrize("wrong", [None, 5, [], "a\0b.rules"])
def test_what_is_neither_name_nor_path_is_named(wrong: Any) -> None:
    with pytest.raises(OptionError, match=rf"{CHOICES}, found"):
        RuleSet.load(wrong)


@pytest.mark.parametrize("wrong", [None, 5, "default", ["a: Relu(x) => x"]])
def test_a_set_of_something_else_than_rules_is_refused(wrong: Any) -> None:
    with pytest.raises(OptionError, match=r"expected rules \(RuleSet.load takes a name or path\), found"):
        RuleSet(wrong)
    with pytest.raises(OptionError, match="expected text as rules, found"):
        parse_rules(Path("mine.rules") if isinstance(wrong, str) else wrong)


def test_what_is_kept_of_a_rule_is_not_that_of_an_equal_one_which_says_something_else() -> None:
    [whole], [real] = (parse_rules(f"a: Relu(x) => Add(x, {items})") for items in ("[0, 2]", "[0.0, 2.0]"))
    real = replace(real, text=whole.text, where=whole.where)
    assert whole == real
    assert unparse(whole).endswith("[0, 2])")
    assert unparse(real).endswith("[0.0, 2.0])")
    assert rule_digest(whole) != rule_digest(real)
    assert rule_digest(pickle.loads(pickle.dumps(real))) == rule_digest(real)  # noqa: S301


def test_certificates_go_by_what_a_rule_says(path: Path) -> None:
    rules = RuleSet.load(path)
    sidecar = path.with_name("my.certificates.jsonl")
    rows = [{"rule": rule_digest(rules[i]), "status": status} for i, status in enumerate(["proved", "tested"])]
    sidecar.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert dict(RuleSet.load(path).certificates) == {"a": "proved", "b": "tested"}
    path.write_text(TEXT.replace("a [exact]:", "renamed [exact]:").replace("Add(x, Add(y, z))", "Add(Add(y, z), x)"))
    assert dict(RuleSet.load(path).certificates) == {"renamed": "proved"}


def test_a_file_may_have_a_name_too_long_for_certificates_beside_it(path: Path) -> None:
    long = path.with_name(f"{'x' * 245}.rules")
    long.write_text(path.read_text())
    assert RuleSet.load(long).certificates == {}


@pytest.mark.parametrize("line", ["no json", "[" * 100_000, "[]", '{"rule": "a"}'])
def test_a_damaged_certificate_is_reported(path: Path, line: str) -> None:
    path.with_name("my.certificates.jsonl").write_text(line, encoding="utf-8")
    with pytest.raises(RuleError, match=r"my\.certificates\.jsonl:1: expected a row"):
        read_certificates(path)


def test_a_set_is_pickled_whole(path: Path) -> None:
    rules = RuleSet.load(path)
    assert pickle.loads(pickle.dumps(rules)) == rules  # noqa: S301
