"""Constants that a file stores as positions and values."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import SparseTensorProto, TensorProto, numpy_helper

from taso_gym.errors import ModelError
from taso_gym.onnx_io.tensors import dtype_of, inline_values, tensor_type
from taso_gym.tensor import numpy_dtype


@dataclass(frozen=True)
class SparseWeight:
    """A constant that a file stores as positions and values.

    Attributes:
        proto: the serialised ``SparseTensorProto`` without its name.
        dtype, shape: of the dense tensor that it stands for.
    """

    proto: bytes
    dtype: str
    shape: tuple[int, ...]
    splat = None

    @property
    def digest(self) -> str:
        """Hash of the content as stored."""
        return blake2b(self.proto, digest_size=16).hexdigest()

    def array(self) -> NDArray[Any]:
        """Return the dense tensor."""
        proto = SparseTensorProto.FromString(self.proto)
        values, indices = numpy_helper.to_array(proto.values), numpy_helper.to_array(proto.indices)
        dense = np.zeros(self.shape, numpy_dtype(self.dtype))
        if indices.ndim == 1:
            dense.reshape(-1)[indices] = values
        else:
            dense[tuple(indices.T)] = values
        return dense


def sparse_weight(sparse: SparseTensorProto, where: str) -> SparseWeight:
    """Return the value of a sparse initializer.

    Raises:
        ModelError: positions and values don't fit together, or are in another file.
    """
    if TensorProto.EXTERNAL in (sparse.values.data_location, sparse.indices.data_location):
        raise ModelError(f"{where}: expected positions and values in the model, found external data, which aren't read")
    dtype, _ = tensor_type(sparse.values, where)
    shape = tuple(sparse.dims)
    values, indices = inline_values(sparse.values, dtype, tuple(sparse.values.dims), where), sparse.indices
    places = inline_values(indices, dtype_of(indices.data_type, where), tuple(indices.dims), where)
    linear = places.ndim == 1
    if values.ndim != 1 or any(d < 0 for d in shape):
        raise ModelError(f"{where}: expected a list of values in a shape, found {list(values.shape)} in {list(shape)}")
    limits = np.array([int(np.prod(shape, dtype=object))] if linear else shape, object)
    expected = (len(values),) if linear else (len(values), len(shape))
    if places.dtype != np.int64 or places.shape != expected or (places < 0).any() or (places >= limits).any():
        raise ModelError(f"{where}: expected {len(values)} positions in a tensor of shape {list(shape)}, found others")
    nameless = SparseTensorProto()
    nameless.CopyFrom(sparse)
    nameless.values.ClearField("name")
    nameless.indices.ClearField("name")
    return SparseWeight(nameless.SerializeToString(deterministic=True), dtype, shape)
