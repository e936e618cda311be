"""What the first search of a model pays before it knows anything: costing it and its first rewrites, nothing cached.

    python benchmarks/empty_cache.py FILE.onnx ... [--rewrites 40] [--threads 1]

Printed is CPU time of the process, wall time where models run on several threads, in seconds and in units of a
calibration loop (10,000 additions in Python), and how many regions were measured in it.
"""

import argparse
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table
from step import calibration_ms

from taso_gym import load
from taso_gym.cost import bind_dims
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState


def spent(file: Path, rewrites: int, threads: int) -> tuple[int, int, float]:
    """Return how many rewrites were costed, how many regions measured, and the seconds that it took."""
    clock = time.process_time if threads == 1 else time.perf_counter
    graph, rules, measured = load(file), RuleSet.load(), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder, "cache.sqlite")
        how = {"cache": cache, "progress": measured.append, "threads": threads, "outside": 0.5}
        model = OnnxRuntimeCost(dims=bind_dims(graph), start=graph, **how)
        began = clock()
        state = RewriteState(graph, rules, model)
        matches = [match for found in state.matches for match in found][:rewrites]
        state.deltas(matches, bounded=True)
        return len(matches), len(measured), clock() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--rewrites", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    table, unit_ms = Table(), calibration_ms()
    for name in ("model", "rewrites", "regions", "s of CPU time" if options.threads == 1 else "s", "loops"):
        table.add_column(name, justify="left" if name == "model" else "right")
    for file in options.models:
        rewrites, regions, seconds = spent(file, options.rewrites, options.threads)
        table.add_row(file.stem, str(rewrites), str(regions), f"{seconds:.1f}", f"{1e3 * seconds / unit_ms:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
