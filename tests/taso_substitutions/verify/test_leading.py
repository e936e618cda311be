"""Rules of which larger ranks follow: expressions count as operators do."""

import pytest

from taso_gym.rules.notation import parse_rules
from taso_gym.rules.rule import Rule
from taso_substitutions.verify.leading import maps
from taso_substitutions.verify.levels import Evidence, assess


def rule_of(text: str) -> Rule:
    (rule,) = parse_rules(f"r: {text}")
    return rule


@pytest.mark.parametrize(
    "text",
    [
        "Add(x, y) => Add(y, x)",
        "Add(x, y) => Add(y, x) if shape(x) == shape(y)",
        "Add(x, y) => Add(y, x) if rank(x) <= 4 and rank(y) >= 2 and rank(x) == rank(y)",
        "Add(x, y) => Mul(Add(y, x), dim(x, 0) // dim(x, 0)) if rank(x) == 2",
        "Relu(x) => Mul(Relu(x), dim(x, -1) // dim(x, -1)) if rank(x) >= 1",
        "Mul(x, y) => Mul(y, x) if broadcast(shape(y), shape(x)[:-1] + [1]) == shape(x)[:-1] + [1]",
        "MatMul(Add(x, c), w) => Add(MatMul(x, w), MatMul(c, w)) if rank(w) == 2 and shape(c) == [dim(w, 0)]",
        "Add(x, y) => Add(y, x) if size(x) == 1 or shape(x) == shape(y)",
    ],
)
def test_what_leading_axes_are_alike_to_follows_for_larger_ranks(text: str) -> None:
    assert maps(rule_of(text))


@pytest.mark.parametrize(
    "text",
    [
        "Softmax(x, axis=-1) => Softmax(x, axis=-1)",
        "Neg(Neg(Relu(x))) => Mul(Relu(x), max(1, rank(x) - 4))",
        "Neg(Neg(Relu(x))) => Mul(Relu(x), max(1, len(shape(x)) - 4))",
        "Relu(x) => Clip(x, min=0, max=300 * (rank(x) + 1))",
        "Relu(Relu(x)) => Mul(Relu(x), dim(x, 0) // dim(x, 0))",
        "Relu(Relu(x)) => Mul(Relu(x), dim(x, -4) // dim(x, -4))",
        "Relu(Relu(x)) => Mul(Relu(x), shape(x)[0] // shape(x)[0])",
        "Add(x, y) => Add(y, x) if rank(x) > 3 or shape(x) == shape(y)",
        "Add(x, y) => Add(y, x) if not rank(x) <= 3",
        "Add(x, y) => Add(y, x) if rank(x) > rank(y)",
        "Add(x, y) => Add(y, x) if rank(x) >= 4",
        "Add(x, y) => Add(y, x) if shape(x)[:-1] == shape(y)",
        "Add(x, y) => Add(y, x) if size(x) == size(y)",
    ],
)
def test_what_tells_leading_axes_apart_does_not(text: str) -> None:
    assert not maps(rule_of(text))


def test_a_rank_that_is_read_is_proved_up_to_the_highest() -> None:
    found = assess(rule_of("Neg(Neg(Relu(x))) => Mul(Relu(x), max(1, rank(x) - 6))"), instances=8, draws=1)
    assert isinstance(found, Evidence) and found.symbolic is not None
    assert (found.status, found.symbolic.every_rank) == ("proved", False)
    assert found.symbolic.ranks == {"x": (0, 1, 2, 3, 4, 5, 6)}


def test_what_is_false_at_the_highest_rank_is_refuted() -> None:
    found = assess(rule_of("Neg(Neg(Relu(x))) => Mul(Relu(x), max(1, rank(x) - 4))"))
    assert not isinstance(found, Evidence) and "on the left" in found.fault
