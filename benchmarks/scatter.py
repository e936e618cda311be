"""How much one measurement of a kernel can be trusted: the same kernels again and again, at other moments.

    python benchmarks/scatter.py [FILE.onnx or built-in network] [--kernels 16] [--times 21] [--seconds 10]

The largest kernels that onnxruntime executes of a model, each so many times in turns, in the cache and out of it:
median, standard deviation of the logarithm of one measurement, of medians of seven of them, and of the second least of
seven, which `taso_gym.cost.node_times` takes. Then the largest alone, again and again for so many seconds: how much the
means of windows of 5 ms to 2 s scatter. What disturbs a kernel for less than a window is averaged out in it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from support.graphs import graph_of

from taso_gym.cost.executed import Executed
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.runtime import Runtime
from taso_gym.cost.turns import TURNS

WINDOWS_MS = 5, 20, 100, 500, 2000


def times_in_turns(runtime: Runtime, nodes: list[Executed], times: int) -> NDArray[np.float64]:
    """Return microseconds [times, nodes, 2], in the cache and out of it."""
    found = np.empty((times, len(nodes), 2))
    for turn in track(range(times)):
        for place, node in enumerate(nodes):
            found[turn, place] = [runtime.time(node.model, node.feeds, cold) / 1e6 for cold in (False, True)]
    return found


def scatter_of_windows(runtime: Runtime, node: Executed, seconds: float) -> dict[int, float]:
    """Return the standard deviation in % of the mean time of a kernel over windows, by their milliseconds."""
    run, runs = runtime.bind(runtime.open(node.model, optimise=False), node.feeds), list[int]()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.thread_time_ns()
        run()
        runs.append(time.thread_time_ns() - start)
    length = np.median(runs) / 1e6
    found = {}
    for window in WINDOWS_MS:
        each = max(round(window / length), 1)
        means = np.array(runs[: len(runs) // each * each]).reshape(-1, each).mean(1)
        if len(means) > 1:
            found[window] = float(100 * np.log(means).std())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="SqueezeNet1.1")
    parser.add_argument("--kernels", type=int, default=16)
    parser.add_argument("--times", type=int, default=3 * TURNS)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    runtime, graph = Runtime("cpu", 1), graph_of(options.model)
    each = {node.key: node for node in OnnxRuntimeCost(start=graph).executed_whole(graph)}.values()
    nodes = sorted(each, key=lambda node: -runtime.time(node.model, node.feeds))[: options.kernels]
    times = times_in_turns(runtime, nodes, options.times)
    headings = ("once, %", f"median of {TURNS}, %", f"second least of {TURNS}, %")
    table = Table("kernel", "µs", *headings, "µs, out of the cache", *headings)
    parts = times[: options.times // TURNS * TURNS].reshape(-1, TURNS, len(nodes), 2)
    scatter = (100 * np.log(np.maximum(t, 1e-3)).std(0) for t in (times, np.median(parts, 1), np.sort(parts, 1)[:, 1]))
    columns = np.stack([np.median(times, 0), *scatter], -1)
    for node, row in zip(nodes, columns, strict=True):
        table.add_row(node.key[:60], *(f"{value:.1f}" for value in row.reshape(-1)))
    table.add_section()
    table.add_row("median of all", *(f"{value:.1f}" for value in np.median(columns, 0).reshape(-1)))
    console = Console(width=180)
    console.print(table)
    found = scatter_of_windows(runtime, nodes[0], options.seconds)
    console.print("means over windows of the first: " + ", ".join(f"{ms} ms {p:.1f} %" for ms, p in found.items()))


if __name__ == "__main__":
    main()
