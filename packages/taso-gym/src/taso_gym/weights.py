"""Values of constants: held, mapped from a file, or drawn from (seed, name) when something asks for them."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from taso_gym.errors import ModelError
from taso_gym.tensor import TensorType, dtype_name, numpy_dtype

PIECE_BYTES = 1 << 24


def content_digest(dtype: str, shape: tuple[int, ...], pieces: Iterable[bytes | memoryview]) -> str:
    """Return the hash of a tensor's element type, shape and content."""
    hasher = sha256(f"{dtype}{list(shape)}".encode())  # twice as fast as BLAKE2 where the processor knows it
    for piece in pieces:
        hasher.update(piece)
    return hasher.hexdigest()[:32]


class ArrayWeight:
    """A constant held as an array, which may be a read-only memory map."""

    def __init__(self, values: NDArray[Any], dtype: str) -> None:
        """Hold ``values``, stored in the NumPy dtype of ONNX's ``dtype``."""
        self._values, self.dtype = values, dtype
        self.shape: tuple[int, ...] = values.shape

    @property
    def digest(self) -> str:
        """Hash of dtype, shape and content."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        if self.dtype == "string":
            return content_digest(self.dtype, self.shape, [repr(self._values.tolist()).encode()])
        data = np.ascontiguousarray(self._values)  # which makes a list of a scalar
        return content_digest(self.dtype, self.shape, [data.reshape(-1).view(np.uint8).data])

    @cached_property
    def splat(self) -> float | None:
        """The value that every element has, or None; what a literal in a rule is compared with."""
        return splat_of(self._values)

    def array(self) -> NDArray[Any]:
        """Return the value; the caller doesn't write to it."""
        return self._values


class MappedFile:
    """A file whose bytes are mapped into memory when something reads them; pickled, it is only a path.

    Once mapped, it is the file that it was, whatever takes its place in the folder.
    """

    def __init__(self, path: Path) -> None:
        """Remember a file by its path, size and time of change."""
        self.path, self._stamp = path, _stamp(path)

    @property
    def size_bytes(self) -> int:
        """Bytes of the file."""
        return self._stamp[0]

    @cached_property
    def data(self) -> NDArray[np.uint8]:
        """The bytes, read-only.

        Raises:
            ModelError: the file is gone, isn't the one it was, or can't be read.
        """
        return np.frombuffer(self._map, np.uint8) if self.size_bytes else np.zeros(0, np.uint8)

    @cached_property
    def _map(self) -> mmap.mmap:
        if _stamp(self.path) != self._stamp:
            raise ModelError(f"expected {self.path} as it was when it was loaded, found it changed")
        try:
            with self.path.open("rb") as file:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise ModelError(f"expected a readable file, found {self.path}: {error.strerror}") from error

    def pieces(self, offset: int, size: int) -> Iterator[memoryview]:
        """Yield a part of the file from front to back, each piece to be used before the next; no memory stays in use.

        Raises:
            ModelError: the file is gone, isn't the one it was, or can't be read.
        """
        for start in range(offset, offset + size, PIECE_BYTES):
            end = min(start + PIECE_BYTES, offset + size)
            yield self.data[start:end].data
            page = start - start % mmap.PAGESIZE
            if hasattr(self._map, "madvise"):  # not on Windows
                self._map.madvise(mmap.MADV_DONTNEED, page, end - page)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the mapping out."""
        return {k: v for k, v in self.__dict__.items() if k not in ("data", "_map")}


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise ModelError(f"expected a file, found none at {path}: {error.strerror}") from error
    return status.st_size, status.st_mtime_ns


class MappedWeight:
    """A constant that stays in its file and is mapped into memory when it is read; it pickles in a few bytes."""

    def __init__(self, file: MappedFile, offset: int, dtype: str, shape: tuple[int, ...]) -> None:
        """Refer to a tensor of whole-byte elements, stored row-major and little-endian from ``offset`` on."""
        self.file, self.offset, self.dtype, self.shape = file, offset, dtype, shape

    @property
    def digest(self) -> str:
        """Hash of dtype, shape and content."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return content_digest(self.dtype, self.shape, self.pieces())

    @cached_property
    def splat(self) -> float | None:
        """The value that every element has, or None."""
        return splat_of(self.array())

    def pieces(self) -> Iterator[memoryview]:
        """Yield the data from front to back; see `MappedFile.pieces`."""
        return self.file.pieces(self.offset, TensorType(self.dtype, self.shape).size_bytes)

    def array(self) -> NDArray[Any]:
        """Return the value, a view of the mapped file."""
        count = int(np.prod(self.shape, dtype=object))
        return np.frombuffer(self.file.data, numpy_dtype(self.dtype), count, self.offset).reshape(self.shape)


@dataclass(frozen=True)
class FilledWeight:
    """A constant whose elements are all the same, and which takes no memory (ConstantOfShape of a large shape).

    Attributes:
        element: the bytes of one element.
        dtype, shape: of the tensor.
    """

    element: bytes
    dtype: str
    shape: tuple[int, ...]

    @property
    def digest(self) -> str:
        """Hash of what determines the content."""
        return blake2b(repr(self).encode(), digest_size=16).hexdigest()

    @cached_property
    def splat(self) -> float | None:
        """The value that every element has."""
        return splat_of(np.frombuffer(self.element, numpy_dtype(self.dtype)))

    def array(self) -> NDArray[Any]:
        """Return the value, a view of one element.

        Raises:
            ModelError: no array can have so many.
        """
        try:
            return np.broadcast_to(np.frombuffer(self.element, numpy_dtype(self.dtype))[0], self.shape)
        except ValueError as error:
            found = TensorType(self.dtype, self.shape)
            raise ModelError(f"expected a constant that an array can hold, found {found}") from error


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

    @property
    def digest(self) -> str:
        """Hash of what determines the content."""
        return blake2b(repr(self).encode(), digest_size=16).hexdigest()

    def array(self) -> NDArray[Any]:
        """Draw the value."""
        key = int.from_bytes(blake2b(f"{self.seed}/{self.name}".encode(), digest_size=8).digest(), "little")
        values = np.random.default_rng(key).standard_normal(self.shape, dtype=np.float32) * self.std + self.mean
        return (np.abs(values) if self.positive else values).astype(numpy_dtype(self.dtype))


def literal(
    value: float | int | tuple[float | int, ...], dtype: str, shape: tuple[int, ...] = ()
) -> tuple[TensorType, ArrayWeight]:
    """Return type and value of a constant whose every element is ``value``, or of one axis with these items."""
    filled = np.full(shape, value, numpy_dtype(dtype))
    return TensorType(dtype, shape, const=True), ArrayWeight(filled, dtype)


def array_weight(values: NDArray[Any]) -> tuple[TensorType, ArrayWeight]:
    """Return type and value of a constant given as an array of a dtype that NumPy and ONNX share."""
    dtype = dtype_name(helper.np_dtype_to_tensor_dtype(values.dtype))
    return TensorType(dtype, values.shape, const=True), ArrayWeight(values, dtype)


def splat_of(values: NDArray[Any]) -> float | None:
    """Return the value that every element has, or None where they differ (as 0 and -0 do), are none, or no numbers."""
    if not values.size or (values.dtype.kind not in "fiub" and values.dtype.name != "bfloat16"):
        return None
    first = values.reshape(-1)[0]
    if not (values == first).all() or (first == 0 and np.signbit(values).any() != np.signbit(first)):
        return None
    return float(first)
