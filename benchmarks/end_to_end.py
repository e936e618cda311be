"""How much faster than onnxruntime by itself: the networks of networks.toml, optimised by search alone, beside others.

    python benchmarks/end_to_end.py [network ...] [--batch 1] [--threads 1] [--budget 300s] [--tools onnxslim,openvino]

For each network: export it, run `taso-gym optimize --cost onnxruntime` and the other tools on the file, and measure
all against the file as given, interleaved, in fresh sessions, everything at ORT_ENABLE_ALL. Each network and setting
is one row, a JSON file in this machine's folder of --rows, written at once, and with --numerics fast another; what is
there is not done again, so a run goes on where it was ended; with --again it is, and the new row counts unless its
halves differ where those of the row before don't; at several threads the one in which the file as given was the
fastest. Optimised files are kept in --folder. --phase optimise or measure does one
half: the first bears a busy machine, the second doesn't. At the end the tables of all rows are written into
docs/end_to_end.md, their means into docs/results.md, and a picture of each machine's beside them.
Packages: benchmarks/requirements.txt; what isn't installed, or fails, is named in the row. With
--options="--no-measure --finalists" the command leaves out its own measurement at the end, though not that of
finalists, and the rule that a gain below 2 % means the unchanged file is applied to the one made here.
"""

import argparse
import filecmp
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from support.by_hand import RECIPES
from support.machine import commit
from support.networks import Network, file_of, networks
from support.other_tools import TOOLS
from support.results import DEFAULT, OURS, result_path, row_path
from support.table import write_table

from taso_gym import load
from taso_gym.atomic import write_text
from taso_gym.cost import bind_dims
from taso_gym.cost.machine import cpu_name, gpu_name
from taso_gym.cost.measure import Runner, measure
from taso_gym.cost.node_keys import COLD
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.errors import CostError, TasoError

HERE = Path(__file__).parent
GIVEN = "file"
PACKAGES = {
    **{tool: tool for tool in TOOLS},
    "by-hand": "taso_gym",
    "transformers": "onnxruntime",
    "openvino": "openvino",
    "torch.compile": "torch",
}
LONGEST_S = 900
PRODUCTS = re.compile(rf"({COLD})?(com\.microsoft\.)?(nchwc\.)?(Fused)?(Conv|ConvTranspose|MatMul|Gemm)[-\[]")


def optimised(network: Network, batch: int, settings: argparse.Namespace) -> tuple[Path, dict[str, Any]]:
    """Return the file that `taso-gym optimize` makes of a network, and how it went; done once."""
    source = file_of(network, batch, settings.folder)
    on = where(settings)
    target, log = (result_path(source, settings.numerics, on, suffix) for suffix in (".fast.onnx", ".optimise.json"))
    asked = {k: getattr(settings, k) for k in ("search", "budget", "numerics", "options")}
    asked |= {"rule_set": settings.rules, "made_on": machine_of(settings)}
    if not (log.exists() and target.exists()):
        cost = "onnxruntime:cuda" if settings.provider == "cuda" else "onnxruntime"
        command = [sys.executable, "-m", "taso_gym", "optimize", source, "-o", target, "--cost", cost]
        command += ["--search", settings.search, "--budget", settings.budget, "--numerics", settings.numerics]
        command += ["--rules", settings.rules, "--threads", settings.threads, *settings.options.split()]
        began, made_by = time.monotonic(), commit()
        wide = {**os.environ, "COLUMNS": "200"}
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=wide)
        if done.returncode:
            raise CostError(f"{network.name}: taso-gym optimize ended with {done.returncode}: {done.stderr[-300:]}")
        said = {"seconds": round(time.monotonic() - began), **summary_of(done.stdout + done.stderr)}
        write_text(log, json.dumps({**said, **asked, "commit": made_by}, indent=1))
    how = json.loads(log.read_text())
    if other := [f"{name} {how.get(name)!r}" for name in asked if how.get(name) != asked[name]]:
        raise CostError(f"expected a file made as this run says, found {log} of {', '.join(other)}: delete it")
    return target, how


def summary_of(said: str) -> dict[str, Any]:
    """Return the headline of what `taso-gym optimize` printed, how equal the files are, and what it did for that.

    Rules are those of the first table that it printed; of these some may be left out at the end.
    """
    found: dict[str, Any] = {
        name: next((line for line in said.splitlines() if mark in line), "")
        for name, mark in {"headline": " weighed in ", "equal": "equal: "}.items()
    }
    rows = re.findall(r"^│ (\S+) +│ +(\d+) │", said, re.MULTILINE)
    bouts = re.findall(r"^measured against the fastest before: (.*)", said, re.MULTILINE)
    left_out = re.findall(
        r"^left out: (.*);|^warning: (.*) left out: |^warning: expected (\S+) to change nothing", said, re.MULTILINE
    )
    found["left_out"] = ", ".join(map("".join, left_out))
    found["loop"] = "\nsample by sample: the result is a loop" in said
    tiles = re.search(r"^tile by tile: .*: (\d+)$", said, re.MULTILINE)
    found["tiles"] = int(tiles[1]) if tiles else 0
    return {**found, "rules": {name: int(count) for name, count in rows}, "bouts": bouts}


def others(network: Network, batch: int, settings: argparse.Namespace) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what the other tools make of a network, and for those that make nothing, why."""
    source = file_of(network, batch, settings.folder)
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for tool in settings.tools:
        if tool == "by-hand" and network.name not in RECIPES:
            continue
        if importlib.util.find_spec(PACKAGES[tool].partition(".")[0]) is None:
            missing[tool] = "not installed"
        elif tool == "openvino":
            found[tool] = Runner(HERE / "support" / "other_runtimes.py", source)
        elif tool == "torch.compile" and network.maker == "light":
            missing[tool] = "there is no torch module of it"
        elif tool == "torch.compile":
            described = source.with_suffix(".txt")
            write_text(described, f"{network.name} {batch}")
            found[tool] = Runner(HERE / "support" / "other_runtimes.py", described)
        else:
            target, why = _by_tool(tool, source)
            found |= {tool: target} if target else {}
            missing |= {tool: why} if why else {}
    return found, missing


def _by_tool(tool: str, source: Path) -> tuple[Path | None, str]:
    target, log = (source.with_suffix(f".{tool}.{kind}") for kind in ("onnx", "commit"))
    made_by = commit()
    if target.exists() and (tool != "by-hand" or _is_by(made_by, log)):  # rules may be others by now
        return target, ""
    files = map(str, (source.absolute(), target.absolute()))
    command = [sys.executable, "-m", "support.other_tools", tool, *files]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, cwd=HERE)
    except subprocess.TimeoutExpired:
        return None, f"not done after {LONGEST_S} s"
    last = (done.stderr.strip().splitlines() or ["no file"])[-1]
    if done.returncode or not target.exists():
        return None, last[:200]
    write_text(log, made_by)
    return target, ""


def _is_by(made_by: str, log: Path) -> bool:
    """Return whether a log says that a file was made by a commit, from which no code differs."""
    return log.exists() and log.read_text() == made_by and not made_by.endswith("+")


def bound_of(source: Path, threads: int) -> float:
    """Return how many times faster a model would be if all but its products and convolutions took no time.

    By the measured costs of what onnxruntime executes: what substitutions that keep the arithmetic could gain at most.
    """
    graph = load(source)
    model = OnnxRuntimeCost(dims=bind_dims(graph), threads=threads, start=graph)
    found, views = model.executed(graph), sum(node.sig.op.view for _, node in graph.operators())
    return (sum(ms for _, ms in found) + views * model.view_ps / 1e9) / max(
        sum(ms for key, ms in found if PRODUCTS.match(key)), 1e-9
    )


def measured(models: Mapping[str, Any], settings: argparse.Namespace) -> tuple[Any, dict[str, str]]:
    """Measure models; one that doesn't run is left out and named."""
    models, failed = dict(models), dict[str, str]()
    while True:
        try:
            options = {name: getattr(settings, name) for name in ("threads", "sessions", "rounds", "provider")}
            return measure(models, timeout_s=LONGEST_S, **options), failed
        except CostError as error:
            name = next((n for n in models if f"expected {n} to" in str(error) and n not in (GIVEN, OURS)), None)
            if name is None:
                raise
            failed[name] = str(error)[:200]
            del models[name]


def row_of(network: Network, batch: int, settings: argparse.Namespace) -> dict[str, Any]:
    """Return the row of a network: how many times faster than the file as given each tool's result is."""
    source = file_of(network, batch, settings.folder)
    fast, how = optimised(network, batch, settings)
    unchanged = filecmp.cmp(source, fast, shallow=False)
    found, missing = others(network, batch, settings)
    models = {GIVEN: source, **({} if unchanged else {OURS: fast}), **found}
    speedups: dict[str, list[float]] = {OURS: [1.0, 1.0, 1.0]} if unchanged else {}
    row: dict[str, Any] = {"network": network.name, "batch": batch, "threads": settings.threads}
    row |= {"provider": settings.provider, "numerics": settings.numerics}
    if settings.provider == "cpu":
        row["bound"] = round(bound_of(source, settings.threads), 3)
    if len(models) > 1:
        times, failed = measured(models, settings)
        speedups |= {n: [round(x, 4) for x in times.speedup(n)] for n in times.rounds if n != GIVEN}
        missing |= failed
        if "--no-measure" in how["options"] and not unchanged and not times.gain(OURS):
            row["candidate"], speedups[OURS], unchanged = speedups[OURS], [1.0, 1.0, 1.0], True
        row["rounds_run"] = times.rounds[GIVEN].shape[1]
        row |= {"file_ms": round(times.time_ms(GIVEN), 4), "estimator": times.estimator, "unstable": times.unstable}
    import onnxruntime

    row |= {"unchanged": unchanged, "speedups": speedups, "missing": missing, "optimise": how}
    row |= {"sessions": settings.sessions, "rounds": settings.rounds, "machine": machine_of(settings)}
    return {**row, "onnxruntime": onnxruntime.__version__, "date": time.strftime("%Y-%m-%d")}


def stays(path: Path, row: Mapping[str, Any]) -> str:
    """Return why a row before stays, if there is one that does.

    Something slows a machine down for seconds or minutes, and what has many small kernels by more than the rest. Wall
    times show that: of the same files the row counts whose file took less. CPU time of a thread doesn't, so there it is
    halves of a measurement that tell: they differ.
    """
    if not path.exists():
        return ""
    before = json.loads(path.read_text())
    if "wall" in row.get("estimator", ""):
        same = all(before.get(key) == row[key] for key in ("optimise", "sessions", "rounds", "onnxruntime"))
        return "whose file was faster" if same and before.get("file_ms", math.inf) <= row["file_ms"] else ""
    unsteady, unsteady_before = ({GIVEN, OURS} & set(each.get("unstable", ())) for each in (row, before))
    return "whose halves agree" if unsteady and not unsteady_before else ""


def machine_of(settings: argparse.Namespace) -> str:
    """Return the name of what the models run on."""
    return cpu_name() if settings.provider == "cpu" else gpu_name()


def where(settings: argparse.Namespace) -> str:
    """Return what models run on, as files have it in their names: the number of threads, or the provider."""
    return f"t{settings.threads}" if settings.provider == "cpu" else settings.provider


def path_of(network: Network, batch: int, settings: argparse.Namespace) -> Path:
    """Return the file of a row, in the folder of this machine."""
    return row_path(settings.rows, machine_of(settings), network.name, batch, where(settings), settings.numerics)


def main(arguments: list[str] | None = None) -> None:
    settings = options(arguments)
    run(networks(), settings)
    if settings.phase != "optimise":
        write_table(settings.rows)


def run(listed: Iterable[Network], settings: argparse.Namespace) -> None:
    """Optimise and measure those of some networks that are asked for, as far as the settings say; write their rows."""
    chosen = [n for n in listed if not settings.networks or n.name in settings.networks]
    for network in chosen:
        for batch in (b for b in network.batches if b in settings.batch):
            try:
                if settings.phase == "optimise":
                    print(network.name, batch, optimised(network, batch, settings)[1]["headline"], flush=True)
                    continue
                path = path_of(network, batch, settings)
                if settings.phase != "table" and (settings.again or not path.exists()):
                    row = row_of(network, batch, settings)
                    print(network.name, batch, row["speedups"], flush=True)
                    if why := stays(path, row):
                        print(f"{network.name} {batch}: the row before stays, {why}", flush=True)
                    else:
                        path.parent.mkdir(parents=True, exist_ok=True)
                        write_text(path, json.dumps(row, indent=1) + "\n")
            except (TasoError, ImportError) as error:
                print(f"{network.name} {batch}: {error}", flush=True)


def options(arguments: list[str] | None, description: str | None = __doc__, **defaults: Any) -> argparse.Namespace:
    """Return the settings that a command line states, others than these defaults."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="network", help="names of the list; default: all")
    parser.add_argument("--batch", type=int, nargs="*", default=[1], help="1, 8 or both")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--provider", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--budget", default="300s", help="time for the search of a network")
    parser.add_argument("--search", default="taso")
    parser.add_argument("--numerics", choices=("exact", DEFAULT, "fast"), default=DEFAULT)
    parser.add_argument("--rules", default="default")
    parser.add_argument("--options", default="", help="further options of taso-gym optimize")
    parser.add_argument("--tools", default=",".join(PACKAGES), type=lambda t: [x for x in t.split(",") if x])
    parser.add_argument("--sessions", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--folder", type=Path, default=Path("build/end_to_end"))
    parser.add_argument("--rows", type=Path, default=HERE / "rows")
    parser.add_argument("--phase", choices=("all", "optimise", "measure", "table"), default="all")
    parser.add_argument("--again", action="store_true", help="measure rows anew that are there")
    parser.set_defaults(**defaults)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
