"""``taso-gym rules`` lists what there is, and how it was shown."""

import pytest
from command_line import run

from taso_gym.cli.inspect import LEVELS
from taso_gym.rules.ruleset import RuleSet


@pytest.mark.parametrize("level", LEVELS)
def test_rules_of_a_level(level: str, capsys: pytest.CaptureFixture[str]) -> None:
    rules = RuleSet.load("pooling")
    assert run("rules", "pooling", "--level", level) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines] == [r.name for r in rules if rules.certificates[r.name] == level]
    assert last.startswith(f"{len(lines)} of {len(rules)} rules")


def test_no_such_level(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("rules", "--level", "certain") == 2
    assert (
        "expected --level among proved, bounded, analytic, tested, not-shown, found 'certain'"
        in capsys.readouterr().err
    )
