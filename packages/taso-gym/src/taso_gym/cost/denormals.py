"""Softmaxes of a graph that write denormal floats: of a magnitude below 1.2e-38, which many processors are slow with.

A mask of -100 makes them, as Swin's: its weights are e to the power of that, 3.7e-44. What costs say of kernels that
read them is too low (`taso_gym.cost.in_place`), as kernels are measured with values of usual size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ValueInfoProto

from taso_gym.cost.runtime import Runtime
from taso_gym.graph import Graph
from taso_gym.onnx_io import to_model

SHARE = 0.01
"""Part of what a Softmax writes that is denormal at least."""


def writing_denormals(graph: Graph, feeds: Mapping[str, NDArray[Any]], runtime: Runtime) -> list[int]:
    """Return the Softmaxes of float32, by their place in topological order, that write denormals given these inputs.

    Raises:
        ModelError: the graph has more weights than a model in memory may have.
        CostError: onnxruntime doesn't take or run it.
    """
    model = to_model(graph)
    names = [node.output[0] for node in model.graph.node if node.op_type == "Softmax" and not node.domain]
    written = {entry.name for entry in model.graph.output}
    for name in dict.fromkeys(names):
        if name not in written:
            model.graph.output.append(ValueInfoProto(name=name))
    session = runtime.open(model.SerializeToString(), optimise=True)
    values = runtime.bind(session, {name: runtime.place(value) for name, value in feeds.items()})()
    found = dict(zip((entry.name for entry in session.get_outputs()), values, strict=True))
    return [place for place, name in enumerate(names) if _has_denormals(found[name])]


def softmaxes(graph: Graph) -> list[int]:
    """Return the nodes of a graph that are Softmaxes of what isn't constant, in topological order."""
    return [
        node_id
        for node_id in graph.topological_order()
        if (op := graph.nodes[node_id].sig.op).name == "Softmax"
        and not op.domain
        and not graph.nodes[node_id].sig.const
    ]


def _has_denormals(value: Any) -> bool:
    """Return whether a value of onnxruntime is of float32 and has many."""
    if value.data_type() != "tensor(float)":
        return False
    magnitude: NDArray[np.float32] = np.abs(value.numpy())
    return bool(np.mean((magnitude > 0) & (magnitude < np.finfo(np.float32).tiny)) > SHARE) if magnitude.size else False
