from taso_gym.rules.notation import parse_rules
from taso_substitutions.generation.store import named_lines

FORWARD = "rule: MatMul(MatMul(x0, x1), x2) => MatMul(x0, MatMul(x1, x2))"
BACK = "rule-back: MatMul(x0, MatMul(x1, x2)) => MatMul(MatMul(x0, x1), x2)"


def test_what_holds_both_ways_is_one_line() -> None:
    (line,) = named_lines([[FORWARD, BACK]])
    assert " <=> " in line
    assert len(parse_rules(line)) == 2


def test_directions_with_other_conditions_are_two_lines() -> None:
    assert len(named_lines([[FORWARD, f"{BACK} if rank(x0) == 2"]])) == 2


def test_variables_may_have_other_names_in_the_other_direction() -> None:
    forward = "a: MatMul(Transpose(x, perm=[1, 0]), y) => Add(y, x) if rank(x) == 2 and rank(y) == 1"
    back = "b: Add(s, t) => MatMul(Transpose(t, perm=[1, 0]), s) if rank(s) == 1 and rank(t) == 2"
    swapped = "b: Add(s, t) => MatMul(Transpose(t, perm=[1, 0]), s) if rank(s) == 2 and rank(t) == 1"
    assert len(named_lines([[forward, back]])) == 1
    assert len(named_lines([[forward, swapped]])) == 2


def test_a_name_follows_from_what_a_rule_says() -> None:
    assert named_lines([[FORWARD]]) == named_lines([["other: " + FORWARD.partition(": ")[2]]])
