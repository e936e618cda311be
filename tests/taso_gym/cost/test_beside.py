"""Large weights beside a model: which are, and in what memory."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from taso_gym.cost.beside import ALIGNED, LARGE_BYTES, aligned, is_aligned, is_large, repeated


@pytest.mark.parametrize(
    ("dtype", "expected"), [(np.float32, True), (np.int8, True), (np.bool_, False), (ml_dtypes.bfloat16, False)]
)
def test_large_numbers_of_numpys_own_types_are_beside(dtype: type, expected: bool) -> None:
    assert is_large(np.zeros(LARGE_BYTES, dtype)) is expected
    assert not is_large(np.zeros(7, dtype))


@pytest.mark.parametrize("shape", [(3, 5), (), (0, 4), (1 << 16, 7)])
def test_a_weight_is_copied_to_an_address_like_those_in_a_model(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    found = aligned(values)
    assert found.ctypes.data % ALIGNED == 0 and found.flags["C_CONTIGUOUS"]
    assert found.shape == shape and not np.shares_memory(found, values)
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("shape", [(), (0, 3), (2,), (3, 5), (7, 11)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_a_block_is_repeated_where_it_need_not_be_copied(shape: tuple[int, ...], dtype: type) -> None:
    block = np.arange(1, 5).astype(dtype)
    found = repeated(block, shape)
    assert is_aligned(found)
    assert (found.shape, found.dtype) == (shape, block.dtype)
    assert np.array_equal(found, np.resize(block, shape))
