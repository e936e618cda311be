"""Graphs by the name of a built-in network or of a file, with sizes for their symbols."""

from __future__ import annotations

from taso_gym.cost import bind_dims
from taso_gym.graph import Graph
from taso_gym.models import build
from taso_gym.onnx_io import load, with_dims

SUFFIX = ".onnx"


def graph_of(name: str) -> Graph:
    """Return the graph of a file or of a built-in network.

    Raises:
        TasoError: there is none, or it can't be read.
    """
    graph = load(name) if name.endswith(SUFFIX) else build(name)
    return with_dims(graph, bind_dims(graph))
