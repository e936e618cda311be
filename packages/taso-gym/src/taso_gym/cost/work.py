"""Work of a signature: floating-point operations and bytes, with every dimension bound."""

from __future__ import annotations

from typing import NamedTuple

from taso_gym.cost.dims import Dims, size_bytes
from taso_gym.ops import Operator
from taso_gym.signature import Signature
from taso_gym.tensor import Poly, TensorType

READS_PART = frozenset({"Gather", "GatherElements", "GatherND", "Slice"})
"""Operators that read no more of their first input than they write."""


class Work(NamedTuple):
    """What a node has to do, whatever the device.

    Attributes:
        flops: floating-point operations; 0 for an opaque operator, whose arithmetic isn't known.
        bytes_moved: bytes of all inputs, read once, and of all outputs.
        dtype: element type that it computes in.
    """

    flops: int
    bytes_moved: int
    dtype: str


def work(sig: Signature, dims: Dims) -> Work:
    """Return the work of a signature."""
    types = [*sig.inputs, *sig.outputs]
    bound = dims.bind(types)
    inputs, outputs = bound[: len(sig.inputs)], bound[len(sig.inputs) :]
    written = sum(map(size_bytes, outputs))
    read = sum(map(size_bytes, inputs))
    if sig.op.name in READS_PART:
        read -= max(size_bytes(inputs[0]) - written, 0)
    elif sig.op.name == "Shape":
        read = 0
    flops = 0
    if isinstance(sig.op, Operator):
        attrs = {name: dims.bind_attr(value, types) for name, value in sig.attrs}
        found = sig.op.flops(inputs, tuple(outputs), attrs)  # pyright: ignore[reportArgumentType]
        assert not isinstance(found, Poly), f"{sig}: {found} operations with every dimension bound"
        flops = found
    first = next((t for t in inputs if isinstance(t, TensorType)), None)
    return Work(flops, read + written, first.dtype if first else "float")
