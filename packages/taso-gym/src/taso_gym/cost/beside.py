"""Large weights beside a model that is measured, instead of in it.

Within a model a weight is copied when it is put there, when the model is serialised and when onnxruntime reads it, and
an optimised model is written with all that it holds: seconds for a product of 400 MB, of which the runs are a tenth.
And no model holds 2 GiB. So large ones are handed over as they lie in memory, and an optimised model says only that
it has some.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper

from taso_gym.onnx_io.external import refer

LARGE_BYTES = 1 << 20
"""From so many on a weight is beside its model."""
ELSEWHERE = "elsewhere"
"""The file that models say their large weights are in. There is none."""
ALIGNED = 64
"""Bytes that the address of a weight is a multiple of, as of those in a model."""
NUMBERS = "fiu"
"""Kinds of the types of numbers that NumPy has of its own."""


class Serialised(NamedTuple):
    """A model with what is beside it.

    Attributes:
        content: the model, or its path; it says of these weights that they are `ELSEWHERE`.
        weights: name -> value, by `Runtime.place_weight`. A session uses their memory: they have to live as long.
    """

    content: bytes | str
    weights: Mapping[str, Any]


Model = bytes | Serialised
"""A model, its large weights in it or beside it."""
Fed = tuple[Model, Mapping[str, Any]]
"""A model with values of its inputs."""


def parsed(model: Model) -> tuple[ModelProto, Mapping[str, Any]]:
    """Return a model that isn't a path, and the weights beside it."""
    content, weights = model if isinstance(model, Serialised) else Serialised(model, {})
    assert isinstance(content, bytes)
    return ModelProto.FromString(content), weights


def is_large(value: NDArray[Any]) -> bool:
    """Return whether a weight is beside its model."""
    return value.nbytes >= LARGE_BYTES and value.dtype.kind in NUMBERS


def declared(name: str, value: NDArray[Any]) -> TensorProto:
    """Return the initializer of a weight that is elsewhere."""
    code = helper.np_dtype_to_tensor_dtype(value.dtype)
    found = TensorProto(name=name, data_type=code, dims=value.shape)
    refer(found, ELSEWHERE, 0, value.nbytes)
    return found


def is_aligned(value: NDArray[Any]) -> bool:
    """Return whether an array lies in one piece at an address that is `ALIGNED`."""
    return value.flags.c_contiguous and value.ctypes.data % ALIGNED == 0


def aligned(value: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of an array that `is_aligned`."""
    found = _memory(value.shape, value.dtype)
    found[...] = value
    return found


def repeated(block: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array that `is_aligned` of a block of elements again and again, each written once."""
    found = _memory(shape, block.dtype)
    flat = found.reshape(-1)
    for begin in range(0, flat.size, max(block.size, 1)):
        flat[begin : begin + block.size] = block[: flat.size - begin]
    return found


def _memory(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + ALIGNED, np.uint8)
    return memory[-memory.ctypes.data % ALIGNED :][:size].view(dtype).reshape(shape)
