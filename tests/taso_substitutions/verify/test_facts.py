import pytest

from taso_gym.rules.notation import parse_rules
from taso_gym.rules.rule import Rule
from taso_gym.rules.unparse import unparse_expr
from taso_substitutions.verify.facts import calls_in, facts_of, names_in


def rule(text: str) -> Rule:
    return parse_rules(text)[0]


def test_equalities_define_both_sides() -> None:
    facts = facts_of(
        rule("f: Conv(x, w, pads=p, **k) => Conv(x, w, pads=p, **k) if shape(w) == shape(x) and k.group == 2")
    )
    found = {key: [unparse_expr(e) for e in exprs] for key, exprs in facts.definitions.items()}
    assert found == {
        ("shape", "w", None): ["shape(x)"],
        ("shape", "x", None): ["shape(w)"],
        ("field", "k", "group"): ["2"],
    }


def test_ranks_sizes_and_attributes_are_defined_too() -> None:
    facts = facts_of(rule("f: Softmax(x, axis=a) => Softmax(x, axis=a) if rank(x) == 3 and a == 1 and size(x) == 6"))
    assert set(facts.definitions) == {("rank", "x", None), ("attr", "a", None), ("size", "x", None)}


def test_constants_and_what_is_asked_for_its_value() -> None:
    facts = facts_of(rule("f: Mul(Mul(x, y), c) => ms.FusedMatMul(x, y, alpha=value(c)) if const(y) and not const(x)"))
    assert (facts.const, facts.variable, facts.valued) == ({"y", "c"}, {"x"}, {"c"})


def test_outputs_that_the_left_side_mentions() -> None:
    text = "Split(x, axis=0, split=s)[2], Relu(Split(x, axis=0, split=s)[0])"
    facts = facts_of(rule(f"f: {text} => {text}"))
    assert max(facts.outputs.values()) == 3
    assert 0 in facts_of(rule("f: *Split(x, **k) => *Split(x, **k)")).outputs.values()


def test_numbers_that_sizes_are_divided_by() -> None:
    facts = facts_of(rule("f: Exp(x) => Exp(x) if dim(x, 0) % 2 == 0 and dim(x, 1) % 3 == 1 and dim(x, 1) == 5"))
    assert facts.divisors == {2, 3}


def test_least_ranks_are_those_of_conditions_and_of_what_windows_slide_over() -> None:
    facts = facts_of(rule("f: Conv(Relu(Concat(x, y, axis=1)), Add(w, v)) => Conv(x, w) if rank(v) >= 2"))
    assert facts.least == {"x": 3, "y": 3, "v": 2}


def test_shapes_that_arent_widened() -> None:
    facts = facts_of(rule("f: Add(x, y) => Add(y, x) if broadcast(shape(y), shape(x)[1:]) == shape(x)[1:]"))
    assert {name: unparse_expr(e) for name, e in facts.narrower.items()} == {"y": "shape(x)[1:]"}


def test_calls_come_after_their_operands() -> None:
    assert [c.op for c in calls_in(rule("f: Add(Exp(Relu(x)), Neg(y)) => Exp(x)").lhs)] == ["Relu", "Exp", "Neg", "Add"]


def test_names_in_an_expression() -> None:
    (condition,) = rule("f: Softmax(x, axis=a) => x if opset > a + dim(x, a)").conditions
    assert names_in(condition) == {"a", "x"}


@pytest.mark.parametrize(
    "text",
    [
        "Softmax(x, axis=rank) => Softmax(x, axis=rank) if rank >= 0",
        "Softmax(x, axis=const) => Softmax(x, axis=const) if not const",
        "Softmax(x, axis=dim) => Softmax(x, axis=dim) if dim % 2 == 0",
    ],
)
def test_a_variable_that_has_the_name_of_a_function_is_none(text: str) -> None:
    facts = facts_of(rule(f"f: {text}"))
    assert (facts.least, facts.variable, facts.divisors) == ({}, set(), set())


def test_a_literal_may_ask_for_a_value() -> None:
    assert facts_of(rule("f: Mul(x, c) => Mul(x, value(c)) if rank(c) == 0")).valued == {"c"}
