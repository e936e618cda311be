"""ONNX files in and out: read whole, and written back as they were but for what was rewritten."""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

from onnx import ModelProto

from taso_gym.atomic import check_name, check_target, replacing
from taso_gym.checks import check_kind, check_path, check_sizes
from taso_gym.errors import ModelError, OptionError
from taso_gym.graph import Graph
from taso_gym.onnx_io.exporter import export_model
from taso_gym.onnx_io.external import data_files, locations, move_out, write_data_file
from taso_gym.onnx_io.importer import import_model
from taso_gym.onnx_io.tensors import TensorReader
from taso_gym.onnx_io.wire import read_model, write_model
from taso_gym.signature import symbols_of
from taso_gym.weights import MappedFile

__all__ = ["copy", "from_model", "load", "save", "to_model", "with_dims"]

MOST_BYTES = 2_000_000_000
"""A larger file is beyond protocol buffers (2 GiB): its weights go to a file beside it."""


def load(source: str | Path | ModelProto, dims: Mapping[str, int] | None = None) -> Graph:
    """Read an ONNX file, or a model in memory.

    Every node becomes an operator of the table or an opaque one; nothing is left out but what has no effect (Identity,
    Dropout at inference, equal nodes, unused ones, constants that can be computed). Weights stay in their files and are
    mapped into memory; external data must lie beside the model or in folders below.

    Args:
        source: the file, or the model (`from_model` takes one whose external data lie somewhere else).
        dims: values of dimension symbols, by name, for costs, observations and drawn inputs. They enter neither the
            graph nor a file that it is saved to.

    Raises:
        ModelError: it isn't a valid ONNX model; the message names the node or value.
        OptionError: ``source`` is something else, or the model has no dimension of a name in ``dims``.
    """
    if isinstance(source, ModelProto):
        return with_dims(from_model(source), dims)
    file = MappedFile(check_path(source, "the path of a model or a ModelProto"))
    try:
        model, spans = read_model(file)
        graph = import_model(model, TensorReader(file, file.path.parent), spans)
    except ModelError as error:
        raise error if str(file.path) in str(error) else ModelError(f"{file.path}: {error}") from error
    return with_dims(graph, dims)


def with_dims(graph: Graph, dims: Mapping[str, int] | None) -> Graph:
    """Return a graph that knows values of its dimension symbols; see `load`.

    Raises:
        OptionError: the model has no dimension of such a name, or a size isn't a whole number from 1 on.
    """
    check_sizes(dims, 1)
    if not dims:
        return graph
    known = symbols_of(graph.type_of(v) for v in graph.info.inputs)
    choices = f"among {', '.join(sorted(known))}" if known else "(there is none, as all sizes are fixed)"
    for name in dims:
        if name not in known:
            raise OptionError(f"expected a dimension of the model's inputs {choices}, found {name!r}")
    return Graph(graph.nodes, graph.uses, graph.leaves, graph.next_id, graph.hash, replace(graph.info, dims=dict(dims)))


def from_model(model: ModelProto, folder: str | Path | None = None) -> Graph:
    """Return the graph of a model in memory, which isn't changed.

    Args:
        model: the model.
        folder: what its external data are relative to, if it has any.

    Raises:
        ModelError: it isn't a valid model; the message names the node or value.
        OptionError: it is no ModelProto.
    """
    check_kind("model", model, (ModelProto,), "a ModelProto (`load` takes a path, too)")
    return import_model(model, TensorReader(None, None if folder is None else Path(folder)), {})


def to_model(graph: Graph) -> ModelProto:
    """Return a graph as a model in memory, weights included.

    Raises:
        ModelError: an operator that the file's opset doesn't have, or more than protocol buffers can hold.
        OptionError: it is no Graph.
    """
    check_kind("graph", graph, (Graph,), "a Graph")
    exported = export_model(graph)
    size = exported.model.ByteSize() + sum(i.size_bytes for i in exported.initializers)
    if size > MOST_BYTES:
        raise ModelError(f"expected a model of at most {MOST_BYTES} bytes, found {size}; save it to a file instead")
    exported.model.graph.initializer.extend(i.whole() for i in exported.initializers)
    return exported.model


def save(graph: Graph, path: str | Path, *, final: str | Path | None = None) -> None:
    """Write a graph as an ONNX file, whole or not at all; of two files the model comes last.

    Names, order and types of inputs and outputs, opset imports, IR version, metadata, functions and dynamic dimensions
    are those of the file that it was loaded from. A model above 2 GB, or whose weights were outside its file, gets
    them in ``<path>.data`` beside it, or in ``<path>.1.data`` where a file of that name belongs to something else.

    Args:
        graph: the graph.
        path: the file.
        final: where the caller is going to move it, with its data file, if not there already.

    Raises:
        ModelError: an operator that the file's opset doesn't have.
        OptionError: the folder doesn't exist or can't be written, or an argument of a wrong kind.
    """
    check_kind("graph", graph, (Graph,), "a Graph")
    target = check_target(path)
    exported = export_model(graph)
    size = exported.model.ByteSize() + sum(i.size_bytes for i in exported.initializers)
    with replacing(target) as temporary:
        if graph.info.external or size > MOST_BYTES:
            data = temporary.with_name(_data_name(Path(final or target)))
            exported, outside = move_out(exported, data.name)
            if outside:
                write_data_file(data, outside)
        with temporary.open("wb") as out:
            write_model(out, exported.model, exported.initializers)


def _data_name(target: Path) -> str:
    """Return a name for a model's data file: of a file that isn't there, or that only the model there refers to."""
    own = _refers_to(target)
    if own:
        place = str(target.parent.resolve() / target.name)  # links to it will be links to the new model
        others = (f for f in target.parent.glob("*") if f.name != target.name and os.path.realpath(f) != place)
        own -= set().union(*map(_refers_to, others))  # copies of the model, whatever they are called
    names = (f"{target.name}{f'.{number}' if number else ''}.data" for number in count())
    check_name(target.with_name(f"{target.name}.data"))
    return next(name for name in names if name in own or not target.with_name(name).exists())


def _refers_to(path: Path) -> set[str]:
    """Return the names of the data files of a model; none where there is no model, or more than can be one."""
    try:
        return locations(path) if path.is_file() and path.stat().st_size <= MOST_BYTES else set()
    except (ModelError, OSError):
        return set()


def copy(source: str | Path, path: str | Path) -> None:
    """Copy a model file byte by byte, with the files beside it that hold its weights, whole or not at all.

    Raises:
        ModelError: it isn't a model, or its weights aren't below its folder.
        OptionError: the folder can't be written, or another file there has the name of one that has to be copied.
    """
    origin, target = Path(source), Path(path)
    with replacing(target) as temporary:
        shutil.copyfile(origin, temporary)
        for name in data_files(origin):
            there = target.parent / name
            if there.resolve() == target.resolve():
                raise OptionError(f"expected another name than {target}, which {origin.name} has for its weights")
            if there.exists() and not filecmp.cmp(there, origin.parent / name, shallow=False):
                raise OptionError(f"expected no other file at {there}, which {origin.name} refers to")
            if not there.exists():
                data = temporary.parent / name
                data.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(origin.parent / name, data)
