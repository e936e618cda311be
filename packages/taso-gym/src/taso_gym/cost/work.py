"""Work of a signature: floating-point operations and bytes, with every dimension bound."""

from __future__ import annotations

from typing import NamedTuple

from taso_gym.cost.dims import Dims, size_bytes
from taso_gym.cost.region import Region
from taso_gym.ops import Operator
from taso_gym.signature import Signature
from taso_gym.symbolic import Poly
from taso_gym.tensor import TensorType

READS_PART = frozenset({"Gather", "GatherElements", "GatherND", "Slice"})
"""Operators that read no more of their first input than they write."""


class Work(NamedTuple):
    """What a node has to do, whatever the device.

    Attributes:
        flops: floating-point operations; 0 for an opaque operator, whose arithmetic isn't known.
        bytes_moved: bytes of all inputs, read once, and of all outputs; of what is read in part (`READS_PART`) no more
            than is written, and nothing for a Shape.
        dtype: element type of its first input.
    """

    flops: int
    bytes_moved: int
    dtype: str


def region_work(region: Region, dims: Dims) -> Work:
    """Return the work of all nodes of a region: what is read and written at its border, and constants, are moved."""
    each = [work(part.sig, dims) for part in region.nodes]
    constants, inputs, outputs = 0, dict[int, int](), set[tuple[int, int]]((w.node, w.output) for w in region.outputs)
    written = 0
    for number, part in enumerate(region.nodes):
        reads, writes = _moved(part.sig, dims)
        written += sum(size for output, size in enumerate(writes) if (number, output) in outputs)
        for operand, size in zip(part.operands, reads, strict=True):
            if operand and operand.kind == "constant":
                constants += size
            elif operand and operand.kind == "input":
                inputs[operand.place] = max(size, inputs.get(operand.place, 0))
    return Work(sum(w.flops for w in each), constants + sum(inputs.values()) + written, each[0].dtype)


def _moved(sig: Signature, dims: Dims) -> tuple[list[int], list[int]]:
    """Return the bytes that are read of each input, and the bytes of each output."""
    sizes = list(map(size_bytes, dims.bind([*sig.inputs, *sig.outputs])))
    read, written = sizes[: len(sig.inputs)], sizes[len(sig.inputs) :]
    if sig.op.name in READS_PART:
        read[0] = min(read[0], sum(written))
    elif sig.op.name == "Shape":
        read = [0]
    return read, written


def work(sig: Signature, dims: Dims) -> Work:
    """Return the work of a signature."""
    types = [*sig.inputs, *sig.outputs]
    bound = dims.bind(types)
    inputs, outputs = bound[: len(sig.inputs)], bound[len(sig.inputs) :]
    read, written = _moved(sig, dims)
    flops = 0
    if isinstance(sig.op, Operator):
        attrs = {name: dims.bind_attr(value, types) for name, value in sig.attrs}
        found = sig.op.flops(inputs, tuple(outputs), attrs)  # pyright: ignore[reportArgumentType]
        assert not isinstance(found, Poly), f"{sig}: {found} operations with every dimension bound"
        flops = found
    first = next((t for t in inputs if isinstance(t, TensorType)), None)
    return Work(flops, sum(read) + sum(written), first.dtype if first else "float")
