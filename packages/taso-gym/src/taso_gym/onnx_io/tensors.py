"""Tensors of a file as weights, wherever their data are."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from taso_gym.errors import ModelError
from taso_gym.graph import Weight
from taso_gym.onnx_io.initializers import initializer
from taso_gym.onnx_io.wire import Span
from taso_gym.tensor import TensorType, dtype_code, dtype_name, itemsize_bits, numpy_dtype
from taso_gym.weights import ArrayWeight, MappedFile, MappedWeight


class TensorReader:
    """Makes weights of a model's tensors, wherever their data are."""

    def __init__(self, file: MappedFile | None, folder: Path | None) -> None:
        """Take the model file (None for a model in memory) and the folder that external data are relative to."""
        self._file, self._folder = file, folder
        self._data_files: dict[str, MappedFile] = {}

    @property
    def used_external(self) -> bool:
        """Whether a tensor was read whose data are outside the model file."""
        return bool(self._data_files)

    def read(self, tensor: TensorProto, where: str, span: Span | None = None) -> Weight:
        """Return the value of a tensor.

        Args:
            tensor: as in the file.
            where: what it is, for messages.
            span: where its raw data were left in the model file.

        Raises:
            ModelError: type, shape and data don't fit together, or external data can't be read.
        """
        dtype, shape = tensor_type(tensor, where)
        if tensor.data_location == TensorProto.EXTERNAL:
            return self._external(tensor, dtype, shape, where)
        if span:
            assert self._file is not None
            return _mapped(self._file, span, dtype, shape, where)
        return ArrayWeight(inline_values(tensor, dtype, shape, where), dtype)

    def inlined(self, tensor: TensorProto, where: str) -> TensorProto:
        """Return a tensor of a subgraph with its external data in it."""
        dtype, shape = tensor_type(tensor, where)
        return initializer(tensor.name, self._external(tensor, dtype, shape, where)).whole()

    def _external(self, tensor: TensorProto, dtype: str, shape: tuple[int, ...], where: str) -> Weight:
        entries = {e.key: e.value for e in tensor.external_data}
        location = entries.get("location", "")
        if self._folder is None:
            raise ModelError(
                f"{where}: expected its data in the model, found them in {location!r} in an unknown folder"
            )
        if not is_inside(location):
            raise ModelError(f"{where}: expected external data beside the model, found the path {location!r}")
        path = self._folder / location
        if not path.is_file():
            raise ModelError(f"{where}: expected external data in {path}, found no such file")
        if location not in self._data_files:
            self._data_files[location] = MappedFile(path)
        file, needed = self._data_files[location], size_bytes(dtype, shape)
        try:
            offset, size = int(entries.get("offset", 0)), int(entries.get("length", needed))
        except ValueError as error:
            raise ModelError(f"{where}: expected offset and length as numbers, found {entries}") from error
        if offset < 0 or size < 0 or offset + size > file.size_bytes:
            raise ModelError(
                f"{where}: expected bytes {offset} to {offset + size} in {path}, found {file.size_bytes} bytes"
            )
        return _mapped(file, Span(offset, size), dtype, shape, where)


def is_inside(location: str) -> bool:
    """Whether a relative path stays in its folder, in the words of POSIX and of Windows."""
    paths = PurePosixPath(location), PureWindowsPath(location)
    return bool(location) and "\0" not in location and not any(p.anchor or ".." in p.parts for p in paths)


def _mapped(file: MappedFile, span: Span, dtype: str, shape: tuple[int, ...], where: str) -> Weight:
    _expect_size(span.size, dtype, shape, where)
    if dtype == "string":
        raise ModelError(f"{where}: expected numbers as raw data, found strings")
    if itemsize_bits(dtype) < 8 or not span.size:
        data = file.data[span.offset : span.offset + span.size].tobytes()
        return ArrayWeight(_from_raw(data, dtype, shape), dtype)
    return MappedWeight(file, span.offset, dtype, shape)


def tensor_type(tensor: TensorProto, where: str) -> tuple[str, tuple[int, ...]]:
    """Return the element type and shape that a tensor declares.

    Raises:
        ModelError: they are none, or it is a segment of a tensor.
    """
    if tensor.HasField("segment"):
        raise ModelError(f"{where}: expected a whole tensor, found a segment")
    shape = tuple(tensor.dims)
    if any(d < 0 for d in shape):
        raise ModelError(f"{where}: expected dimensions of 0 or more, found {list(shape)}")
    return dtype_of(tensor.data_type, where), shape


def dtype_of(code: int, where: str) -> str:
    """Return the name of an element type.

    Raises:
        ModelError: ONNX has none of this number.
    """
    try:
        name = dtype_name(code)
        numpy_dtype(name)
    except (ValueError, KeyError) as error:
        raise ModelError(f"{where}: expected an element type of ONNX, found number {code}") from error
    return name


def size_bytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Return the bytes of a tensor's data in a file."""
    return TensorType(dtype, shape).size_bytes


def _expect_size(found: int, dtype: str, shape: tuple[int, ...], where: str) -> None:
    needed = size_bytes(dtype, shape)
    if found != needed:
        raise ModelError(f"{where}: expected {needed} bytes for {TensorType(dtype, shape)}, found {found}")


_VALUES_FIELD = {
    "float": "float_data",
    "complex64": "float_data",
    "double": "double_data",
    "complex128": "double_data",
    "int64": "int64_data",
    "uint32": "uint64_data",
    "uint64": "uint64_data",
    "string": "string_data",
}
"""Where a tensor holds its values that has no raw data; all other types are in ``int32_data``."""


def inline_values(tensor: TensorProto, dtype: str, shape: tuple[int, ...], where: str) -> NDArray[Any]:
    """Return the values of a tensor that holds them itself.

    Raises:
        ModelError: their number or kind isn't that of type and shape.
    """
    if tensor.HasField("raw_data"):
        data = tensor.raw_data
        if dtype == "string":
            raise ModelError(f"{where}: expected strings in string_data, found raw data")
        _expect_size(len(data), dtype, shape, where)
        return _from_raw(data, dtype, shape)
    elements = int(np.prod(shape, dtype=object))
    field = _VALUES_FIELD.get(dtype, "int32_data")
    bits = itemsize_bits(dtype)
    needed = (elements * bits + 7) // 8 if bits < 8 else elements * (2 if dtype.startswith("complex") else 1)
    found = len(getattr(tensor, field))
    if found != needed:
        raise ModelError(f"{where}: expected {needed} values for {TensorType(dtype, shape)} in {field}, found {found}")
    if dtype == "string":
        return strings([bytes(s) for s in tensor.string_data], shape)
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelError(f"{where}: expected values of {dtype}, found others: {error}") from error


def strings(values: list[bytes], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array of Python strings; bytes that aren't UTF-8 survive as surrogates."""
    result = np.empty(len(values), object)
    result[:] = [v.decode("utf-8", "surrogateescape") for v in values]
    return result.reshape(shape)


def _from_raw(data: bytes, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    if itemsize_bits(dtype) < 8:
        return numpy_helper.to_array(TensorProto(dims=shape, data_type=dtype_code(dtype), raw_data=data))
    return np.frombuffer(data, numpy_dtype(dtype)).reshape(shape)
