"""Rules for operands that aren't wider than what they were found as."""

import pytest
from rule_discovery import lifted

CASES = {
    "a row": (
        "Add(MatMul(x0, x1), x2) => Gemm(x0, x1, x2)",
        ("linear", "xac"),
        ["broadcast(shape(x2), shape(x1)[1:]) == shape(x1)[1:]"],
    ),
    "a column, at any rank": (
        "Div(MatMul(x0, x1), x2) => MatMul(Div(x0, x2), x1)",
        ("softmax", "xwc"),
        ["rank(x0) >= 2", "broadcast(shape(x2), shape(x0)[:-1] + [1]) == shape(x0)[:-1] + [1]"],
    ),
    "behind the axis of a Concat": (
        "Concat(Mul(x0, x1), Mul(x2, x1), axis=0) => Mul(x1, Concat(x0, x2, axis=0))",
        ("layers", "xgy"),
        [f"broadcast(shape(x1), shape({x})[a0 + 1:]) == shape({x})[a0 + 1:]" for x in ("x0", "x2")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_operand_that_broadcasts_may_be_narrower(case: str) -> None:
    text, (fragment, inputs), wanted = CASES[case]
    first, *_ = lifted(text, fragment, inputs)
    assert all(condition in first for condition in wanted), first


def test_a_column_leaves_a_sum_along_its_axis_only() -> None:
    for line in lifted(
        "ReduceSum(Div(x0, x1), axes=[1], keepdims=1) => Div(ReduceSum(x0, axes=[1], keepdims=1), x1)", "softmax", "xc"
    ):
        assert "axes=[1]" in line and "rank(x0) == 2" in line
