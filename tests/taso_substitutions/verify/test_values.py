import numpy as np
import pytest

from taso_gym.rules.notation import parse_rules
from taso_gym.tensor import TensorType
from taso_substitutions.verify.instance import Instance
from taso_substitutions.verify.values import different_bits, numbers, relative_error, residues, special_numbers

RULE = parse_rules("f: Gather(x, i, axis=1) => Gather(x, i, axis=1)")[0]
INSTANCE = Instance({"x": TensorType("float", (2, 3)), "i": TensorType("int64", (50,))}, {}, {}, "scalar", 20)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_indices_stay_inside_their_axis_and_count_from_the_end_too() -> None:
    assert set(numbers(RULE, INSTANCE, rng(), "wide")["i"].tolist()) == {-3, -2, -1, 0, 1, 2}


def test_numbers_have_the_type_and_style_of_their_tensor() -> None:
    x = numbers(RULE, INSTANCE, rng(), "positive")["x"]
    assert x.dtype == np.float32 and x.shape == (2, 3) and x.min() >= 0.1


def test_residues_lie_below_the_prime() -> None:
    assert 0 <= residues(RULE, INSTANCE, rng(), 7)["x"].min() <= residues(RULE, INSTANCE, rng(), 7)["x"].max() < 7


def test_special_numbers_hold_what_is_not_finite() -> None:
    instance = Instance({"x": TensorType("float", (50, 3)), "i": TensorType("int64", ())}, {}, {}, "scalar", 20)
    x = special_numbers(RULE, instance, rng())["x"]
    assert np.isnan(x).any() and np.isinf(x).any()


@pytest.mark.parametrize(
    ("reference", "other", "error"),
    [
        ([2.0, 4.0], [2.0, 5.0], 0.25),
        ([0.0, 0.0], [0.0, 0.5], 0.5),
        ([np.inf, 1.0], [7.0, 1.0], 0.0),
        ([1.0], [np.nan], np.inf),
    ],
)
def test_errors_are_relative_to_the_largest_finite_element(
    reference: list[float], other: list[float], error: float
) -> None:
    assert relative_error(np.array(reference), np.array(other))[0] == error


def test_nothing_finite_has_no_place() -> None:
    assert relative_error(np.array([np.nan]), np.array([1.0])) == (0.0, None)


@pytest.mark.parametrize(
    ("a", "b", "place"), [(0.0, -0.0, (0,)), (np.nan, np.nan, None), (1.0, 1.0, None), (1.0, 2.0, (0,))]
)
def test_bits_differ_in_the_sign_of_zero_but_not_among_nans(a: float, b: float, place: tuple[int, ...] | None) -> None:
    assert different_bits(np.array([a]), np.array([b])) == place
