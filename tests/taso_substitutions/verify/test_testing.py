from typing import Any

import pytest

from taso_gym.errors import EquivalenceError, OptionError
from taso_gym.rules.notation import parse_rules
from taso_substitutions.verify import Counterexample, Passed, check_rule


def verdict(text: str) -> Passed | Counterexample:
    return check_rule(parse_rules(text, "a.rules")[0], instances=12, draws=1)


def fault(text: str) -> str:
    found = verdict(text)
    assert isinstance(found, Counterexample)
    return found.fault


def test_algebra_agrees_exactly_modulo_the_prime() -> None:
    found = verdict("f: Mul(x, Add(y, z)) => Add(Mul(x, y), Mul(x, z))")
    assert isinstance(found, Passed)
    assert (found.method, found.prime, found.tests) == ("field", 2**31 - 1, 24)
    assert 0 < found.error < 1e-13
    assert 1 in found.sizes and found.ranks[0] < found.ranks[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rule": "a: Relu(x) => x"}, r"expected a Rule \(parse_rules reads text\) as rule, found 'a: Relu"),
        ({"instances": 0}, "expected instances to be a whole number from 1 on, found 0"),
        ({"draws": "2"}, "expected draws to be a whole number from 1 on, found '2'"),
        ({"seed": -1}, "expected a seed of 0 or more, found -1"),
    ],
)
def test_arguments_of_a_wrong_kind_are_named(arguments: dict[str, Any], message: str) -> None:
    (rule,) = parse_rules("a: Relu(x) => Relu(x)")
    with pytest.raises(OptionError, match=message):
        check_rule(**{"rule": rule, **arguments})


def test_functions_are_opaque_in_the_field() -> None:
    assert getattr(verdict("f: Add(Exp(x), Erf(y)) => Add(Erf(y), Exp(x))"), "method", "") == "field"
    assert getattr(verdict("f: Mul(Exp(x), Exp(y)) => Exp(Add(x, y))"), "method", "") == "float64"


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("f: Mul(x, Add(y, z)) => Add(Mul(x, y), Mul(x, z))", "field"),
        ("f: Mul(Exp(x), Exp(y)) => Exp(Add(x, y))", "float64"),
        ("f: Sub(x, y) => Sub(y, x)", ""),
    ],
)
def test_one_of_both_ways_comes_to_the_same(text: str, method: str) -> None:
    found = check_rule(parse_rules(text, "a.rules")[0], instances=12, draws=1, either=True)
    assert getattr(found, "method", "") == method
    assert type(found) is type(verdict(text))


def test_a_small_difference_is_no_rounding() -> None:
    assert "on the left and" in fault("f: Sigmoid(x) => Sigmoid(Mul(x, 1.000001))")


def test_counterexample_names_rule_shapes_place_and_values() -> None:
    found = verdict("f: Sub(x, y) => Sub(y, x)")
    text = str(found)
    assert text.startswith("f is false: output 0 at [")
    assert "rule: f: Sub(x, y) => Sub(y, x)" in text
    assert "with: x " in text
    assert "\n  y = " in text


def test_right_side_must_be_well_typed_whenever_the_left_is() -> None:
    assert "the left side is well-typed and the right side isn't" in fault("f: Relu(x) => Transpose(x, perm=[1, 0])")


def test_outputs_must_keep_their_types() -> None:
    assert "the outputs are" in fault("f: Relu(x) => Flatten(Relu(x))")


def test_exact_rules_keep_every_bit() -> None:
    assert "it claims exact bits" in fault("f [exact]: Add(x, 0) => x")
    assert "it claims exact bits" in fault("f [exact]: Mul(Mul(x, x), 4.0) => Mul(Add(x, x), Add(x, x))")  # denormal
    assert isinstance(verdict("f [exact]: Sub(x, 0) => x"), Passed)


def test_float_attributes_are_too_coarse_for_double_tensors() -> None:
    text = "f: Mul(x, HardSigmoid(x, alpha=1/6, beta=0.5)) => HardSwish(x)"
    assert "rounded to float32" in fault(text)
    assert isinstance(verdict(f'{text} if dtype(x) != "double"'), Passed)


def test_the_same_seed_gives_the_same_verdict() -> None:
    assert verdict("f: Exp(Add(x, y)) => Mul(Exp(x), Exp(y))") == verdict("f: Exp(Add(x, y)) => Mul(Exp(x), Exp(y))")


def test_a_left_side_that_is_never_finite_shows_nothing() -> None:
    with pytest.raises(
        EquivalenceError, match=r"a\.rules:1: expected finite values on the left of f, found some in 0 of"
    ):
        verdict("f: Log(Neg(Exp(x))) => Log(Neg(Exp(x)))")
