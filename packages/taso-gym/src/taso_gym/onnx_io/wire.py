"""Reading and writing model files without holding the weights in memory.

Protobuf's parser copies every tensor, its writer again. `read_model` walks the file's fields, leaves the large
tensors where they are and parses the rest; `write_model` streams them out one by one. Both know only four field
numbers of the ONNX schema and the wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple, Protocol

from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto

from taso_gym.errors import ModelError
from taso_gym.weights import MappedFile

MODEL_GRAPH, GRAPH_INITIALIZER, TENSOR_RAW_DATA = 7, 5, 9
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
MAPPED_BYTES = 1 << 16
"""Tensors from this size on stay in the file."""


class Span(NamedTuple):
    """Where the bytes of a tensor lie in a file."""

    offset: int
    size: int


class _Field(NamedTuple):
    """A field on the wire: its number, where its tag begins, where its payload begins and ends."""

    number: int
    wire_type: int
    tag: int
    start: int
    end: int


def read_model(file: MappedFile) -> tuple[ModelProto, dict[int, Span]]:
    """Parse a model file but for its large initializers.

    Returns:
        The model, and where the data of its initializers (by index) lie that were left in the file.

    Raises:
        ModelError: the file is truncated, or isn't an ONNX model.
    """
    data = file.data.data
    try:
        pieces, spans = _without_large_tensors(data)
        model = ModelProto.FromString(b"".join(pieces))
    except (DecodeError, _WireError) as error:
        raise ModelError(f"expected an ONNX model, found a truncated or other file in {file.path}: {error}") from error
    return model, spans


class _WireError(Exception):
    """Bytes that are no protocol buffer."""


def _without_large_tensors(data: memoryview) -> tuple[list[memoryview | bytes], dict[int, Span]]:
    pieces: list[memoryview | bytes] = []
    spans: dict[int, Span] = {}
    count = 0
    for field in _fields(data, 0, len(data)):
        if field.number != MODEL_GRAPH or field.wire_type != LENGTH:
            pieces.append(data[field.tag : field.end])
            continue
        graph: list[memoryview | bytes] = []
        for inner in _fields(data, field.start, field.end):
            if inner.number != GRAPH_INITIALIZER or inner.wire_type != LENGTH:
                graph.append(data[inner.tag : inner.end])
                continue
            if inner.end - inner.start < MAPPED_BYTES:
                graph.append(data[inner.tag : inner.end])
            else:
                tensor, span = _without_raw_data(data, inner)
                graph.append(_message(GRAPH_INITIALIZER, tensor))
                if span:
                    spans[count] = span
            count += 1
        pieces.append(_message(MODEL_GRAPH, b"".join(graph)))
    return pieces, spans


def _without_raw_data(data: memoryview, tensor: _Field) -> tuple[bytes, Span | None]:
    kept: list[memoryview] = []
    span = None
    for field in _fields(data, tensor.start, tensor.end):
        if field.number == TENSOR_RAW_DATA and field.wire_type == LENGTH:
            span = Span(field.start, field.end - field.start)
        else:
            kept.append(data[field.tag : field.end])
    return b"".join(kept), span


def _fields(data: memoryview, position: int, end: int) -> Iterator[_Field]:
    while position < end:
        tag = position
        key, position = _varint(data, position, end)
        number, wire_type = key >> 3, key & 7
        size = 0
        if wire_type == VARINT:
            start, (_, position) = position, _varint(data, position, end)
        elif wire_type in (FIXED64, FIXED32):
            start, position = position, position + (8 if wire_type == FIXED64 else 4)
        elif wire_type == LENGTH:
            size, start = _varint(data, position, end)
            position = start + size
        else:
            raise _WireError(f"wire type {wire_type} at byte {tag}")
        if position > end or number == 0:
            raise _WireError(f"field {number} at byte {tag} goes beyond byte {end}")
        yield _Field(number, wire_type, tag, start, position)


def _varint(data: memoryview, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 64:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise _WireError(f"no number at byte {position}")


class Tensor(Protocol):
    """A tensor whose data are read when they are written."""

    @property
    def tensor(self) -> TensorProto:
        """The tensor without these data."""
        ...

    @property
    def size_bytes(self) -> int:
        """Bytes of the data; 0 where the tensor is whole without them."""
        ...

    def pieces(self) -> Iterator[memoryview]:
        """Yield the data."""
        ...


def write_model(out: IO[bytes], model: ModelProto, initializers: Sequence[Tensor]) -> None:
    """Write a model and further initializers, whose data come one by one."""
    graph = model.graph.SerializeToString(deterministic=True)
    rest = ModelProto()
    rest.CopyFrom(model)
    rest.ClearField("graph")
    heads = [_head(i) for i in initializers]
    sizes = [len(head) + i.size_bytes for head, i in zip(heads, initializers, strict=True)]
    keys = [_key(GRAPH_INITIALIZER, size) for size in sizes]
    out.write(rest.SerializeToString(deterministic=True))
    out.write(_key(MODEL_GRAPH, len(graph) + sum(sizes) + sum(map(len, keys))))
    out.write(graph)
    for key, head, initializer in zip(keys, heads, initializers, strict=True):
        out.write(key + head)
        write_data(out, initializer)


def _head(initializer: Tensor) -> bytes:
    head = initializer.tensor.SerializeToString(deterministic=True)
    return head + _key(TENSOR_RAW_DATA, initializer.size_bytes) if initializer.size_bytes else head


def write_data(out: IO[bytes], tensor: Tensor) -> None:
    """Write the data of a tensor."""
    written = sum(out.write(piece) for piece in tensor.pieces())
    assert written == tensor.size_bytes, f"{tensor.tensor.name}: {tensor.size_bytes} bytes were written as {written}"


def _message(number: int, payload: bytes) -> bytes:
    return _key(number, len(payload)) + payload


def _key(number: int, size: int) -> bytes:
    """Return the tag and length in front of a length-delimited field."""
    return _encode_varint(number << 3 | LENGTH) + _encode_varint(size)


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
