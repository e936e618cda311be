from rule_discovery import discovered, lifted, rules_of

from taso_gym.rules.notation import parse_rules
from taso_substitutions.enumeration.fragments import FRAGMENTS
from taso_substitutions.equalities.generalise import Generaliser
from taso_substitutions.equalities.sizes import equalities
from taso_substitutions.equalities.statement import first_that_passes, is_proved, outcome_of
from taso_substitutions.verify.trial import Counterexample


def test_facts_become_conditions() -> None:
    assert equalities(["x0.1 = x1.0", "s0.0 = x2.3"]) == ["dim(x0, 1) == dim(x1, 0)", "s0[0] == dim(x2, 3)"]
    assert equalities(["x0.1 = inner"]) is None


def test_both_directions_are_stated() -> None:
    forward, backward = rules_of("matrix", "MatMul(MatMul(x0, x1), x2)", lift=False)
    assert forward.startswith("rule: MatMul(MatMul(x0, x1), x2) => MatMul(x0, MatMul(x1, x2))")
    assert backward.startswith("rule-back: MatMul(x0, MatMul(x1, x2)) => MatMul(MatMul(x0, x1), x2)")


def test_sums_do_not_claim_to_keep_bits() -> None:
    assert not any("[exact]" in line for line in rules_of("matrix", "Concat(MatMul(", lift=False))


def test_false_rules_do_not_pass() -> None:
    (rule,) = parse_rules("r: Relu(Add(x, y)) => Add(Relu(x), Relu(y))")
    assert isinstance(outcome_of(rule), Counterexample)


def test_a_rule_about_an_axis_needs_its_ranks() -> None:
    generaliser = Generaliser(FRAGMENTS["matrix"].example())
    start = "Concat(MatMul(x0, x1), MatMul(x0, x2), axis=1)"
    equality = next(e for e in discovered("matrix").general if e.body.startswith(start))
    assert generaliser.prove(equality) is not None
    assert all("rank(" in line for line in rules_of("matrix", start, lift=False))


CANCELLING = "Add(Sub(x0, x1), Add(x2, x1)) => Add(x0, x2)"


def test_what_is_dropped_must_not_be_the_largest() -> None:
    typing = (
        "rank(x0) == 2 and rank(x1) == 2 and rank(x2) == 2 and dim(x0, 0) == dim(x1, 0) and dim(x2, 0) == dim(x1, 0)"
    )
    (rule,) = parse_rules(f"r: {CANCELLING} if {typing} and dim(x0, 1) == dim(x2, 1)")
    assert not is_proved(rule)  # x1 may be the only one with several columns


def test_a_rule_that_drops_a_tensor_says_how_large_it_may_be() -> None:
    (line,) = lifted(CANCELLING, "layers", "xcx")
    assert line.endswith(" if broadcast(shape(x0), shape(x1), shape(x2)) == broadcast(shape(x0), shape(x2))")
    assert lifted("Sub(Add(x0, x1), x1) => x0", "layers", "xc")[0].endswith(
        " if broadcast(shape(x0), shape(x1)) == shape(x0)"
    )


def test_what_maps_over_elements_holds_for_all_shapes() -> None:
    forward, backward = lifted("Mul(Add(x0, x1), x2) => Add(Mul(x0, x2), Mul(x1, x2))", "scalar", "xxs")
    assert " if " not in forward + backward


def test_what_is_false_at_a_rank_that_is_rarely_sampled_is_not_proved() -> None:
    turned = "Transpose(Mul(x1, Transpose(x0, perm=[0, 1, 3, 2])), perm=[0, 1, 3, 2])"
    (rule,) = parse_rules(f"r: Mul(x0, x1) => {turned} if rank(x1) == 0 and rank(x0) >= 4")
    assert not is_proved(rule)


def test_what_makes_an_exp_is_fast() -> None:
    written_out = "Softmax(x0, axis=1) => Div(Exp(x0), ReduceSum(Exp(x0), axes=[1], keepdims=1))"
    heads = [line.partition("(")[0] for line in lifted(written_out, "softmax", "x")]
    assert heads == ["rule [fast]: Softmax", "rule-back: Div"]


def test_what_moves_an_exp_keeps_every_bit() -> None:
    rule = first_that_passes("r", "Exp(Transpose(x, perm=p)) => Transpose(Exp(x), perm=p)", iter([[]]))
    assert rule is not None and rule.numerics == "exact"
