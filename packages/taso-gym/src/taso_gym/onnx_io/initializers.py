"""Weights as tensors of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, numpy_helper

from taso_gym.graph import Weight
from taso_gym.tensor import TensorType, dtype_code, itemsize_bits
from taso_gym.weights import PIECE_BYTES, MappedWeight


def type_of(weight: Weight) -> TensorType:
    """Return the type of a constant."""
    return TensorType(weight.dtype, weight.shape, const=True)


@dataclass
class Initializer:
    """A tensor in a file, whose data are read when they are written.

    Attributes:
        tensor: the tensor without its data, but for strings.
        size_bytes: of the data; 0 for strings.
        weight: the value.
    """

    tensor: TensorProto
    size_bytes: int
    weight: Weight

    def pieces(self) -> Iterator[memoryview]:
        """Yield the data as a file holds them, without a copy where elements are whole bytes."""
        if not self.size_bytes:
            return
        if isinstance(self.weight, MappedWeight):
            yield from self.weight.pieces()
            return
        array = self.weight.array()
        if itemsize_bits(self.weight.dtype) < 8:
            yield memoryview(numpy_helper.from_array(array).raw_data)
            return
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for start in range(0, flat.size, PIECE_BYTES):
            yield flat[start : start + PIECE_BYTES].data

    def whole(self) -> TensorProto:
        """Return the tensor with its data."""
        result = TensorProto()
        result.CopyFrom(self.tensor)
        if result.data_type != TensorProto.STRING:
            result.raw_data = b"".join(self.pieces())
        return result


def initializer(name: str, weight: Weight) -> Initializer:
    """Return a constant as a tensor of a file."""
    tensor = TensorProto(name=name, data_type=dtype_code(weight.dtype), dims=weight.shape)
    if weight.dtype != "string":
        return Initializer(tensor, type_of(weight).size_bytes, weight)
    tensor.string_data.extend(str(s).encode("utf-8", "surrogateescape") for s in weight.array().reshape(-1))
    return Initializer(tensor, 0, weight)
