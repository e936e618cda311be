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
from taso_gym.tensor import numpy_dtype
from taso_substitutions.verify import Passed, check_rule, trial
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
    assert all(row["error"] <= trial.TOLERANCE for row in rows)
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


NUMPY = {name: numpy_dtype(name) for name in ("float", "float16", "bfloat16", "double")}


@pytest.mark.parametrize(
    ("name", "body", "dtype", "applies"),
    [
        ("layer-norm-write-out", "y = LayerNormalization <epsilon = 1e-12> (x, s, s)", "float", True),
        ("layer-norm-write-out", "y = LayerNormalization <epsilon = 1e-5> (x, s, s)", "float16", False),
        ("layer-norm-write-out", "y = LayerNormalization <epsilon = 1e-5> (x, s, s)", "bfloat16", False),
        ("elu-write-out", "y = Elu <alpha = 0.5> (x)", "float16", True),
        ("elu-write-out", "y = Elu <alpha = 1e-12> (x)", "float16", False),
        ("div-const-to-mul", "y = Div(x, c)", "float", True),
        ("div-const-to-mul", "y = Div(x, c)", "float16", False),
        ("fast-gelu-of-standard", 'y = Gelu <approximate = "tanh"> (x)', "float", True),
        ("fast-gelu-of-standard", 'y = Gelu <approximate = "tanh"> (x)', "double", False),
        ("gemm-alpha", "y = Gemm <alpha = 0.1> (x, c, s)", "float", True),
        ("gemm-alpha", "y = Gemm <alpha = 0.1> (x, c, s)", "double", False),
        ("gemm-alpha", "y = Gemm <alpha = 1e-6> (x, c, s)", "float16", False),
    ],
)
def test_types_in_which_a_number_is_lost_are_left(name: str, body: str, dtype: str, applies: bool) -> None:
    """1e-12 is 0 in float16, the reciprocal of 1e-5 infinite; a double Gemm has its alpha in float32, FastGelu all.

    LayerNormalization computes halves in float32 (stash_type), which its parts wouldn't.
    """
    graph = graph_of(f"g ({dtype}[4, 4] x, {dtype}[4] s) => (y) {{ {body} }}", c=np.full((4, 4), 1e-5, NUMPY[dtype]))
    state = RewriteState(graph, RULES)
    assert bool(state.matches[RULES.index(name)]) is applies


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_a_slope_of_0_is_no_factor_of_what_may_be_infinite(alpha: float) -> None:
    graph = graph_of(f"g (float[4] x) => (y) {{ y = LeakyRelu <alpha = {alpha}> (x) }}")
    state = RewriteState(graph, RULES)
    assert bool(state.matches[RULES.index("leaky-relu-as-max")]) is bool(alpha)


@pytest.mark.parametrize("clip", ["Clip(a, l)", "Clip(a, , u)", "Clip(a)", "Clip(a, l, u)"])
def test_a_clip_without_bounds_on_both_sides_is_not_fused_into_a_convolution(clip: str) -> None:
    shape = {"w": np.ones((2, 3, 1, 1), np.float32), "b": np.ones(2, np.float32)}
    bounds = {name: np.float32(value) for name, value in (("l", 0), ("u", 6)) if f", {name}" in clip}
    text = f"g (float[1, 3, 4, 4] x) => (y) {{ a = Conv(x, w, b) y = {clip} }}"
    state = RewriteState(graph_of(text, **shape, **bounds), RULES)
    assert bool(state.matches[RULES.index("fused-conv-clip")]) is (len(bounds) == 2)


@pytest.mark.parametrize("exponent", [-1, 0, 1, 2, 3])
def test_whole_exponents_are_no_fractions(exponent: int) -> None:
    graph = graph_of("g (float[4] x) => (y) { y = Pow(x, k) }", k=np.array(exponent))
    state = RewriteState(graph, RULES)
    x = np.linspace(0.5, 2, 4, dtype=np.float32)
    for match in (match for matches in state.matches for match in matches):
        (found,) = run(state.apply(match).graph, {"x": x})
        np.testing.assert_allclose(found, x**exponent, rtol=1e-6)


def test_literals_that_a_type_lacks_are_in_no_weight_of_it() -> None:
    graph = graph_of("g (uint8[4] x) => (y) { y = Mul(x, k) }", k=np.uint8(2))
    check(RewriteState(graph, RULES))


def test_a_window_that_begins_behind_the_data_is_left_out_in_files_of_all_opsets() -> None:
    """Shape inference before opset 22 counts it, so that a file without the Reshape wouldn't load."""
    graph = graph_of(
        "g (float[1, 1, 3, 8] x) => (y) {"
        "p = AveragePool <ceil_mode = 1, kernel_shape = [2, 3], strides = [3, 2]> (x)"
        "q = Reshape(p, k) y = MatMul(w, q) }",
        opset=18,
        k=np.array([1, 1, 1, 4]),
        w=np.ones((5, 1), np.float32),
    )
    state = RewriteState(graph, RULES)
    (match,) = state.matches[RULES.index("reshape-identity")]
    arrays = {"x": np.arange(24, dtype=np.float32).reshape(1, 1, 3, 8)}
    np.testing.assert_allclose(run(state.apply(match).graph, arrays)[0], run(graph, arrays)[0])
