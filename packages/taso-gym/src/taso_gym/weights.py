"""Values of constants: held, mapped from a file, or drawn from (seed, name) when something asks for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from taso_gym.tensor import TensorType, dtype_name, numpy_dtype


def content_digest(dtype: str, shape: tuple[int, ...], data: bytes | memoryview) -> str:
    """Return the hash of a tensor's element type, shape and content."""
    hasher = blake2b(f"{dtype}{list(shape)}".encode(), digest_size=16)
    hasher.update(data)
    return hasher.hexdigest()


class ArrayWeight:
    """A constant held as an array, which may be a read-only memory map."""

    def __init__(self, values: NDArray[Any], dtype: str) -> None:
        """Hold ``values``, stored in the NumPy dtype of ONNX's ``dtype``."""
        self._values, self.dtype = values, dtype

    @cached_property
    def digest(self) -> str:
        """Hash of dtype, shape and content."""
        if self.dtype == "string":
            return content_digest(self.dtype, self._values.shape, repr(self._values.tolist()).encode())
        data = np.ascontiguousarray(self._values)
        return content_digest(self.dtype, data.shape, memoryview(data.reshape(-1).view(np.uint8)))

    @cached_property
    def splat(self) -> float | None:
        """The value that every element has, or None; what a literal in a rule is compared with."""
        return splat_of(self._values)

    def array(self) -> NDArray[Any]:
        """Return the value; the caller doesn't write to it."""
        return self._values


@dataclass(frozen=True)
class GeneratedWeight:
    """A weight of a built-in network: determined by seed and name, drawn when it is needed, the same everywhere.

    Attributes:
        seed, name: what the random stream is keyed with.
        dtype, shape: of the tensor.
        mean, std: of the normal distribution that the elements are drawn from.
        positive: take absolute values (variances).
    """

    seed: int
    name: str
    dtype: str
    shape: tuple[int, ...]
    mean: float = 0.0
    std: float = 1.0
    positive: bool = False
    splat = None

    @cached_property
    def digest(self) -> str:
        """Hash of what determines the content."""
        return blake2b(repr(self).encode(), digest_size=16).hexdigest()

    def array(self) -> NDArray[Any]:
        """Draw the value."""
        key = int.from_bytes(blake2b(f"{self.seed}/{self.name}".encode(), digest_size=8).digest(), "little")
        values = np.random.default_rng(key).standard_normal(self.shape, dtype=np.float32) * self.std + self.mean
        return (np.abs(values) if self.positive else values).astype(numpy_dtype(self.dtype))


def literal(value: float | int, dtype: str, shape: tuple[int, ...] = ()) -> tuple[TensorType, ArrayWeight]:
    """Return type and value of a constant whose every element is ``value``."""
    filled = np.full(shape, value, numpy_dtype(dtype))
    return TensorType(dtype, shape, const=True), ArrayWeight(filled, dtype)


def array_weight(values: NDArray[Any]) -> tuple[TensorType, ArrayWeight]:
    """Return type and value of a constant given as an array of a dtype that NumPy and ONNX share."""
    dtype = dtype_name(helper.np_dtype_to_tensor_dtype(values.dtype))
    return TensorType(dtype, values.shape, const=True), ArrayWeight(values, dtype)


def splat_of(values: NDArray[Any]) -> float | None:
    """Return the value that every element has, or None where they differ, are none, or aren't numbers."""
    if not values.size or values.dtype.kind not in "fiub":
        return None
    first = values.reshape(-1)[0]
    return float(first) if (values == first).all() else None
