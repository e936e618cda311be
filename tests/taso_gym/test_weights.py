"""Constants in all their forms: equal content has equal digests, and the array is what the type says."""

import pickle
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from taso_gym.errors import ModelError
from taso_gym.graph import Weight
from taso_gym.tensor import numpy_dtype
from taso_gym.weights import ArrayWeight, FilledWeight, GeneratedWeight, MappedFile, MappedWeight, array_weight, literal

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def mapped(tmp_path: Path) -> MappedWeight:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"123" + VALUES.tobytes() + b"4")
    return MappedWeight(MappedFile(path), 3, "float", (2, 3))


def test_every_form_is_what_it_says(mapped: MappedWeight) -> None:
    weights: list[Weight] = [
        ArrayWeight(VALUES, "float"),
        mapped,
        FilledWeight(np.float32(2).tobytes(), "float", (2, 3)),
        GeneratedWeight(0, "w", "float", (2, 3)),
        GeneratedWeight(0, "w", "bfloat16", (2, 3)),
    ]
    for weight in weights:
        array = weight.array()
        assert (array.shape, array.dtype) == (weight.shape, numpy_dtype(weight.dtype))
        assert weight.digest == pickle.loads(pickle.dumps(weight)).digest  # noqa: S301
    assert len({w.digest for w in weights}) == len(weights) - 1  # the array and the mapped one are equal


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.zeros((), np.float32), np.zeros(1, np.float32)),
        (np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32)),
        (np.zeros(2, np.float32), np.zeros(2, np.int32)),
        (np.zeros((0, 3), np.float32), np.zeros((3, 0), np.float32)),
        (np.zeros(2, np.float16), np.zeros(2, ml_dtypes.bfloat16)),
        (np.array(["a", "b"], object), np.array(["a,", "b"], object)),
    ],
)
def test_digests_tell_values_apart(a: np.ndarray, b: np.ndarray) -> None:
    def digest(values: np.ndarray) -> str:
        return ArrayWeight(values, "string").digest if values.dtype == object else array_weight(values)[1].digest

    assert digest(a) != digest(b)
    assert digest(a) == digest(a.copy())


def test_layout_makes_no_difference_to_the_digest() -> None:
    assert array_weight(VALUES.T)[1].digest == array_weight(np.ascontiguousarray(VALUES.T))[1].digest


def test_splats() -> None:
    assert literal(2.5, "float", (2, 2))[1].splat == 2.5
    assert ArrayWeight(VALUES, "float").splat is None
    assert FilledWeight(np.int64(7).tobytes(), "int64", (10**6, 10**6)).splat == 7
    assert ArrayWeight(np.zeros((0,), np.float32), "float").splat is None
    assert literal(0.5, "bfloat16", (3,))[1].splat == 0.5 == literal(0.5, "float16", (3,))[1].splat


def test_a_filled_weight_takes_no_memory() -> None:
    array = FilledWeight(np.float32(1).tobytes(), "float", (10**6, 10**6)).array()
    assert array.strides == (0, 0)
    assert array[5, 7] == 1


def test_mapped_weights_are_views_of_the_file(mapped: MappedWeight) -> None:
    assert mapped.array().tolist() == VALUES.tolist()
    assert not mapped.array().flags.writeable
    assert np.shares_memory(mapped.array(), mapped.array())
    assert mapped.splat is None


def test_a_file_that_changed_is_not_read(mapped: MappedWeight) -> None:
    mapped.file.path.write_bytes(b"other")
    with pytest.raises(ModelError, match="as it was when it was loaded"):
        mapped.array()


def test_generated_weights_are_the_same_everywhere() -> None:
    weight = GeneratedWeight(1, "layer", "float", (3,), mean=2.0, std=0.5)
    assert weight.array().tolist() == weight.array().tolist()
    assert (GeneratedWeight(1, "layer", "float", (100,), std=2.0, positive=True).array() >= 0).all()
    assert GeneratedWeight(2, "layer", "float", (3,)).array().tolist() != weight.array().tolist()


def test_a_constant_that_no_array_can_hold_is_named() -> None:
    weight = FilledWeight(np.float32(2).tobytes(), "float", (2**40, 2**40))
    assert weight.splat == 2
    with pytest.raises(ModelError, match=r"found float\[1099511627776, 1099511627776\]"):
        weight.array()
