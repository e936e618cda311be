"""What kernels cost beside what they take in their model, by operator.

    python benchmarks/in_situ.py FILE ... [--threads 1]

A kernel's cost is measured alone (`taso_gym.cost.onnxruntime`); in its model it is timed by onnxruntime's profile, in
twenty runs at most of the whole (first quartile). Views, which are no kernels, are in the title.
"""

import argparse
from collections import Counter
from pathlib import Path

from rich.table import Table

from taso_gym import load
from taso_gym.console import console, run_app
from taso_gym.cost import bind_dims
from taso_gym.cost.dims import Dims
from taso_gym.cost.executed import VIEWS
from taso_gym.cost.in_place import kernel_times
from taso_gym.cost.node_keys import operator_of
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.small_model import draw_inputs


def compared(path: Path, threads: int) -> Table:
    """Return a table of the operators that onnxruntime executes for a file, those that take longest first."""
    graph = load(path)
    model = OnnxRuntimeCost(dims=bind_dims(graph), threads=threads, start=graph)
    counts, costs, times = Counter[str](), Counter[str](), Counter[str]()
    views = Counter[str]()
    for key, ms in model.executed(graph):
        counts[operator_of(key)] += 1
        costs[operator_of(key)] += ms
    for kind, (count, time_ps) in kernel_times(
        graph, draw_inputs(graph, Dims(bind_dims(graph))), model.runtime
    ).items():
        operator = kind.partition(" ")[0]
        times[operator] += time_ps / 1e9
        views[operator] += count if operator in VIEWS else 0
    table = Table(
        title=f"{path.name}: {sum(costs.values()):.2f} ms by costs, {sum(times[o] for o in costs):.2f} in place; "
        f"{views.total()} views take {sum(times[o] for o in VIEWS):.2f} more"
    )
    for name in ("operator", "kernels", "cost ms", "in place ms", "cost of it"):
        table.add_column(name)
    for operator in sorted(costs, key=lambda name: -costs[name]):
        cost, time = costs[operator], times[operator]
        ratio = f"{cost / time:.2f}" if time else ""
        table.add_row(operator, str(counts[operator]), f"{cost:.3f}", f"{time:.3f}", ratio)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--threads", type=int, default=1)
    settings = parser.parse_args()
    for path in settings.files:
        console.print(compared(path, settings.threads))


if __name__ == "__main__":
    run_app(main)
