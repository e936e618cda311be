"""Softmaxes of a graph that write denormal floats: of a magnitude below 1.2e-38, which many processors are slow with.

A mask of -100 makes them, as Swin's: its weights are e to the power of that, 3.7e-44. What costs say of kernels that
read them is too low (`taso_gym.cost.in_place`), as kernels are measured with values of usual size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ValueInfoProto

from taso_gym.cost.dims import Dims, size_bytes
from taso_gym.cost.machine import available_bytes
from taso_gym.cost.runtime import Runtime
from taso_gym.cost.small_model import draw_inputs
from taso_gym.errors import OutOfMemoryError
from taso_gym.graph import Graph
from taso_gym.onnx_io import to_model

SHARE = 0.01
"""Part of what a Softmax writes that is denormal at least."""
ROOM = 0.5
"""Part of the memory that is free which what all Softmaxes write may take."""


def writing_denormals(graph: Graph, dims: Dims, runtime: Runtime) -> list[int]:
    """Return which Softmaxes of what isn't constant write many denormals on inputs that are drawn.

    Args:
        graph: it is run.
        dims: sizes that the graph leaves open.
        runtime: what it is run on.

    Raises:
        ModelError: the graph has more weights than a model in memory may have.
        CostError: onnxruntime doesn't take or run it.
        OutOfMemoryError: there is no room for what its Softmaxes write.
    """
    nodes = softmaxes(graph)
    types = [t for node_id in nodes for t in dims.bind(graph.nodes[node_id].sig.outputs)]
    if (needed := sum(map(size_bytes, types))) > (most := ROOM * available_bytes()):
        raise OutOfMemoryError(f"expected Softmaxes that write at most {most:.0f} bytes, found {needed}")
    model = to_model(graph)
    names = [node.output[0] for node in model.graph.node if node.op_type == "Softmax" and not node.domain]
    if len(names) != len(nodes):  # one of constants that aren't computed beforehand
        return []
    written = {entry.name for entry in model.graph.output}
    model.graph.output.extend(ValueInfoProto(name=name) for name in names if name not in written)
    session = runtime.open(model.SerializeToString(), optimise=True)
    feeds = {name: runtime.place(value) for name, value in draw_inputs(graph, dims).items()}
    values = runtime.bind(session, feeds)()
    found = dict(zip((entry.name for entry in session.get_outputs()), values, strict=True))
    return [node_id for node_id, name in zip(nodes, names, strict=True) if _has_denormals(found[name])]


def softmaxes(graph: Graph) -> list[int]:
    """Return the nodes of a graph that are Softmaxes of what isn't constant, in topological order."""
    order = [(node_id, graph.nodes[node_id].sig) for node_id in graph.topological_order()]
    return [node_id for node_id, sig in order if (sig.op.domain, sig.op.name, sig.const) == ("", "Softmax", False)]


def _has_denormals(value: Any) -> bool:
    """Return whether a value of onnxruntime is of float32 and has many."""
    if value.data_type() != "tensor(float)":
        return False
    magnitude: NDArray[np.float32] = np.abs(value.numpy())
    return bool(np.mean((magnitude > 0) & (magnitude < np.finfo(np.float32).tiny)) > SHARE) if magnitude.size else False
