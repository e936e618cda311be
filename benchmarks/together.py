"""What kernels take out of the cache when many are timed each time that it is emptied, beside one at a time.

    python benchmarks/together.py FILE.onnx ... [--kernels 48] [--repeats 3]

Of the kernels that onnxruntime executes for a file some are drawn (seed 0). Each is timed alone, then with others of
its group, and that a few times; the median counts. Groups are drawn anew each time.
"""

import argparse
import random
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.progress import track
from rich.table import Table

from taso_gym import load
from taso_gym.cost import bind_dims
from taso_gym.cost.executed import Executed
from taso_gym.cost.node_times import TOGETHER
from taso_gym.cost.onnxruntime import OnnxRuntimeCost

UP_TO_US = (20, 100, 1000, 5000, 10**9)
Times = dict[str, list[int]]


def timed(file: Path, kernels: int, repeats: int) -> tuple[Times, Times]:
    """Return picoseconds of kernels by key: alone, and together."""
    graph, rng = load(file), random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder, "cache.sqlite")
        model = OnnxRuntimeCost(dims=bind_dims(graph), cache=cache, start=graph, outside=0.5)
        nodes = {node.key: node for region in set(model.regions(graph)) for node in model.executed_alone(region)}
        drawn = rng.sample(sorted(nodes.values(), key=lambda node: node.key), min(kernels, len(nodes)))
        alone, together = ({node.key: list[int]() for node in drawn} for _ in range(2))
        for _ in track(range(repeats), file.stem):
            rng.shuffle(drawn)
            note(alone, ([node] for node in drawn), model)
            note(together, (drawn[at : at + TOGETHER] for at in range(0, len(drawn), TOGETHER)), model)
    return alone, together


def note(times: Times, groups: Iterable[Sequence[Executed]], model: OnnxRuntimeCost) -> None:
    """Time each group, and add to the times of its kernels."""
    for group in groups:
        found = model.runtime.times([(node.model, node.feeds) for node in group], cold=True)
        for node, time_ps in zip(group, found, strict=True):
            times[node.key].append(time_ps)


def rows(alone: Times, together: Times) -> Iterable[tuple[str, ...]]:
    """Yield what kernels of about the same time take together, in parts of what they take alone."""
    found = sorted((median(times), median(together[key])) for key, times in alone.items())
    for least, most in zip((0, *UP_TO_US), UP_TO_US, strict=False):
        if part := [(a, b) for a, b in found if least * 1e6 <= a < most * 1e6]:
            a, b = (sum(column) for column in zip(*part, strict=True))
            ratio = median(b / max(a, 1) for a, b in part)
            yield f"{least} us on", str(len(part)), f"{a / 1e9:.3f}", f"{b / 1e9:.3f}", f"{b / a:.3f}", f"{ratio:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+", metavar="FILE.onnx")
    parser.add_argument("--kernels", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for file in options.models:
        table = Table(title=file.stem)
        for name in ("alone", "kernels", "ms alone", "ms together", "ratio", "median ratio"):
            table.add_column(name, justify="left" if name == "alone" else "right")
        for row in rows(*timed(file, options.kernels, options.repeats)):
            table.add_row(*row)
        Console().print(table)


if __name__ == "__main__":
    main()
