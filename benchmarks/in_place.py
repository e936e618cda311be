"""What it is worth to measure in place which share of values is out of the cache: errors of predicted gains.

    python benchmarks/in_place.py FOLDER [network ...] [--batch 1] [--threads 1] [--seconds 60] [--rows FOLDER]

For each network with files that benchmarks/end_to_end.py has optimised in FOLDER, and measured into a row: the shares
that the network's own file and the result say (`taso_gym.cost.in_place`), and by how much gains that are predicted by
these, and by the share that is taken where there is no file, are above the measured ones. What the files execute is
measured in turns first, so long at most. A search overrates what it finds by the share that it used; results made by
hand are no search's.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from support.networks import networks
from support.results import DEFAULT, result_path, row_path

from taso_gym import load, onnx_io
from taso_gym.cost import bind_dims
from taso_gym.cost.in_place import USUAL
from taso_gym.cost.machine import cpu_name
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.graph import Graph
from taso_gym.onnx_io.convert import converted

KINDS = {"default": (DEFAULT, "taso-gym"), "fast": ("fast", "taso-gym"), "by hand": ("fast", "by-hand")}
"""For each kind of result the numerics of its row, and its name in it."""
ROWS = Path(__file__).parent / "rows"


def results(name: str, settings: argparse.Namespace) -> Iterator[tuple[str, Graph, float]]:
    """Yield (kind, graph, measured gain) of each optimised file of a network that has a row."""
    source = settings.folder / f"{name}-b{settings.batch}.onnx"
    for kind, (numerics, tool) in KINDS.items():
        where = f"t{settings.threads}"
        path = row_path(settings.rows, cpu_name(), name, settings.batch, where, numerics)
        file = result_path(source, numerics, where) if tool == "taso-gym" else source.with_suffix(f".{tool}.onnx")
        said = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"speedups": {}, "unchanged": True}
        is_of_row = tool == "by-hand" or (not said["unchanged"] and said["optimise"] == _log(source, numerics, where))
        if file.exists() and tool in said["speedups"] and is_of_row:
            yield kind, load(file), said["speedups"][tool][0]


def _log(source: Path, numerics: str, where: str) -> dict[str, Any]:
    """Return how the optimised file was made, which the row of another one says otherwise."""
    path = result_path(source, numerics, where, ".optimise.json")
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def start_of(path: Path, opset: int) -> Graph:
    """Return a network as its results began, in their opset."""
    given = load(path)
    return given if given.info.opsets[""] == opset else onnx_io.from_model(converted(path, opset))


def errors(name: str, settings: argparse.Namespace) -> Iterator[tuple[str, list[float], float, list[float]]]:
    """Yield (kind, shares, measured gain, errors of the gains predicted by each of them): usual, file's, result's."""
    found = list(results(name, settings))
    if not found:
        return
    start = start_of(settings.folder / f"{name}-b{settings.batch}.onnx", found[0][1].info.opsets[""])
    model = OnnxRuntimeCost(dims=bind_dims(start), threads=settings.threads, start=start)
    model = model.in_turns([start, *(graph for _, graph, _ in found)], settings.seconds)
    for kind, graph, gain in found:
        models = (model.with_outside(USUAL), model, model.fitted_to(graph))
        predicted = [by.graph(start).time_ps / by.graph(graph).time_ps for by in models]
        yield kind, [by.outside for by in models], gain, [math.log(one / gain) for one in predicted]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("networks", nargs="*", metavar="network", help="names of networks.toml; default: all")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rows", type=Path, default=ROWS)
    settings = parser.parse_args()
    known = [network.name for network in networks()]
    by = (f"{USUAL:g}", "the file's share", "the result's share")
    found: dict[str, list[list[float]]] = {"all": [], **{kind: [] for kind in KINDS}}
    print(f"| network | shares | file | measured | {' | '.join(f'by {one}' for one in by)} |\n{'| --- ' * 7}|")
    for name in settings.networks or known:
        for kind, shares, gain, off in errors(name, settings):
            for part in ("all", kind):
                found[part].append(off)
            said = " | ".join(f"{one:+.1%}" for one in off)
            print(f"| {name} | {shares[1]:.2f}, {shares[2]:.2f} | {kind} | {gain:.3f} | {said} |", flush=True)
    for part, rows in found.items():
        for which, column in zip(by, np.array(rows).reshape(-1, len(by)).T, strict=True):
            if len(column):
                mean, spread, most = np.abs(column).mean(), math.sqrt(np.square(column).mean()), np.abs(column).max()
                print(f"{part}, by {which}: off by {mean:.2%} in the mean, {spread:.2%} squared, {most:.1%} at most")


if __name__ == "__main__":
    main()
