"""How far two values may be apart."""

import math
from typing import Any

import numpy as np
import pytest
from model_texts import parsed

from taso_gym.equivalence import validate
from taso_gym.equivalence.compare import compare, has_finite

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
        (np.complex64([1, np.nan + 1j]), np.complex64([1, np.nan + 1j]), True),
        (np.complex64([1, np.nan + 1j]), np.complex64([1, 1j]), False),
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
        (F32([-1e9, 1, 2]), F32([-1.00001e9, 1, 3]), False),  # it need not be quite the same to fill
        (F32([-1e9, 1, 2]), F32([-1.00001e9, 1, 2]), True),
        (F32([-1e9, 1, 2]), F32([-1.001e9, 1, 2]), False),
        (F64([-1e9 + 0.5, 0.4 - 1e9, 1, 2]), F64([-1e9, -1e9, 1, 2.1]), False),
        (F32([-2e9, -1e9, 1, 2]), F32([-2e9, -1e9, 1, 3]), False),  # two masks, added
        (F32([-1e9, -1e4, 1, 2]), F32([-1e9, -1e4, 1, 3]), False),
        (F32([5e5, 6e5, 4e5, 1e5, 5e4, 10]), F32([5e5, 6e5, 4e5, 1e5, 5e4, 11]), True),  # small by chance
        (F32(-1e9), F32(-1e9), True),
        ({"a": 1.0, "b": 3.0}, {"b": 3.0, "a": 1.0}, True),
        ({"a": 1.0}, {"b": 1.0}, False),
        ({"a": 1.0}, F32([1]), False),
        ([{0: 0.1, 1: 100.0}, {0: 1e-3}], [{0: 0.1, 1: 100.0}, {0: 2e-3}], True),  # one array of all
        ([{0: 0.1, 1: 1.0}], [{0: 0.1, 1: 1.01}], False),
        ([{0: 1.0}], [F32([1])], False),
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


def test_maps_are_compared_as_arrays() -> None:
    assert compare([{0: 1.0, 1: 4.0}], [{0: 2.0, 1: 4.0}]).relative == 0.25
    assert compare([{0: 1.0}], [{1: 1.0}]).note == "expected a map of [0], found one of [1]"
    assert compare({"a": 1.0}, F32([1])).note == "expected a map, found float32[1]"


def test_maps_of_classes_may_round() -> None:
    """ZipMap, at the end of converted classifiers, gives a map for each sample."""
    import onnx
    from onnx import TensorProto, helper

    def classifier(*factors: str) -> onnx.ModelProto:
        body = f"s = Sigmoid(x)\n u = Mul(s, {factors[0]})\n v = Mul(u, {factors[1]})"
        model = parsed(f"g (float[N, 2] x) => () {{ {body} }}", half=F32(0.3137))
        model.opset_import.add(domain="ai.onnx.ml", version=3)
        zipped = helper.make_node("ZipMap", ["v"], ["z"], domain="ai.onnx.ml", classlabels_int64s=[0, 1])
        model.graph.node.append(zipped)
        a_map = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
        model.graph.output.append(helper.make_value_info("z", helper.make_sequence_type_proto(a_map)))
        return model

    report = validate(classifier("half", "x"), classifier("x", "half"))
    assert report.ok and 0 < report.max_relative_error < 1e-6
    assert not validate(classifier("half", "x"), classifier("s", "half")).ok


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (F32([np.nan, 1]), True),
        (F32([np.nan, np.inf]), False),
        (np.int64([0]), True),
        (F32([]), False),
        (np.zeros((0, 3), np.int64), False),
        ([], True),
        (None, True),
    ],
)
def test_something_finite(value: Any, expected: bool) -> None:
    assert has_finite(value) is expected
