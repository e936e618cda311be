"""Certificates of the package say what is so: some of each file here, all of them by `taso-gen-subst recheck`."""

import pytest

from taso_gym.rules.files import generated_sets, package_sets, read_rules
from taso_gym.rules.rule import Rule
from taso_gym.rules.ruleset import rule_digest
from taso_substitutions.verify.certificates import Row, read_rows, sidecar_of
from taso_substitutions.verify.certifying import differences_of

ONE_IN, LEAST = 24, 4
"""Rules of a file that are shown again: one in so many, or so many if these are more."""


def some() -> list[tuple[Rule, Row]]:
    """Return rules of all files with their certificates."""
    found: list[tuple[Rule, Row]] = []
    for path in (package_sets() | generated_sets()).values():
        rules, rows = read_rules(path), read_rows(sidecar_of(path))
        found += [(rule, rows[rule_digest(rule)]) for rule in rules[:: max(1, min(ONE_IN, len(rules) // LEAST))]]
    return found


@pytest.mark.parametrize("work", some(), ids=lambda work: work[0].name)
def test_a_certificate_is_found_again(work: tuple[Rule, Row]) -> None:
    assert differences_of(work) == []
