"""What short nodes cost, beside what further copies of them add to a run: a cost should be what a node adds.

    python benchmarks/short_nodes.py [--tries 9]

Nodes of onnxruntime, at one thread, in the cache: median of the tries, in microseconds. A run of one node takes longer
than the node; what is taken off is a run without a node (`taso_gym.cost.sessions.Runtime`).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from rich.console import Console
from rich.table import Table

from taso_gym.cost.copies import copied
from taso_gym.cost.runtime import Runtime

COPIES = 32
NODES: tuple[tuple[str, int, Sequence[int], Mapping[str, Any]], ...] = (
    ("Relu", 1, [1], {}),
    ("Relu", 1, [1, 64, 8, 8], {}),
    ("Relu", 1, [1, 64, 28, 28], {}),
    ("Add", 2, [1], {}),
    ("Add", 2, [1, 64, 8, 8], {}),
    ("Concat", 4, [1, 64, 4, 4], {"axis": 1}),
    ("Transpose", 1, [1, 64, 8, 8], {"perm": [0, 2, 3, 1]}),
    ("MatMul", 2, [16, 16], {}),
    ("MatMul", 2, [64, 64], {}),
    ("Conv", 2, [8, 8, 1, 1], {}),
)
"""Operators, their numbers of operands, the shape of each operand, and attributes."""


def model_of(operator: str, operands: int, shape: Sequence[int], attributes: Mapping[str, Any]) -> bytes:
    """Return a model of one node whose operands are its inputs."""
    names = [f"x{place}" for place in range(operands)]
    node = helper.make_node(operator, names, ["y"], **attributes)
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names]
    graph = helper.make_graph([node], "node", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    opset = helper.make_opsetid("", 20)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10).SerializeToString()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=9)
    tries, runtime = range(parser.parse_args().tries), Runtime("cpu", 1)
    table = Table("node", "of", "costs", "adds", title="microseconds")
    for operator, operands, shape, attributes in NODES:
        model = model_of(operator, operands, shape, attributes)
        feeds = {f"x{place}": runtime.place(np.ones(shape, np.float32)) for place in range(operands)}
        costs = [runtime.time(model, feeds) for _ in tries]
        more = [runtime.time(copied(model, COPIES), feeds) for _ in tries]
        adds = (median(more) - median(costs)) / COPIES
        table.add_row(operator, f"{operands} x {shape}", f"{median(costs) / 1e6:.2f}", f"{adds / 1e6:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
