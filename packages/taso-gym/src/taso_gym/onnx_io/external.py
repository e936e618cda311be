"""Weights in a file of their own beside the model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from onnx import TensorProto

from taso_gym.errors import ModelError
from taso_gym.onnx_io.exporter import Exported
from taso_gym.onnx_io.initializers import Initializer, initializer
from taso_gym.onnx_io.scope import inner_graphs, inner_tensors
from taso_gym.onnx_io.tensors import TensorReader, is_inside
from taso_gym.onnx_io.wire import read_model, write_data
from taso_gym.weights import MappedFile

LEAST_BYTES = 1024
"""Smaller tensors stay in the model: onnxruntime reads shapes and scales from there."""
ALIGNMENT = 4096
"""Tensors begin on a page, so that a runtime can map them."""


class Placed(NamedTuple):
    """A tensor and where it goes in the data file."""

    tensor: Initializer
    offset: int


def refer(tensor: TensorProto, location: str, offset: int, length: int) -> None:
    """Say of a tensor without data that it has so many bytes of a file; onnx says it only of one that has them yet."""
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)


def move_out(exported: Exported, location: str) -> tuple[Exported, list[Placed]]:
    """Return a model that refers to a data file for its large tensors, and what that file is to hold.

    Args:
        exported: the model; tensors in its subgraphs are changed in place.
        location: name of the data file.
    """
    placed: list[Placed] = []
    end = 0

    def place(tensor: Initializer) -> TensorProto:
        nonlocal end
        placed.append(Placed(tensor, end))
        result = TensorProto()
        result.MergeFrom(tensor.tensor)
        refer(result, location, end, tensor.size_bytes)
        end = -(-(end + tensor.size_bytes) // ALIGNMENT) * ALIGNMENT
        return result

    initializers = [
        replace(i, tensor=place(i), size_bytes=0) if i.size_bytes >= LEAST_BYTES else i for i in exported.initializers
    ]
    reader = TensorReader(None, None)
    for node in exported.model.graph.node:
        for tensor in (t for graph in inner_graphs(node) for t in graph.initializer):
            if len(tensor.raw_data) >= LEAST_BYTES:
                tensor.CopyFrom(place(initializer(tensor.name, reader.read(tensor, tensor.name))))
    return Exported(exported.model, initializers), placed


def write_data_file(path: Path, placed: Sequence[Placed]) -> None:
    """Write tensors to where they go."""
    with path.open("wb") as out:
        for tensor, offset in placed:
            out.seek(offset)
            write_data(out, tensor)


def locations(path: Path) -> set[str]:
    """Return the names of the files that a model says hold its weights, relative to its folder.

    Raises:
        ModelError: it isn't a model.
    """
    model, _ = read_model(MappedFile(path))
    inner = (t for node in model.graph.node for t in inner_tensors(node))
    outside = (t for t in (*model.graph.initializer, *inner) if t.data_location == TensorProto.EXTERNAL)
    return {e.value for t in outside for e in t.external_data if e.key == "location"}


def data_files(path: Path) -> list[str]:
    """Return the names of the files that hold a model's weights, relative to its folder.

    Raises:
        ModelError: it isn't a model, or one of them isn't below its folder.
    """
    names = sorted(locations(path))
    for name in names:
        if not is_inside(name) or not (path.parent / name).is_file():
            raise ModelError(f"{path}: expected a file with weights below its folder, found {name!r}")
    return names


def files_of(model: str | Path) -> dict[Path, str]:
    """Return the file of a model and those that hold its weights, with what is said of them, as `check_targets` does.

    There are none for the name of a network.

    Raises:
        ModelError: the file isn't a model, or one with weights isn't below its folder.
    """
    path = Path(model)
    if not os.path.isfile(path):
        return {}
    weights = {path.parent / name: f"holds weights of {path}" for name in data_files(path)}
    return {path: "is the model", **weights}
