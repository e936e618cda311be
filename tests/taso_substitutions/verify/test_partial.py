"""A right side that has no value where the left one has isn't proved, though the forms are the same."""

import pytest
from rule_evidence import evidence_of

from taso_gym.rules.ruleset import RuleSet
from taso_substitutions.verify.levels import Evidence, assess


@pytest.mark.parametrize(
    "text",
    [
        "Sub(Add(x, y), y) => Add(x, Mul(0, Log(Add(y, 1000)))) if shape(x) == shape(y)",
        "Mul(Add(x, y), 0) => Mul(0, Sqrt(Add(Mul(x, y), 100000)))",
        "Sub(x, x) => Mul(0, Pow(Add(x, 500), 0.5))",
        "Sub(x, x) => Mul(0, Div(x, Sub(x, 1234)))",
        "Sub(x, x) => Mul(0, Reciprocal(Sub(x, 1234)))",
    ],
)
def test_what_vanished_may_have_had_no_value(text: str) -> None:
    found = evidence_of(f"r: {text}")
    assert (found.status, found.symbolic) == ("bounded", None)


@pytest.mark.parametrize(
    "text",
    [
        "Pow(x, 0.5) => Sqrt(x)",
        "Pow(x, -1) => Reciprocal(x)",
        "Mul(Mul(x, x), x) => Pow(x, 3)",
        "Relu(x) => Mul(Relu(x), Div(2, 2))",
        "Sub(Log(x), Log(x)) => Mul(Log(x), 0)",
        "Reciprocal(Reciprocal(Mul(x, y))) => Div(x, Div(1, y))",
    ],
)
def test_what_is_left_or_on_the_left_side_has_one_as_well(text: str) -> None:
    assert evidence_of(f"r: {text}").status == "proved"


@pytest.mark.parametrize("name", ["softmax-write-out", "layer-norm-write-out"])
def test_what_the_left_side_divides_by_itself_may_vanish_along_one_element(name: str) -> None:
    rules = RuleSet.load("normalisation", numerics="fast")
    found = assess(rules[rules.index(name)], instances=8, draws=1)
    assert isinstance(found, Evidence) and found.symbolic is not None
