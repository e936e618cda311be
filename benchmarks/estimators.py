"""Which of several times of a kernel tells what a whole model takes: least, second least or median.

    python benchmarks/estimators.py FILE.onnx=RESULT.onnx [FILE.onnx=RESULT.onnx ...]

Of each file and what a search made of it: every kernel that onnxruntime executes for either is measured in turns, by
`taso_gym.cost.node_times`; then milliseconds of the file and the speed-up by each estimator, and both as measured end
to end right after. A kernel of microseconds has a moment when nothing disturbs it more often than one of milliseconds,
so that the least time prefers rewrites into many small ones wherever the machine is never quiet.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from rich.console import Console
from rich.table import Table

from taso_gym import load
from taso_gym.cost.measure import measure
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.turns import TURNS
from taso_gym.graph import Graph

ESTIMATORS: dict[str, Callable[[Sequence[int]], float]] = {
    "least": min,
    "second least": lambda times: sorted(times)[len(times) // 4],
    "median": statistics.median,
}


def measured_in_turns(graphs: Sequence[Graph], cache: Path) -> None:
    """Put the times of all kernels of graphs into a cache."""
    OnnxRuntimeCost(cache=cache, start=graphs[0]).in_turns(graphs)


def predicted_ms(graphs: Sequence[Graph], cache: Path, estimator: str) -> list[float]:
    """Return milliseconds of graphs, by an estimator of the times in a cache, which are changed to it."""
    with closing(sqlite3.connect(cache)) as db, db:
        mark = f"|node in {TURNS} turns "
        rows = db.execute("SELECT key, value FROM measurements WHERE instr(key, ?)", (mark,)).fetchall()
        for key, value in rows:
            known = json.loads(value)
            whole, copies = (ESTIMATORS[estimator](times) for times in zip(*known["turns"], strict=True))
            changed = json.dumps(known | {"ps": round(max(whole - copies, 0))})
            db.execute("UPDATE measurements SET value = ? WHERE key = ?", (changed, key))
    cost = OnnxRuntimeCost(cache=cache, start=graphs[0])
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
            cache = Path(folder) / "measurements.sqlite"
            measured_in_turns(graphs, cache)
            found = [predicted_ms(graphs, cache, estimator) for estimator in ESTIMATORS]
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
