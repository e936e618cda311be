from types import ModuleType

import pytest
from rule_evidence import evidence_of

from taso_gym.errors import EquivalenceError
from taso_gym.rules.notation import parse_rules
from taso_substitutions.verify import prover
from taso_substitutions.verify.bounded import BoundedProof, prove_bounded
from taso_substitutions.verify.coverage import uniform
from taso_substitutions.verify.levels import Evidence, assess
from taso_substitutions.verify.normal import canonical, polynomial
from taso_substitutions.verify.sampling import sample_instances
from taso_substitutions.verify.trial import Counterexample


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (": MatMul(x, MatMul(y, z)) => MatMul(MatMul(x, y), z) if rank(y) == 2", "proved"),
        (": Gather(Add(x, y), i, axis=0) => Add(Gather(x, i, axis=0), Gather(y, i, axis=0)) if shape(x) == shape(y)",
         "proved"),
        (": Relu(Mul(x, c)) => Mul(Relu(x), c) if const(c) and value(c) >= 0", "proved"),
        (": HardSwish(x) => Mul(x, HardSigmoid(x, alpha=1/6, beta=0.5)) if dtype(x) != \"double\"", "proved"),
        (": Relu(MaxPool(x, **k)) => MaxPool(Relu(x), **k) if max(k.dilations) == 1", "bounded"),
        (": Mul(x, c) => Mul(x, value(c)) if rank(c) == 0 and const(c)", "proved"),
        (" [fast]: Exp(Add(x, y)) => Mul(Exp(x), Exp(y))", "analytic"),
        (" [fast]: Mul(x, Tanh(Softplus(x))) => Mul(x, Tanh(Softplus(Clip(x, max=40))))", "tested"),
    ],
)  # fmt: skip
def test_a_rule_has_the_highest_level_that_was_shown(text: str, status: str) -> None:
    assert evidence_of(f"rule {text}").status == status


def test_what_was_proved_says_how() -> None:
    found = evidence_of("rule : Sub(x, x) => Mul(x, 0)")
    assert (found.axioms, found.symbolic is None, found.bounded is None) == ((), False, False)


def test_repeated_products_of_a_square_matrix_need_larger_models() -> None:
    assert evidence_of("rule : MatMul(MatMul(x, x), x) => MatMul(x, MatMul(x, x)) if rank(x) == 2").small_model == 4


def test_a_false_rule_has_a_counterexample() -> None:
    (rule,) = parse_rules("rule: Relu(Mul(x, c)) => Mul(Relu(x), c) if const(c)")
    assert isinstance(assess(rule, instances=8, draws=2), Counterexample)


@pytest.mark.parametrize(
    ("module", "limit"), [(polynomial, "MAX_TERMS"), (canonical, "MAX_ORDERS"), (prover, "MAX_ROUNDS")]
)
def test_running_out_of_work_is_no_proof(module: ModuleType, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        ": MatMul(x, MatMul(y, Add(z, w))) => MatMul(MatMul(x, y), Add(z, w)) if rank(y) == 2 and shape(z) == shape(w)"
    )
    assert evidence_of(f"rule {text}").symbolic is not None
    monkeypatch.setattr(module, limit, 0)
    found = evidence_of(f"rule {text}")
    assert (found.symbolic, found.status) == (None, "bounded")


def test_running_out_of_resources_of_z3_is_no_proof() -> None:
    (rule,) = parse_rules("rule: Max(Add(x, z), Add(y, z)) => Add(Max(x, y), z)")
    (instance,) = sample_instances(rule, 1, 0)
    assert isinstance(prove_bounded(rule, instance), BoundedProof)
    assert isinstance(prove_bounded(rule, instance, rlimit=1), str)


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("dim(x, 0) == 600", "bounded"),
        ("dim(x, 0) == 100000", "tested"),
        ("dim(x, 0) == 300 and dim(x, 1) == 300", "tested"),
    ],
)
def test_large_numbers_run_out_of_work(condition: str, status: str) -> None:
    found = evidence_of(f"rule : Relu(Relu(x)) => Relu(x) if {condition}")
    assert (found.symbolic, found.status) == (None, status)


def test_equality_at_one_size_says_little_of_functions() -> None:
    """At size 2 the sum of all others is the other one: the small-model theorem leaves functions out."""
    (rule,) = parse_rules(
        "rule: ReduceSum(Exp(Sub(ReduceSum(x, axes=[0], keepdims=1), x)), axes=[0]) => ReduceSum(Exp(x), axes=[0]) "
        "if rank(x) == 1"
    )
    (instance,) = uniform(rule, 2)
    assert isinstance(prove_bounded(rule, instance), BoundedProof)
    assert isinstance(assess(rule, instances=8, draws=1), Counterexample)


@pytest.mark.parametrize(
    "text",
    [
        (
            ": Relu(x) => Concat(Relu(Slice(x, starts=[0], ends=[8], axes=[0])), Slice(x, starts=[8], ends=[99], "
            "axes=[0]), axis=0) if rank(x) >= 1"
        ),
        ": Slice(x, starts=[0], ends=[6]) => Slice(x, starts=[dim(x, 0) - 7], ends=[dim(x, 0) - 1])",
        ": Pad(Relu(x), **k) => Relu(Pad(x, **k))",
        ": Relu(LeakyRelu(x, alpha=a)) => Relu(x)",
        ": Relu(Elu(x, alpha=a)) => Relu(x)",
    ],
)
def test_what_is_true_of_usual_sizes_and_attributes_alone_is_refuted(text: str) -> None:
    (rule,) = parse_rules(f"rule {text}")
    assert isinstance(assess(rule, instances=24, draws=2), Counterexample)


def test_a_size_that_an_end_beyond_it_makes_a_number_is_no_proof_for_all() -> None:
    (rule,) = parse_rules(
        "rule: Neg(Slice(x, starts=[0], ends=[8], axes=[0])) => Slice(Neg(x), starts=[0], ends=[8], axes=[0])"
    )
    found = assess(rule, instances=8, draws=1)
    assert isinstance(found, Evidence) and found.symbolic is not None
    assert found.status != "proved" or not found.symbolic.numbers


def test_an_attribute_that_nothing_draws_is_no_part_of_others() -> None:
    (rule,) = parse_rules(
        "rule: Relu(ms.MultiHeadAttention(q, k, v, **o)) => Relu(Relu(ms.MultiHeadAttention(q, k, v, **o)))"
    )
    with pytest.raises(EquivalenceError, match="expected a way to draw the attribute"):
        assess(rule, instances=2, draws=1)
