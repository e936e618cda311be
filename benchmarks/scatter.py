"""How much one measurement of a kernel can be trusted: the same kernels again and again, at other moments.

    python benchmarks/scatter.py [FILE.onnx or built-in network] [--kernels 16] [--times 21]

The largest kernels that onnxruntime executes of a model, each so many times in turns, in the cache and out of it:
median, standard deviation of the logarithm of one measurement, and the same of medians of seven of them, which
`taso_gym.cost.node_times` takes.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from support.graphs import graph_of

from taso_gym.cost.executed import Executed, executed_nodes
from taso_gym.cost.node_times import TURNS
from taso_gym.cost.sessions import Runtime
from taso_gym.cost.small_model import draw
from taso_gym.graph import Graph
from taso_gym.onnx_io import to_model
from taso_gym.tensor import TensorType


def kernels_of(graph: Graph, runtime: Runtime) -> list[Executed]:
    """Return the kernels of a model, each once."""
    rng = np.random.default_rng(0)
    types = {graph.leaves[value].name: graph.type_of(value) for value in graph.info.inputs}
    feeds = {name: draw(t, rng) for name, t in types.items() if isinstance(t, TensorType)}
    return list({n.key: n for n in executed_nodes(to_model(graph).SerializeToString(), feeds, runtime)}.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="SqueezeNet1.1")
    parser.add_argument("--kernels", type=int, default=16)
    parser.add_argument("--times", type=int, default=3 * TURNS)
    options = parser.parse_args()
    runtime = Runtime("cpu", 1)
    nodes = sorted(kernels_of(graph_of(options.model), runtime), key=lambda n: -runtime.time(n.model, n.feeds).time_ps)
    nodes = nodes[: options.kernels]
    times = np.empty((options.times, len(nodes), 2))
    for turn in track(range(options.times)):
        for place, node in enumerate(nodes):
            times[turn, place] = [runtime.time(node.model, node.feeds, cold).time_ps / 1e6 for cold in (False, True)]
    table = Table("kernel", "µs", "once, %", "median of 7, %", "µs, out of the cache", "once, %", "median of 7, %")
    parts = times[: options.times // TURNS * TURNS].reshape(-1, TURNS, len(nodes), 2)
    once, seven = (100 * np.log(np.maximum(t, 1e-3)).std(0) for t in (times, np.median(parts, 1)))
    for place, node in enumerate(nodes):
        pairs = zip(np.median(times, 0)[place], once[place], seven[place], strict=True)
        table.add_row(node.key[:60], *(text for a, b, c in pairs for text in (f"{a:.1f}", f"{b:.1f}", f"{c:.1f}")))
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
