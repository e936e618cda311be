import pytest

from taso_gym.rules.notation import parse_rules
from taso_substitutions.verify.analytic import prove_analytic
from taso_substitutions.verify.prover import UnprovableError
from taso_substitutions.verify.sampling import sample_instances

CANCELS = [
    "Div(Mul(x, y), y) => x if shape(x) == shape(y)",
    "Div(Mul(x, z), Mul(y, z)) => Div(x, y) if shape(x) == shape(y) and shape(x) == shape(z)",
    "Div(Div(x, c), ReduceSum(Div(x, c), axes=[1])) => Div(x, ReduceSum(x, axes=[1])) if rank(x) == 2 and rank(c) == 0",
    "ReduceSum(MatMul(x, Softmax(y, axis=1)), axes=[1]) => ReduceSum(x, axes=[1]) if rank(x) == 2 and rank(y) == 2",
]
STAYS = [
    "Div(Mul(x, y), Mul(z, y)) => Div(z, x) if shape(x) == shape(y) and shape(x) == shape(z)",
    "Div(x, y) => Mul(x, Div(x, Mul(x, y))) if shape(x) == shape(y)",  # x may be 0 on the left
]


def proved(text: str) -> set[str]:
    (rule,) = parse_rules(f"r: {text}")
    proofs = [prove_analytic(rule, instance.binding()) for instance in sample_instances(rule, 3, 0)]
    return {axiom for proof in proofs for axiom in proof.axioms}


@pytest.mark.parametrize("text", CANCELS)
def test_divisors_of_the_left_side_cancel(text: str) -> None:
    assert proved(text) == {"divisor"}


@pytest.mark.parametrize("text", STAYS)
def test_what_may_be_zero_on_the_left_does_not(text: str) -> None:
    with pytest.raises(UnprovableError, match="the sides differ"):
        proved(text)
