"""What proofs take from samples besides sizes and attributes keeps a rule that computes with it from being proved."""

import pytest
from rule_evidence import evidence_of

from taso_gym.rules.notation import parse_rules
from taso_gym.rules.rule import Rule
from taso_substitutions.interop.judge import judge
from taso_substitutions.verify.sampled import sampled


def rule_of(text: str) -> Rule:
    (rule,) = parse_rules(f"r: {text}")
    return rule


COMPUTES = {
    "Neg(Neg(Concat(*xs, axis=a))) => Mul(Concat(*xs, axis=a), max(1, count(xs) - 2))": "count(xs)",
    "Relu(x) => Mul(Relu(x), max(1, 24 - opset))": "opset",
    'Relu(x) => Mul(Relu(x), 1 + (dtype(x) == "float16"))': "dtype(x)",
    "Concat(*Split(x, axis=0, split=s), axis=0) => Mul(x, max(1, len(s) - 2))": "len(s)",
    "Relu(Concat(*xs, axis=1)) => Mul(Relu(Concat(*xs, axis=1)), max(1, len(dims(xs, 1)) - 2))": "len(dims(xs, 1))",
    "Relu(Split(x, **k)[0]) => Mul(Relu(Split(x, **k)[0]), max(1, len(k.split) - 2))": "len(k.split)",
    "Relu(x) => Neg(Neg(Relu(x))) if opset < 23 or rank(x) > 0": "opset",
}


@pytest.mark.parametrize("text", COMPUTES)
def test_what_is_computed_with_is_named(text: str) -> None:
    assert sampled(rule_of(text)) == (COMPUTES[text],)


@pytest.mark.parametrize(
    "text",
    [
        "Concat(*xs, axis=a) => Concat(*xs, axis=a) if count(xs) == 2 and opset >= 23",
        "Concat(*xs, axis=a) => Mul(Concat(*xs, axis=a), count(xs) - 1) if count(xs) == 2",
        "Cast(Relu(x), to=t) => Cast(Relu(x), to=dtype(x)) if t == dtype(x)",
        "Transpose(x, perm=p) => Transpose(x, perm=range(len(p))) if p == range(len(p))",
        "Conv(x, w, strides=s) => Conv(MaxPool(x, kernel_shape=[1] * len(s), strides=s), w)",
        'Relu(x) => Relu(Relu(x)) if dtype(x) == "float" or dtype(x) == "double"',
    ],
)
def test_what_is_passed_on_or_restricts_is_none(text: str) -> None:
    assert sampled(rule_of(text)) == ()


def test_a_rule_that_computes_with_the_number_of_tensors_is_not_proved() -> None:
    text = "Neg(Neg(Concat(*xs, axis=a))) => Mul(Concat(*xs, axis=a), max(1, count(xs) - 2))"
    found = evidence_of(f"r: {text}")
    assert found.symbolic is not None
    assert (found.status, found.symbolic.numbers) == ("bounded", ("count(xs)",))
    assert judge(rule_of(text)).outcome == "bounded"
