"""Rules are used on tensors that they are shown for: with elements, and of ranks up to a limit."""

import pytest
from matching_graphs import children

from taso_gym.rules.covered import rank_limit
from taso_gym.rules.notation import parse_rules


@pytest.mark.parametrize(
    ("shape", "result"), [("2x3", ["Relu(x)"]), ("2x0", []), ("1x1x1x1x1x2", ["Relu(x)"]), ("1x1x1x1x1x1x2", [])]
)
def test_no_rule_matches_tensors_without_elements_or_of_more_axes(shape: str, result: list[str]) -> None:
    assert children("r: Relu(Relu(x)) => Relu(x)", "Relu(Relu(x))", x=shape) == result


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("Relu(Relu(x)) => Relu(x)", 6),
        ("Relu(Conv(x, w, **k)) => Relu(Conv(x, w, **k))", 5),
        ("Add(Add(x, y), Add(z, w)) => Add(Add(x, z), Add(y, w))", 5),
    ],
)
def test_the_rank_that_a_rule_is_used_up_to_follows_from_its_tensors(text: str, limit: int) -> None:
    (rule,) = parse_rules(f"f: {text}")
    assert rank_limit(rule) == limit
