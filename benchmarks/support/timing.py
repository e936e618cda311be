"""Graphs that compute the same, timed beside each other in onnxruntime."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.graph import Graph
from taso_gym.onnx_io import to_model
from taso_gym.tensor import TensorType, numpy_dtype

WARM_UP = 2
"""Rounds that don't count."""


def times_of(graphs: Sequence[Graph], rounds: int) -> list[float]:
    """Return the median thread-CPU time of each graph's run, in microseconds.

    The sessions are at onnxruntime's default level with one thread and run in turns, every other round backwards, on
    the same data: normal values of both signs, and zeros and ones where values aren't floats.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4  # what fails is reported here
    sessions = [onnxruntime.InferenceSession(to_model(g).SerializeToString(), options) for g in graphs]
    feeds = _feeds(graphs)
    own = [{entry.name: feeds[entry.name] for entry in session.get_inputs()} for session in sessions]
    times: list[list[float]] = [[] for _ in sessions]
    for turn in range(rounds + WARM_UP):
        for i in range(len(sessions))[:: 1 if turn % 2 else -1]:
            begin = time.thread_time()
            sessions[i].run(None, own[i])
            if turn >= WARM_UP:
                times[i].append(time.thread_time() - begin)
    return [1e6 * median(row) for row in times]


def _feeds(graphs: Sequence[Graph]) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(0)
    leaves = {g.leaves[v].name: g.leaves[v].type for g in graphs for v in g.info.inputs}
    return {name: _values(type_, rng) for name, type_ in leaves.items()}


def _values(type_: Any, rng: np.random.Generator) -> NDArray[Any]:
    assert isinstance(type_, TensorType)
    values = rng.normal(size=type_.shape)
    return (values if "float" in type_.dtype else values > 0).astype(numpy_dtype(type_.dtype))
