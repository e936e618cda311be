from pathlib import Path

import pytest

from taso_gym.errors import RuleError
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet, rule_digest
from taso_gym.rules.taso_pb import read_file, read_taso
from taso_gym.rules.taso_terms import AXIS, TRANSPOSE
from taso_gym.rules.taso_wire import TasoOperator, TasoRule, TasoTensor
from taso_substitutions.interop.judge import TasoWork, Verdict, judge, judge_taso
from taso_substitutions.interop.taso_export import record_of
from taso_substitutions.interop.tensat import read_tensat

DATA = Path(__file__).parents[2] / "data" / "taso"


def shipped(number: int) -> Verdict:
    return judge_taso(TasoWork(read_file(DATA / "graph_subst.pb")[number], number, "graph_subst.pb"))


def verdict(text: str) -> Verdict:
    (rule,) = parse_rules(f"r: {text}")
    return judge(rule)


@pytest.mark.parametrize("number", [99, 100, 130, 131])
def test_false_rules_of_taso_are_refuted(number: int) -> None:
    found = shipped(number)
    assert found.outcome == "refuted"
    assert "is false" in found.counterexample
    assert found.rule is None


@pytest.mark.parametrize("number", [125, 126, 128])
def test_rules_false_for_groups_are_refuted_as_stated(number: int) -> None:
    found = shipped(number)
    assert found.added[0] == "group == 1"
    assert "is false" in found.counterexample
    assert found.rule is not None


@pytest.mark.parametrize("number", [0, 22, 76, 77, 80, 81])
def test_true_rules_of_taso_are_proved(number: int) -> None:
    assert shipped(number).outcome == "proved"


@pytest.mark.slow
def test_every_shipped_rule_is_decided() -> None:
    found = list(map(shipped, range(133)))
    assert {v.outcome for v in found} == {"proved", "refuted"}
    stated = {rule.name: rule_digest(rule) for rule in read_taso(DATA / "graph_subst.pb")}
    true = {v.name for v in found if v.rule is not None and rule_digest(v.rule) == stated[v.name]}
    assert true == {rule.name for rule in RuleSet.load(DATA / "graph_subst.pb")}


def test_generated_rules_of_taso_are_decided() -> None:
    records = read_file(DATA / "generated_depth_2.pb")
    found = [judge_taso(TasoWork(record, i, "file")) for i, record in enumerate(records)]
    assert {v.outcome for v in found} == {"proved", "bounded"}
    assert [v.name for v in found if v.outcome == "bounded"] == ["taso-22"]  # whose identity kernel is cut from a row


def test_a_lacking_precondition_is_added() -> None:
    found = verdict(
        "Concat(Add(x, y), Add(u, v), axis=0) => Add(Concat(x, u, axis=0), Concat(y, v, axis=0))"
        " if rank(x) == 1 and rank(y) == 1 and rank(u) == 1 and rank(v) == 1"
    )
    assert found.outcome == "proved"
    assert found.added


def test_equal_sizes_of_one_variable_are_a_precondition_too() -> None:
    found = verdict("Transpose(Transpose(x, perm=[1, 0]), perm=[1, 0]) => Add(x, Sub(x, x)) if rank(x) == 2")
    assert (found.outcome, found.added) == ("proved", ())
    found = verdict("Relu(x) => Relu(Add(x, Sub(Transpose(x), Transpose(x)))) if rank(x) == 2")
    assert (found.outcome, found.added) == ("proved", ("dim(x, 0) == dim(x, 1)",))


def test_what_is_false_anyway_is_refuted() -> None:
    found = verdict("Relu(Add(x, y)) => Add(Relu(x), Relu(y))")
    assert found.outcome == "refuted"
    assert "x = " in found.counterexample


def test_tensat_equations_are_read(tmp_path: Path) -> None:
    file = tmp_path / "rules.txt"
    file.write_text(
        "relu(concat(0,input_1,input_2))==concat(0,relu(input_1),relu(input_2))\n"
        "conv2d(1,1,0,2,input_7,input_10)==relu(conv2d(1,1,0,0,input_7,input_10))\n"
    )
    found = [judge_taso(TasoWork(record, i, "file")) for i, record in enumerate(read_tensat(file))]
    assert [v.outcome for v in found] == ["proved", "proved"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("relu(input_1)", "expected an equation `left==right`, found 0 times `==`"),
        ("relu(input_1==input_1", "expected terms of TENSAT's operators"),
        ("what(input_1)==input_1", "found 'what'"),
        ("1==1", "expected terms of TENSAT's operators"),
        ("relu($)==relu(input_1)", "expected terms of TENSAT's operators"),
    ],
)
def test_other_text_is_refused(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "rules.txt"
    file.write_text(text)
    with pytest.raises(RuleError, match=message):
        read_tensat(file)


def test_tensors_of_equal_shapes_are_a_precondition_where_ranks_are_open() -> None:
    found = verdict("Concat(Add(x, y), Add(u, v), axis=0) => Add(Concat(x, u, axis=0), Concat(y, v, axis=0))")
    assert found.outcome == "proved"
    assert any(condition.startswith("shape(") for condition in found.added)


def test_a_counterexample_is_small() -> None:
    found = verdict("Relu(Add(x, y)) => Add(Relu(x), Relu(y))")
    assert found.outcome == "refuted"
    assert "y double[1]" in found.counterexample


def test_what_cannot_be_said_is_no_precondition() -> None:
    """A name that begins with s is taken for a list of sizes."""
    (rule,) = parse_rules("sum: Sub(ReduceSum(x, axes=[0]), ReduceSum(s, axes=[0])) => ReduceSum(Sub(x, s), axes=[0])")
    assert judge(rule).outcome in ("refuted", "proved", "undecided")


def test_an_operator_that_nothing_computes_is_undecided() -> None:
    resized = 'Resize(x, sizes=[3], mode="cubic", antialias=1)'
    (rule,) = parse_rules(f"twice: Relu({resized}) => Relu(Relu({resized}))")
    assert judge(rule).outcome == "undecided"


def test_what_a_vanishing_operand_widens_is_refuted() -> None:
    """For x and z of shape [2, 1] and y of [2, 3] the sides have different shapes."""
    found = verdict("Add(Sub(x, y), Add(z, y)) => Add(x, z)")
    assert found.outcome == "refuted" and "the outputs are" in found.counterexample


@pytest.mark.parametrize(
    "line", ["concat(1)==input_1", "conv2d(1,1,0,0,input_7)==input_7", "ewadd(input_0,input_1)==ewadd(input_1,input_0)"]
)
def test_terms_without_their_operands_are_told(line: str, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(line)
    with pytest.raises(RuleError, match="expected terms of TENSAT's operators"):
        read_tensat(tmp_path / "t.txt")


def test_a_damaged_record_is_undecided() -> None:
    """A Transpose without its parameters, of which only its own record may say that it is damaged."""
    op = TasoOperator(TRANSPOSE, (TasoTensor(-1, 0),), {})
    found = judge_taso(TasoWork(TasoRule((op,), (op,), ((TasoTensor(0, 0), TasoTensor(0, 0)),)), 3, "file"))
    assert found.outcome == "undecided" and "record taso-3, found a damaged one" in found.counterexample


@pytest.mark.parametrize(
    ("text", "exported"),
    [
        (
            "Mul(x, Transpose(y, perm=[1, 0])) => Transpose(Mul(x, y), perm=[1, 0]) if rank(x) == 0 and rank(y) == 2",
            False,
        ),
        ("Add(MatMul(x, y), z) => Add(z, MatMul(x, y)) if rank(x) == 2 and rank(y) == 2 and rank(z) == 1", False),
        ("Add(x, y) => Add(y, x) if rank(x) == 1 and rank(y) == 1", False),
        ("Add(MatMul(x, y), z) => Add(z, MatMul(x, y)) if rank(x) == 2 and rank(y) == 2 and rank(z) == 2", True),
        ("Add(x, y) => Add(y, x)", True),
        ("Concat(Relu(x), Relu(y), axis=-1) => Relu(Concat(x, y, axis=-1)) if rank(x) == 2 and rank(y) == 2", True),
    ],
)
def test_only_what_taso_means_is_exported(text: str, exported: bool) -> None:
    """Its element-wise operators take operands of one shape, and it knows no ranks besides its operators'."""
    (rule,) = parse_rules(f"r: {text}")
    record = record_of(rule)
    assert (record is not None) == exported
    if record is not None:
        assert judge_taso(TasoWork(record, 0, "file")).outcome == "proved"
        assert all(op.parameters.get(AXIS, 0) >= 0 for op in (*record.source, *record.target))


def test_a_variable_that_is_called_rank_is_no_rank() -> None:
    condition = "if rank == 0"
    assert record_of(parse_rules(f"r: Concat(x, y, axis=rank) => Concat(x, y, axis=rank) {condition}")[0]) is None
    assert verdict(f"Softmax(Add(x, y), axis=rank) => Softmax(Sub(x, y), axis=rank) {condition}").outcome == "refuted"
