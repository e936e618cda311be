"""Graphs that compute with whole numbers without rounding are told from those that round, and compared exactly."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from model_texts import graph_of, parsed

from taso_gym.equivalence import subject, validate
from taso_gym.equivalence.compare import Value
from taso_gym.equivalence.draw import input_kinds
from taso_gym.equivalence.exact import FINEST, LARGEST, Grid, exact_magnitude, grid_of_numbers
from taso_gym.equivalence.runtime import Feeds, run_model

F32 = np.float32


@pytest.mark.parametrize(
    ("values", "grid"),
    [
        ([1, -3, 2], Grid(3, 1)),
        ([0.5, 4], Grid(4, 0.5)),
        ([4, 12], Grid(12, 4)),
        ([0], Grid(0, LARGEST)),
        ([], Grid(0, LARGEST)),
        ([FINEST], Grid(FINEST, FINEST)),
        ([FINEST / 2], None),
        ([0.1], None),
        ([np.nan, 1], None),
        ([np.inf], None),
        ([2.0**31], None),
    ],
)
def test_the_grid_of_numbers(values: list[float], grid: Grid | None) -> None:
    assert grid_of_numbers(values) == grid


def magnitude(nodes: str, shape: str = "float[2, 4]", **weights: object) -> int | None:
    graph = graph_of(f"g ({shape} x) => (y) {{ {nodes} }}", **weights)
    return exact_magnitude([graph], input_kinds(graph), {"N": 3})


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ("y = Relu(x)", 100),
        ("a = Mul(x, x)\n b = Add(a, x)\n y = Transpose(b)", 100),
        ("a = Mul(x, x)\n y = Mul(a, a)", 10),
        ("a = Mul(x, x)\n b = Mul(a, a)\n c = Mul(b, b)\n y = Mul(c, c)", 1),
        ("a = MatMul(x, ones)\n b = MatMul(a, ones)\n y = Concat <axis = 0>(a, b)", 100),
        ("y = Mul(x, half)", 100),
        ("y = Mul(x, tenth)", None),
        ("y = Div(x, half)", None),
        ("y = Exp(x)", None),
        ("a = Greater(x, tenth)\n y = Cast <to = 1>(a)", None),
        ("a = Exp(x)\n y = Sign(a)", None),
        ("y = Cast <to = 10>(x)", 100),
        ("a = Mul(x, x)\n y = Cast <to = 10>(a)", 10),
        ("y = Gemm <alpha = 0.5, beta = 2.0>(x, ones, half)", 100),
        ("y = Gemm <alpha = 0.3>(x, ones)", None),
        ("y = ReduceSum(x, axes)", 100),
        ("y = ArgMax(x)", None),
    ],
)
def test_what_rounds(nodes: str, found: int | None) -> None:
    weights = {"ones": np.ones((4, 4), F32), "half": F32(0.5), "tenth": F32(0.1), "axes": np.array([0])}
    assert magnitude(nodes, **{k: v for k, v in weights.items() if k in nodes}) == found


def test_sums_over_many_terms_round() -> None:
    nodes, w = "y = MatMul(x, w)", np.full((5000, 1), 65, F32)
    assert magnitude(nodes, "float[2, 5000]", w=w) == 10
    assert magnitude(nodes, "float[2, 5000]", w=w * 64) == 10
    assert magnitude(nodes, "float[2, 5000]", w=w * 4097) is None
    assert magnitude("y = Conv(x, w)", "float[N, 3, 5, 5]", w=np.ones((4, 3, 3, 3), F32)) == 100


def test_equal_models_that_do_not_round_are_compared_exactly() -> None:
    """A difference that a tolerance would let pass is found."""
    head = "g (float[N, 3] x) => (float[N, 3] y)"
    first = parsed(f"{head} {{ a = Mul(x, k)\n y = Add(a, c) }}", k=F32(4), c=F32(8))
    other = parsed(f"{head} {{ a = Add(x, c)\n y = Mul(a, k) }}", k=F32(4), c=F32(2))
    wrong = parsed(f"{head} {{ a = Add(x, c)\n y = Mul(a, k) }}", k=F32(4), c=F32(2 + 2**-16))
    report = validate(first, other)
    assert report.ok
    assert (
        report.basis
        == "exact on whole numbers up to 100, on which neither model rounds; on normal ones with a tolerance"
    )
    assert "exact" in str(report)
    assert not validate(first, wrong).ok
    assert validate(first, wrong, tolerance=1e-4).ok


def test_a_model_that_rounds_is_compared_with_a_tolerance() -> None:
    head = "g (float[N, 3] x) => (float[N, 3] y)"
    first = parsed(f"{head} {{ y = Mul(x, k) }}", k=F32(0.5))
    other = parsed(f"{head} {{ y = Div(x, k) }}", k=F32(2))
    assert validate(first, other).basis == "float64 reference"


@pytest.mark.parametrize("draws", [1, 3])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("y = Add(x, zero)", "i = Cast <to = 6>(x)\n y = Cast <to = 1>(i)"),
        ("c = Greater(x, half)\n y = Where(c, x, zero)", "c = Greater(x, quarter)\n y = Where(c, x, zero)"),
        ("y = Clip(x, zero, one)", "r = Relu(x)\n y = Sign(r)"),
        ("a = Add(x, x)\n b = Sub(a, one)\n y = Abs(b)", "a = Abs(x)\n b = Sub(x, one)\n c = Abs(b)\n y = Add(a, c)"),
    ],
)
def test_what_holds_for_whole_numbers_alone_is_no_equality(first: str, second: str, draws: int) -> None:
    constants = {"zero": F32(0), "quarter": F32(0.25), "half": F32(0.5), "one": F32(1)}
    models = [
        parsed(f"g (float[16] x) => (y) {{ {body} }}", **{k: v for k, v in constants.items() if k in body})
        for body in (first, second)
    ]
    report = validate(*models, draws=draws)
    assert report.basis.startswith("exact")
    assert not report.ok
    assert len(report.draws) == max(draws, 2)


def test_normal_numbers_are_drawn_at_sizes_that_the_model_runs_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last draw is of normal numbers, and has three rows."""

    def run_few(model: Path | bytes, feeds: Sequence[Feeds]) -> list[list[Value] | str]:
        return [run_model(model, [feed])[0] if len(feed["x"]) < 3 else "too many rows" for feed in feeds]

    monkeypatch.setattr(subject, "run_model", run_few)
    text = "g (float[N, 4] x) => (y) {{ {} }}"
    first = parsed(text.format("y = Relu(x)"))
    second = parsed(text.format("i = Cast <to = 6>(x)\n f = Cast <to = 1>(i)\n y = Relu(f)"))
    report = validate(first, second)
    assert report.draws == ("N=1", "N=2", "N=1")
    assert report.basis.startswith("exact") and not report.ok


def test_integers_alone_are_compared_exactly_in_all_draws() -> None:
    model = parsed("g (int64[3] i) => (y) { y = Gather(table, i) }", table=np.arange(7, dtype=F32))
    assert validate(model, model).basis == "exact on whole numbers up to 100, on which neither model rounds"
    assert len(validate(model, model, draws=1).draws) == 1
