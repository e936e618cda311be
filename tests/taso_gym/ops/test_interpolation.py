"""The weights of a resize, written out, and against onnxruntime at sizes and scales drawn at random."""

import numpy as np
import pytest
from operator_models import run_onnxruntime, stated_model
from operator_samples import Sample

from taso_gym.errors import ModelError
from taso_gym.ops.interpolation import COORDINATES, Axis, resized, weights_of

MODES = [("linear", ""), ("cubic", ""), ("nearest", "floor"), ("nearest", "ceil")]
THIRD = np.float32(1 / 3)
DOUBLED = {
    "half_pixel": [[1, 0], [0.75, 0.25], [0.25, 0.75], [0, 1]],
    "pytorch_half_pixel": [[1, 0], [0.75, 0.25], [0.25, 0.75], [0, 1]],
    "align_corners": [[1, 0], [1 - THIRD, THIRD], [THIRD, 1 - THIRD], [0, 1]],
    "asymmetric": [[1, 0], [0.5, 0.5], [0, 1], [0, 1]],
}


@pytest.mark.parametrize("at", DOUBLED)
def test_two_elements_become_four(at: str) -> None:
    np.testing.assert_allclose(weights_of(Axis(2, 4, 2.0, at), "linear"), DOUBLED[at], atol=1e-7)


def test_one_element_of_many_is_the_first_or_the_middle() -> None:
    found = {at: weights_of(Axis(5, 1, 0.2, at), "linear").tolist() for at in COORDINATES}
    first, middle = [[1, 0, 0, 0, 0]], [[0, 0, 1, 0, 0]]
    assert found == dict.fromkeys(COORDINATES, first) | {"half_pixel": middle}


def test_a_cubic_of_four_elements_between_the_middle_ones() -> None:
    """At 1.5 the outer ones count a/8 and the inner ones 1/2 - a/8, by Keys' polynomial."""
    (row,) = weights_of(Axis(4, 1, 0.25, "half_pixel"), "cubic")
    assert row.tolist() == [-3 / 32, 19 / 32, 19 / 32, -3 / 32]
    (row,) = weights_of(Axis(4, 1, 0.25, "half_pixel"), "cubic", coefficient=-0.5)
    assert row.tolist() == [-1 / 16, 9 / 16, 9 / 16, -1 / 16]


def test_the_nearest_is_one_element() -> None:
    axis = Axis(2, 3, 1.5, "asymmetric")  # at 0, 2 / 3 and 4 / 3
    assert weights_of(axis, "nearest", "floor").tolist() == [[1, 0], [1, 0], [0, 1]]
    assert weights_of(axis, "nearest", "ceil").tolist() == [[1, 0], [0, 1], [0, 1]]


def test_a_size_is_rounded_as_float32_rounds_it() -> None:
    assert (resized(100, 0.29), int(100 * 0.29)) == (29, 28)


@pytest.mark.parametrize(
    ("axis", "mode", "rounding"),
    [
        (Axis(4, 8, 2.0, "half_pixel"), "quintic", ""),
        (Axis(4, 8, 2.0, "half_pixel"), "nearest", "round_prefer_floor"),
        (Axis(4, 8, 2.0, "half_pixel_symmetric"), "linear", ""),
        (Axis(4, 4, 1.2, "half_pixel"), "linear", ""),
    ],
)
def test_what_isnt_modelled_is_refused(axis: Axis, mode: str, rounding: str) -> None:
    with pytest.raises(ModelError, match="expected a Resize"):
        weights_of(axis, mode, rounding)


@pytest.mark.parametrize("at", sorted(COORDINATES))
@pytest.mark.parametrize(("mode", "rounding"), MODES)
def test_weights_are_those_of_onnxruntime(at: str, mode: str, rounding: str) -> None:
    """The same to a few roundings of the sums of two or four; where elements are only moved, the same to the bit."""
    rng = np.random.default_rng(0)
    for _ in range(25):
        size, count = (int(n) for n in rng.integers(1, 60, 2))
        by_scale = bool(rng.random() < 0.5)
        scale = round(float(rng.uniform(0.2, 3)), int(rng.integers(0, 3))) if by_scale else count / size
        count = resized(size, scale) if by_scale else count
        if count in (0, size):
            continue
        by = {"scales": [1.0, 1.0, 1.0, scale]} if by_scale else {"sizes": [1, 1, 2, count]}
        attrs = {"mode": mode, "coordinate_transformation_mode": at, **by}
        sample = Sample("Resize", ((1, 1, 2, size),), attrs | ({"nearest_mode": rounding} if rounding else {}))
        (x,) = sample.arrays()
        (wanted,) = run_onnxruntime(stated_model(sample), {"x0": x})
        found = x.astype(np.float64) @ weights_of(Axis(size, count, scale, at), mode, rounding).T
        np.testing.assert_allclose(found, wanted, rtol=0, atol=0 if mode == "nearest" else 1e-6)
