"""How far two values may be apart."""

import math

import numpy as np
import pytest
from model_texts import parsed

from taso_gym.equivalence import validate
from taso_gym.equivalence.compare import compare

F32, F64 = np.float32, np.float64


@pytest.mark.parametrize(
    ("a", "b", "ok"),
    [
        (F32([1, 2]), F32([1, 2]), True),
        (F32([1, 200]), F32([1.01, 200]), True),
        (F32([1, 200]), F32([1.1, 200]), False),
        (F32([0, 0]), F32([0, 0]), True),
        (F32([0, 0]), F32([0, 1e-3]), False),
        (F32([1, 2]), F64([1, 2]), False),
        (F32([1, 2]), F32([[1, 2]]), False),
        (F32([1, np.nan, np.inf]), F32([1, np.nan, np.inf]), True),
        (F32([1, np.nan, np.inf]), F32([1, np.nan, -np.inf]), False),
        (F32([1, np.nan]), F32([1, 2]), False),
        (F32([]), F32([]), True),
        (np.float16([1]), np.float16([1.004]), True),
        (F64([1]), F64([1 + 1e-6]), False),
        (np.int64([1, 2]), np.int64([1, 2]), True),
        (np.int64([10**9]), np.int64([10**9 + 1]), False),
        (np.int64([2**60]), np.int64([2**60 + 1]), False),  # the same as float64
        (np.array([True]), np.array([False]), False),
        (np.array(["a"], object), np.array(["a"], object), True),
        (np.array(["a"], object), np.array(["b"], object), False),
        ([F32([1])], [F32([1])], True),
        ([F32([1])], [F32([1]), F32([1])], False),
        ([F32([1])], F32([1]), False),
        (F32([-1e9, 1, 2]), F32([-1e9, 1, 3]), False),
        (F32([-1e9, -1e9, 1, 1e6]), F32([-1e9, -1e9, 3, 1e6]), True),
        (F32([-3e38, 5, 0]), F32([-3e38, 5, 1]), False),
        (F32([-1e9, 0, 0]), F32([-1e9, 5, 0]), False),
        (F32([-1e9, 0, 0]), F32([-1e9, 0, 0]), True),
        (F32([-1e9, 1, 2]), F32([-1.00001e9, 1, 3]), True),  # computed: its rounding is that of all
        (None, None, True),
        (None, F32([1]), False),
    ],
)
def test_comparing_values(a: object, b: object, ok: bool) -> None:
    assert compare(a, b).ok is ok


def test_the_error_is_relative_to_the_largest_magnitude() -> None:
    found = compare(F32([0, -4]), F32([1, -4]))
    assert (found.relative, found.absolute, found.tolerance) == (0.25, 1.0, 1e-4)
    assert compare(np.int64([1, 2, 3]), np.int64([1, 2, 4])).note == "1 of 3 elements differ"
    assert compare(np.int64([-(2**63)]), np.int64([2**63 - 1])).absolute == 2.0**64
    assert compare(np.int8([-128, 1]), np.int8([127, 1])).absolute == 255.0
    assert math.isinf(compare(F32([1]), F32([np.nan])).relative)


def test_a_comparison_of_nothing_finite_says_so() -> None:
    model = parsed("g (float[2] x) => (y) { y = Mul(x, w) }", w=F32(np.nan))
    report = validate(model, model)
    assert report.ok
    assert "nothing finite" in str(report) and "the same for all of them, which says little: 'y'" in str(report)
