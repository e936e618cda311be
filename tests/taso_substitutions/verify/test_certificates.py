"""Rows of certificates, and those that the package ships."""

import json
from pathlib import Path
from typing import Any

import pytest

from taso_gym.rules.files import generated_sets, package_sets, read_rules
from taso_gym.rules.ruleset import rule_digest
from taso_substitutions.verify.certificates import outdated, read_rows, sidecar_of, stated_error

SHIPPED = package_sets() | generated_sets()


@pytest.mark.parametrize(("error", "stated"), [(0.0, 0.0), (3e-17, 1e-15), (1e-15, 1e-15), (2e-14, 1e-13)])
def test_errors_are_stated_as_powers_of_ten(error: float, stated: float) -> None:
    assert stated_error(error) == pytest.approx(stated)


def rows(path: Path) -> dict[str, Any]:
    return read_rows(sidecar_of(path))


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_certificates_are_of_the_present_format(name: str) -> None:
    assert [row["name"] for row in rows(SHIPPED[name]).values() if outdated(row)] == []


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_rule_has_a_certificate_and_every_certificate_a_rule(name: str) -> None:
    assert set(rows(SHIPPED[name])) == {rule_digest(rule) for rule in read_rules(SHIPPED[name])}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"error": 0.0', '"error": 0.0, "more": 1'),
        ('"ranks": {', '"fixed": {'),
        ('"at_bound": ', '"at": '),
        ('"small_model": 1, ', ""),
    ],
)
def test_a_row_of_another_format_is_outdated(old: str, new: str) -> None:
    row = json.dumps(next(iter(rows(SHIPPED["cse"]).values())))
    assert not outdated(json.loads(row))
    assert old in row
    assert outdated(json.loads(row.replace(old, new, 1)))
