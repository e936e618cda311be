"""Kinds of instances of a rule: all ranks, and all sizes of 1 where axes meet, are proved."""

from dataclasses import replace
from itertools import islice

import pytest

from taso_gym.rules.notation import parse_rules
from taso_gym.rules.rule import Rule
from taso_gym.rules.ruleset import RuleSet
from taso_gym.tensor import TensorType
from taso_substitutions.verify.coverage import SIZE, Coverage, RefutedError, cover, uniform, variants
from taso_substitutions.verify.instance import Instance
from taso_substitutions.verify.levels import assess
from taso_substitutions.verify.prover import UnprovableError, follows, prove
from taso_substitutions.verify.sampling import sample_instances
from taso_substitutions.verify.testing import Passed, check_rule, type_fault
from taso_substitutions.verify.trial import Counterexample


def rule_of(text: str) -> Rule:
    (rule,) = parse_rules(f"r: {text}")
    return rule


def covered(text: str, *samples: Instance) -> Coverage:
    return cover(rule_of(text), samples, len(samples), prove)


def test_every_rank_of_every_tensor_is_proved() -> None:
    found = covered("Softmax(Neg(x), axis=a) => Softmax(Neg(x), axis=a)")
    assert (found.ranks, found.every_rank) == ({"x": (1, 2, 3, 4, 5, 6)}, False)


def test_larger_ranks_follow_for_operators_that_name_no_axis() -> None:
    found = covered("Add(x, MatMul(y, z)) => Add(MatMul(y, z), x)")
    assert (found.ranks, found.every_rank) == ({"y": (1, 2, 3), "z": (1, 2, 3), "x": (0, 1, 2, 3)}, True)


def test_examples_meet_the_conditions() -> None:
    shapes = [i.tensors for i in uniform(rule_of("Add(x, y) => Add(y, x) if rank(x) == 2 and rank(y) >= 2"))]
    assert [tuple(str(t[name]) for name in "xy") for t in shapes] == [
        ("float[6, 6]", "float[6, 6]"),
        ("float[6, 6]", "float[6, 6, 6]"),
    ]


FALSE = {
    "sums over an axis that is broadcast": "ReduceSum(Add(x, y), axes=[0]) => Add(ReduceSum(x, axes=[0]), "
    "ReduceSum(y, axes=[0])) if rank(x) == rank(y)",
    "vectors": "MatMul(x, MatMul(y, z)) => MatMul(MatMul(x, y), z)",
    "an axis that is the last for vectors only": "Softmax(x, axis=-1) => Softmax(x, axis=0)",
    "joined axes that are broadcast": "Concat(Add(x, y), z, axis=0) => Add(Concat(x, z, axis=0), "
    "Concat(y, Mul(z, 0), axis=0)) if rank(x) == rank(y)",
}


@pytest.mark.parametrize("case", FALSE)
def test_a_rule_that_fails_at_one_rank_or_broadcast_is_not_proved(case: str) -> None:
    with pytest.raises((UnprovableError, RefutedError)):
        covered(FALSE[case])


COLUMNS = (
    "Add(Sub(x, y), Add(z, y)) => Add(x, z) if rank(x) == 2 and rank(y) == 2 and rank(z) == 2 "
    "and dim(x, 0) == dim(y, 0) and dim(z, 0) == dim(y, 0) and dim(x, 1) == dim(z, 1)"
)


def test_what_one_side_doesnt_read_may_be_all_that_widens_the_other() -> None:
    """Elements are equal wherever y has more columns, but there are more of them on the left."""
    assert isinstance(check_rule(rule_of(COLUMNS)), Passed)
    found = assess(rule_of(COLUMNS))
    assert isinstance(found, Counterexample)
    assert "outputs are" in found.fault
    assert not isinstance(assess(rule_of(f"{COLUMNS} and dim(y, 1) == dim(x, 1)")), Counterexample)


def test_a_broadcast_is_refuted_too_where_only_axioms_show_the_rest() -> None:
    of_functions = COLUMNS.replace("Sub(x, y)", "Sub(Mul(Exp(x), Exp(z)), y)").replace(
        "Add(x, z)", "Add(Exp(Add(x, z)), z)"
    )
    assert isinstance(check_rule(rule_of(of_functions), instances=6), Passed)
    assert isinstance(assess(rule_of(of_functions), instances=6), Counterexample)


def test_a_rule_that_only_sampling_would_miss_is_refused_where_sizes_are_1() -> None:
    """Both sides are equal for equal shapes, which the examples of the sampler could all have."""
    rule = rule_of("ReduceSum(Add(x, y), axes=[0]) => Add(ReduceSum(x, axes=[0]), ReduceSum(y, axes=[0]))")
    alike = [i for i in sample_instances(rule, 20, 0) if i.tensors["x"] == i.tensors["y"]]
    assert all(prove(rule, i.binding()).complete for i in alike)
    with pytest.raises(RefutedError):
        cover(rule, alike, 6, prove)


SUMMED = "ReduceSum(Add(x, y), axes=[0]) => ReduceSum(Add(y, x), axes=[0]) if rank(x) == 2 and rank(y) == 2"
SUMS = SUMMED.replace("ReduceSum(Add(y, x), axes=[0])", "Add(ReduceSum(x, axes=[0]), ReduceSum(y, axes=[0]))")


@pytest.mark.parametrize(("text", "axis", "expected"), [(SUMMED, 0, True), (SUMS, 0, False), (SUMS, 1, True)])
def test_a_size_of_1_needs_no_proof_where_no_operator_but_broadcasting_meets_it(
    text: str, axis: int, expected: bool
) -> None:
    """The sum of y along its only element isn't that of y repeated."""
    rule = rule_of(text)
    (instance,) = uniform(rule)
    shape = tuple(1 if i == axis else SIZE for i in range(2))
    found = replace(instance, tensors={**instance.tensors, "y": TensorType("float", shape)})
    assert follows(rule, found.binding(), prove(rule, instance.binding())) is expected


@pytest.mark.parametrize(
    "text",
    [
        "LayerNormalization(Add(x, y), g, b, axis=0) => LayerNormalization(Sum(y, x), g, b, axis=0) if rank(y) == 2",
        "Softmax(Mul(x, y), axis=a) => Softmax(Mul(y, x), axis=a) if rank(y) == 2",
        "Concat(Sub(x, y), z, axis=0) => Concat(Neg(Sub(y, x)), z, axis=0) if rank(x) == 2 and rank(y) == 2",
    ],
)
def test_what_follows_is_proved_too(text: str) -> None:
    """That repeating commutes with all that operators do is held to the proofs that it saves."""
    rule, checked = rule_of(text), 0
    for instance in islice(uniform(rule), 5):
        proof = prove(rule, instance.binding())
        for found in islice(variants(rule, instance, proof), 9):
            if follows(rule, found.binding(), proof):
                checked += 1
                assert prove(rule, found.binding()).complete, str(found)
    assert checked > 0


def test_what_is_proved_of_a_wrong_right_side_for_high_ranks_is_nothing() -> None:
    text = "Transpose(Transpose(x, perm=p), perm=p) => x if rank(x) == 2"
    assert isinstance(check_rule(rule_of(text)), Passed)
    wide = rule_of("Mul(x, y) => Transpose(Mul(y, Transpose(x, perm=[0, 1, 3, 2])), perm=[0, 1, 3, 2]) "
                   "if rank(y) == 0 and rank(x) >= 4")  # fmt: skip
    assert isinstance(assess(wide), Counterexample)


@pytest.mark.parametrize("rule", RuleSet.load("basis", numerics="fast"), ids=lambda rule: rule.name)
def test_generated_rules_have_a_right_side_of_the_same_types_at_every_rank(rule: Rule) -> None:
    for instance in islice(uniform(rule), 40):
        fault = type_fault(rule, instance)
        assert fault is None, str(fault)
