"""How much memory a large model takes, in units of its size.

    python benchmarks/memory.py [--size 1.0] [--folder FOLDER]

A chain of matrix products with normal weights of --size GB is written to --folder (a temporary one by default), once
with the weights in the file and once with them beside it. Each of these runs in a process of its own: loading it and
optimising it with the `roofline` cost; the same and saving; comparing the file and what was saved; measuring both. The
figure is the most memory that the process and the children that it starts had in use together, sampled every 20 ms:
the proportional set size, in which pages of the mapped file count as well.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH = 4096
OPTIMISE = """
import sys
from taso_gym import optimize
from taso_gym.search import Budget
result = optimize(sys.argv[1], cost="roofline", budget=Budget(steps=200))
assert result.applied
"""
SAVE = f"{OPTIMISE}result.save(sys.argv[2])"
VALIDATE = """
import sys
from taso_gym import validate
assert validate(*sys.argv[1:]).ok
"""
MEASURE = """
import sys
from taso_gym.cost.measure import measure
measure({"first": sys.argv[1], "second": sys.argv[2]})
"""
AIMS = {"load, optimise": 2.5, "load, optimise, save": 2.5, "validate": 4.0, "measure": 4.0}


def write(path: Path, size_gb: float, *, external: bool) -> None:
    """Write a model whose weights take so many GB."""
    rng = np.random.default_rng(0)
    count = max(1, round(size_gb * 1e9 / (4 * WIDTH * WIDTH)))
    nodes, weights = [], []
    for i in range(count):
        values = rng.standard_normal((WIDTH, WIDTH), dtype=np.float32) / np.float32(WIDTH**0.5)
        weights.append(numpy_helper.from_array(values, f"w{i}"))
        nodes += [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"m{i}"])]
        nodes += [helper.make_node("Relu", [f"m{i}"], [f"r{i}"]), helper.make_node("Relu", [f"r{i}"], [f"x{i + 1}"])]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, WIDTH]) for n in ("x0", f"x{count}")]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(model, path, save_as_external_data=external, location=f"{path.name}.data")


def peak_bytes(code: str, *arguments: Path) -> int:
    """Return the most memory that a process and its children had in use together while they ran some code."""
    process = subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(map(used_bytes, [process.pid, *children(process.pid)])))
        time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"expected the process to end well, found {process.returncode}: {code}")
    return peak


def children(pid: int) -> list[int]:
    """Return the processes below one, at any depth."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text().split()]
        except OSError:  # it has just ended
            continue
    return found + [below for child in found for below in children(child)]


def used_bytes(pid: int) -> int:
    """Return the proportional set size of a process; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=float, default=1.0, help="GB of weights")
    parser.add_argument("--folder", type=Path, help="where the models are written")
    arguments = parser.parse_args()
    print("| weights | what | peak MB | times the model's size | aim |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        for external in (False, True):
            folder = Path(temporary) / ("beside" if external else "in")
            folder.mkdir()
            path, saved = folder / "model.onnx", folder / "saved.onnx"
            write(path, arguments.size, external=external)
            size = sum(file.stat().st_size for file in folder.iterdir())
            tasks = {"load, optimise": (OPTIMISE, path), "load, optimise, save": (SAVE, path, saved)}
            for what, task in {**tasks, "validate": (VALIDATE, path, saved), "measure": (MEASURE, path, saved)}.items():
                peak = peak_bytes(*task)
                place = "beside the file" if external else "in the file"
                print(f"| {place} | {what} | {peak / 1e6:.0f} | {peak / size:.2f} | {AIMS[what]:g} |", flush=True)


if __name__ == "__main__":
    main()
