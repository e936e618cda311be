"""Files are read and written as the protobuf library does it, without its copies."""

import io
from pathlib import Path

import numpy as np
import pytest
from model_texts import parsed
from onnx import ModelProto, TensorProto, numpy_helper

from taso_gym.errors import ModelError
from taso_gym.onnx_io.initializers import initializer
from taso_gym.onnx_io.wire import MAPPED_BYTES, read_model, write_model
from taso_gym.weights import ArrayWeight, MappedFile

LARGE = np.arange(MAPPED_BYTES // 4 + 1, dtype=np.float32)


def model_with(**weights: np.ndarray) -> ModelProto:
    return parsed("g (float[1] x) => (y) { y = Relu(x) }", **weights)


def mapped(tmp_path: Path, data: bytes) -> MappedFile:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    return MappedFile(path)


def test_reading_leaves_large_tensors_where_they_are(tmp_path: Path) -> None:
    model = model_with(small=np.zeros(3, np.float32), large=LARGE, last=LARGE[::-1].copy())
    data = model.SerializeToString()
    found, spans = read_model(mapped(tmp_path, data))
    assert sorted(spans) == [1, 2]
    for index, span in spans.items():
        assert data[span.offset : span.offset + span.size] == model.graph.initializer[index].raw_data
        model.graph.initializer[index].ClearField("raw_data")
    assert found == model


def test_a_graph_in_several_parts_is_put_together(tmp_path: Path) -> None:
    """Protobuf allows a message to come in parts, which are merged."""
    first, second = model_with(a=LARGE), ModelProto()
    second.graph.initializer.append(numpy_helper.from_array(LARGE, "b"))
    found, spans = read_model(mapped(tmp_path, first.SerializeToString() + second.SerializeToString()))
    assert [t.name for t in found.graph.initializer] == ["a", "b"]
    assert sorted(spans) == [0, 1]


def test_fields_that_this_version_does_not_know_are_kept(tmp_path: Path) -> None:
    unknown = b"\xfa\x3e\x03abc" + b"\xf5\x3e1234" + b"\xf1\x3e12345678"  # fields 1007 (text) and 1006 (fixed)
    found, _ = read_model(mapped(tmp_path, model_with(a=LARGE).SerializeToString() + unknown))
    assert found.SerializeToString().endswith(unknown)


@pytest.mark.parametrize("data", [b"\x3b", b"\x3a\x05\x2a", b"\x02\x00", b"\x3a" + b"\xff" * 11, b"\x3a\x7f"])
def test_what_is_no_message(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ModelError, match="truncated or other file"):
        read_model(mapped(tmp_path, data))


def test_writing_gives_what_protobuf_reads() -> None:
    arrays = {
        "floats": LARGE.reshape(-1, 1),
        "transposed": np.arange(6, dtype=np.int64).reshape(2, 3).T,
        "empty": np.zeros((0, 3), np.float32),
        "scalar": np.float32(3),
    }
    model = model_with(inside=np.ones(2, np.float32))
    weights = {
        name: ArrayWeight(np.asarray(a), "int64" if a.dtype == np.int64 else "float") for name, a in arrays.items()
    }
    out = io.BytesIO()
    write_model(out, model, [initializer(name, weight) for name, weight in weights.items()])
    found = ModelProto.FromString(out.getvalue())
    assert [t.name for t in found.graph.initializer] == ["inside", *arrays]
    for tensor, array in zip(found.graph.initializer[1:], arrays.values(), strict=True):
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), array)
    assert found.graph.node == model.graph.node


def test_strings_are_written_whole() -> None:
    out = io.BytesIO()
    values = np.array(["a", "\udcff"], object)
    write_model(out, model_with(), [initializer("s", ArrayWeight(values, "string"))])
    (tensor,) = ModelProto.FromString(out.getvalue()).graph.initializer
    assert tensor.data_type == TensorProto.STRING
    assert list(tensor.string_data) == [b"a", b"\xff"]
