"""Which of several times of a kernel tells what a whole model takes: least, second least or median.

    python benchmarks/estimators.py FILE.onnx=RESULT.onnx [FILE.onnx=RESULT.onnx ...]

Of each file and what a search made of it: every kernel that onnxruntime executes for either is measured in turns, by
`taso_gym.cost.node_times`; then milliseconds of the file and the speed-up by each estimator, and both as measured end
to end right after. A kernel of microseconds has a moment when nothing disturbs it more often than one of milliseconds,
so that the least time prefers rewrites into many small ones wherever the machine is never quiet.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from taso_gym import load
from taso_gym.cost.measure import measure
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.graph import Graph

ESTIMATORS: dict[str, Callable[[Sequence[int]], float]] = {
    "least": min,
    "second least": lambda times: sorted(times)[len(times) // 4],
    "median": statistics.median,
}
Times = Mapping[tuple[bytes, bool], list[int]]


def times_of(graphs: Sequence[Graph], folder: Path) -> Times:
    """Return picoseconds of all kernels of graphs, by model and whether it was out of the cache, in turns."""
    cost, found = OnnxRuntimeCost(cache=folder / "turns.sqlite", start=graphs[0]), defaultdict[Any, list[int]](list)
    time = cost.runtime.time

    def recording(model: bytes, feeds: Mapping[str, Any], cold: bool = False) -> int:
        found[model, cold].append(time(model, feeds, cold))
        return found[model, cold][-1]

    cost.runtime.time = recording
    cost.in_turns(graphs)
    return found


def predicted_ms(graphs: Sequence[Graph], times: Times, estimator: str, folder: Path) -> list[float]:
    """Return milliseconds of graphs by an estimator of recorded times."""
    cost = OnnxRuntimeCost(cache=folder / f"{estimator}.sqlite", start=graphs[0])

    def recorded(model: bytes, feeds: Mapping[str, Any], cold: bool = False) -> int:  # noqa: ARG001
        return round(ESTIMATORS[estimator](times[model, cold]))

    cost.runtime.time = recorded
    return [cost.graph(graph).time_ps / 1e9 for graph in graphs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="+", metavar="FILE=RESULT")
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    console, table = Console(width=160), Table("file", "ms", *ESTIMATORS, "speed-up", *ESTIMATORS)
    for pair in options.pairs:
        files: dict[str, str] = dict(zip(("file", "result"), pair.split("="), strict=True))
        graphs = [load(file) for file in files.values()]
        with tempfile.TemporaryDirectory() as folder:
            times = times_of(graphs, Path(folder))
            found = [predicted_ms(graphs, times, estimator, Path(folder)) for estimator in ESTIMATORS]
        measured = measure(dict(files), rounds=options.rounds)
        table.add_row(
            Path(files["file"]).stem,
            f"{measured.time_ms('file'):.1f}",
            *(f"{ms:.1f}" for ms, _ in found),
            str(measured.speedup("result")),
            *(f"{ms / of_result:.3f}" for ms, of_result in found),
        )
        console.print(table)


if __name__ == "__main__":
    main()
