"""Types of values: an element type and a shape, or what isn't a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from onnx import TensorProto, helper

from taso_gym.symbolic import Shape, bind, product


class TensorType(NamedTuple):
    """Type of a tensor value.

    ``dtype`` is ONNX's name in lower case ("float", "int64", "bfloat16", …); ``shape`` is None where the rank isn't
    known; ``const`` is true where the value doesn't depend on any graph input, so that it is folded on save.
    """

    dtype: str
    shape: Shape | None
    const: bool = False

    def __str__(self) -> str:
        """Write it as ``float[1, 128, 768]``; ``const`` is put in front of a constant's."""
        dims = "?" if self.shape is None else ", ".join(map(str, self.shape))
        return f"{'const ' if self.const else ''}{self.dtype}[{dims}]"

    @property
    def is_static(self) -> bool:
        """Whether every dimension is an integer."""
        return self.shape is not None and all(isinstance(d, int) for d in self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes of the value; sub-byte types are packed. Needs a static shape."""
        count = product(self.shape or ())
        assert self.shape is not None and isinstance(count, int), f"{self} has no static size"
        return (count * itemsize_bits(self.dtype) + 7) // 8

    def bind(self, dims: Mapping[str, int]) -> TensorType:
        """Replace the symbols that ``dims`` binds."""
        if self.shape is None or self.is_static:
            return self
        return self._replace(shape=tuple(bind(d, dims) for d in self.shape))


@dataclass(frozen=True)
class OtherType:
    """Type of a sequence, optional, map or sparse value, as a serialised ``TypeProto``; it is only carried along."""

    proto: bytes
    const: bool = False

    @cached_property
    def is_static(self) -> bool:
        """Always false: its size isn't known before it runs."""
        return False


ValueType = TensorType | OtherType

FLOATS = frozenset({"float", "double", "float16", "bfloat16"})
_BITS = {"uint4": 4, "int4": 4, "float4e2m1": 4, "uint2": 2, "int2": 2, "string": 64}


def dtype_name(elem_type: int) -> str:
    """Return the name of an ONNX ``TensorProto.DataType``."""
    return TensorProto.DataType.Name(elem_type).lower()


def dtype_code(name: str) -> int:
    """Return the ONNX ``TensorProto.DataType`` of a name."""
    return TensorProto.DataType.Value(name.upper())


def numpy_dtype(name: str) -> np.dtype:
    """Return the NumPy element type that ONNX stores a dtype as."""
    return np.dtype(helper.tensor_dtype_to_np_dtype(dtype_code(name)))


def itemsize_bits(name: str) -> int:
    """Return the bits of an element; a string counts as a pointer."""
    return _BITS.get(name) or numpy_dtype(name).itemsize * 8
