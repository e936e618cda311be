"""Every rule that the package ships is checked on sampled instances, and once through the engine and onnxruntime."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from model_texts import graph_of
from onnxruntime.capi.onnxruntime_pybind11_state import Fail
from rule_graphs import LeftSide, run

from taso_gym.rules.files import package_sets, read_rules
from taso_gym.rules.rule import Rule
from taso_gym.rules.ruleset import RuleSet, is_portable, rule_digest
from taso_gym.rules.state import RewriteState, check
from taso_substitutions.verify import Passed, check_rule, testing
from taso_substitutions.verify.sampling import sample_instances
from taso_substitutions.verify.values import numbers, relative_error

RULES = RuleSet.load("default", numerics="fast")
# Rounding in float32 through some operators; sums of up to a few hundred terms, exp of numbers up to 3 among them.
TOLERANCE = 2e-5
CANDIDATES = 12

each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
each_file = pytest.mark.parametrize("path", package_sets().values(), ids=lambda path: path.stem)


@each_rule
def test_holds_on_sampled_instances(rule: Rule) -> None:
    found = check_rule(rule, instances=6, draws=1, seed=1)
    assert isinstance(found, Passed), str(found)


@pytest.mark.slow
@each_rule
def test_holds_on_many_instances(rule: Rule) -> None:
    found = check_rule(rule, instances=100, draws=2, seed=2)
    assert isinstance(found, Passed), str(found)


@each_rule
def test_rewritten_model_computes_the_same(rule: Rule) -> None:
    for instance in sample_instances(rule, CANDIDATES, seed=5, least=1, dtypes=("float",)):
        arrays = dict(numbers(rule, instance, np.random.default_rng(1), "positive"))
        graph = LeftSide(rule, instance, arrays).graph()
        state = RewriteState(graph, RuleSet([rule]))
        if not state.matches[0]:  # nothing would change for these shapes
            continue
        try:
            expected = run(graph, arrays)
        except Fail:  # onnxruntime wants the pads of a pool to be smaller than its kernel, dilated or not
            continue
        rewritten = state.apply(state.matches[0][0])
        check(rewritten)
        for before, after in zip(expected, run(rewritten.graph, arrays), strict=True):
            assert (before.shape, before.dtype) == (after.shape, after.dtype)
            assert relative_error(before, after)[0] <= TOLERANCE
        return
    pytest.fail(f"no match of {rule.name} in {CANDIDATES} of its own instances that onnxruntime runs")


@each_file
def test_every_rule_has_a_certificate_and_none_is_stale(path: Path) -> None:
    sidecar = path.with_name(f"{path.stem}.certificates.jsonl")
    rows = [json.loads(line) for line in sidecar.read_text(encoding="utf-8").splitlines()]
    assert [(row["rule"], row["name"]) for row in rows] == [(rule_digest(r), r.name) for r in read_rules(path)]
    assert {row["numerics"] for row in rows} <= {"exact", "reassociate", "fast"}
    assert all(row["error"] <= testing.TOLERANCE for row in rows)
    assert [row["name"] for row in rows if row["status"] not in ("proved", "bounded", "analytic")] == []


@each_file
def test_names_are_kebab_case_and_lines_have_no_slack(path: Path) -> None:
    for rule in read_rules(path):
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*(\.reverse)?", rule.name)
        assert rule.text == rule.text.strip()


def test_the_set_is_large_and_mostly_portable_and_exact_or_reassociating() -> None:
    assert len(RULES) >= 300
    assert len(RuleSet.load("default", portable=True)) >= 250
    assert [r.name for r in RULES if not is_portable(r) and r.where.partition(":")[0] != "onnxruntime.rules"] == []
    assert RULES.certificates.keys() == {rule.name for rule in RULES}


@pytest.mark.parametrize("dtype", ["float", "float16"])
def test_a_guard_of_softmax_stays_where_scores_may_overflow(dtype: str) -> None:
    graph = graph_of(
        f"g ({dtype}[2, 3, 4] x, {dtype}[2, 4, 5] y) => (z)"
        "{ s = MatMul(x, y) p = Softmax <axis = -1> (s) n = IsNaN(p) z = Where(n, zero, p) }",
        zero=np.zeros((), {"float": np.float32, "float16": np.float16}[dtype]),
    )
    state = RewriteState(graph, RULES)
    assert bool(state.matches[RULES.index("guard-of-softmax")]) is (dtype == "float")


NUMPY = {"float": np.float32, "float16": np.float16, "double": np.float64}


@pytest.mark.parametrize(
    ("name", "body", "dtype", "applies"),
    [
        ("layer-norm-write-out", "y = LayerNormalization <epsilon = 1e-12> (x, s, s)", "float", True),
        ("layer-norm-write-out", "y = LayerNormalization <epsilon = 1e-12> (x, s, s)", "float16", False),
        ("layer-norm-write-out", "y = LayerNormalization <epsilon = 1e-5> (x, s, s)", "float16", True),
        ("div-const-to-mul", "y = Div(x, c)", "float", True),
        ("div-const-to-mul", "y = Div(x, c)", "float16", False),
        ("gemm-alpha", "y = Gemm <alpha = 0.1> (x, c, s)", "float", True),
        ("gemm-alpha", "y = Gemm <alpha = 0.1> (x, c, s)", "double", False),
    ],
)
def test_types_in_which_a_number_is_lost_are_left(name: str, body: str, dtype: str, applies: bool) -> None:
    """1e-12 is 0 in float16, the reciprocal of 1e-5 infinite; a double Gemm has its alpha in float32."""
    graph = graph_of(f"g ({dtype}[4, 4] x, {dtype}[4] s) => (y) {{ {body} }}", c=np.full((4, 4), 1e-5, NUMPY[dtype]))
    state = RewriteState(graph, RULES)
    assert bool(state.matches[RULES.index(name)]) is applies
