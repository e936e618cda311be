"""How far predicted times are from measured ones: `taso-gym calibrate` over networks of networks.toml, as a table.

    python benchmarks/calibration.py [network ...] [--threads 1] [--variants 20] [--again] [--folder FOLDER]

Each network is a row, a JSON file in this machine's folder of --rows with all predicted and measured times, written at
once; what is there is not done again unless --again says so. At the end the table of all rows is written into
docs/results.md. Networks that few rewrites change by less than the noise are rewritten further away than others.
With --outside SHARE the times that rows have are compared with what costs with this share out of the cache predict of
the same variants, and nothing is written.
"""

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from support.machine import folder_of
from support.networks import Network, file_of, networks
from support.page import write_between
from support.summary import KNOWN_AS

from taso_gym import load
from taso_gym.atomic import write_text
from taso_gym.cost import bind_dims
from taso_gym.cost.calibrate import Calibration, calibrate
from taso_gym.cost.machine import cpu_name
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.variants import random_variants
from taso_gym.graph import Graph
from taso_gym.rules.ruleset import RuleSet


class Plan(NamedTuple):
    """How a network is calibrated: rewrites of a variant at most, fresh sessions of each model, rounds in each."""

    rewrites: int
    sessions: int
    rounds: int


PLANS = {
    "SqueezeNet1.1": Plan(8, 8, 16),
    "MobileNetV2": Plan(8, 8, 16),
    "ShuffleNet": Plan(8, 8, 16),
    "MobileOne-s1": Plan(8, 8, 12),
    "FastViT-t8": Plan(8, 8, 12),
    "GoogLeNet": Plan(8, 8, 10),
    "ResNet18": Plan(30, 8, 10),
    "HRNet-W18-small": Plan(30, 8, 10),
    "Inception-v2": Plan(30, 8, 10),
    "AlexNet": Plan(8, 8, 10),
    "IResNet18": Plan(30, 8, 8),
    "RepVGG-A2": Plan(30, 8, 6),
    "MobileViT-s": Plan(8, 8, 10),
    "Swin-T": Plan(8, 8, 10),
    "BERT-sdpa": Plan(30, 6, 6),
    "GPT2": Plan(30, 6, 6),
    "T5-encoder": Plan(30, 6, 6),
    "ViT-B16": Plan(30, 6, 6),
    "Whisper-encoder": Plan(30, 8, 8),
    "Wav2Vec2": Plan(30, 6, 6),
}
"""The networks that are calibrated by default."""
HEAD = (
    "network", "sessions x rounds", "bias", "mean error", "at most", "noise", "clear", "Spearman (of the halves)",
    "right signs", "aims met", "date",
)  # fmt: skip


def case_of(
    network: Network, settings: argparse.Namespace, count: int, seed: int, rewrites: int
) -> tuple[Graph, list[Graph], OnnxRuntimeCost]:
    """Return a network's graph, its random variants, and costs."""
    graph = load(file_of(network, 1, settings.folder))
    variants = list(random_variants(graph, RuleSet.load(), count, seed, rewrites))
    return graph, variants, OnnxRuntimeCost(dims=bind_dims(graph), threads=settings.threads, start=graph)


def with_share(network: Network, settings: argparse.Namespace, row: Mapping[str, Any]) -> Calibration:
    """Return the calibration of a row's times by costs with another share out of the cache."""
    count = len(row["measured_ms"]) - 1
    graph, variants, model = case_of(network, settings, count, row["seed"], row["rewrites"])
    costs = model.with_outside(settings.outside)
    return calibration_of({**row, "predicted_ms": [costs.graph(each).time_ms for each in (graph, *variants)]})


def row_of(network: Network, settings: argparse.Namespace) -> dict[str, Any]:
    """Return the times of a network and of its variants, predicted and measured, and how they were found."""
    plan = PLANS.get(network.name, Plan(8, 8, 10))
    graph, variants, model = case_of(network, settings, settings.variants, settings.seed, plan.rewrites)
    model, dims, threads = model.in_turns([graph, *variants]), bind_dims(graph), settings.threads
    how = {"sessions": plan.sessions, "rounds": plan.rounds, "seed": settings.seed}
    found = calibrate(graph, variants, model, threads=threads, dims=dims, **how)
    times = {name: value.tolist() for name, value in vars(found).items()}
    said = {"network": network.name, "threads": threads, "rewrites": plan.rewrites, "rules": RuleSet.load().digest}
    return {**said, **how, **times, "machine": cpu_name(), "date": time.strftime("%Y-%m-%d")}


def calibration_of(row: Mapping[str, Any]) -> Calibration:
    """Return the calibration of a row."""
    return Calibration(*(np.array(row[name]) for name in ("predicted_ms", "measured_ms", "halves")))


def missed(found: Calibration) -> list[str]:
    """Return the aims that a calibration misses, or can't show, since nothing differs clearly from the start."""
    some = found.clear.sum() > 1
    aims = {
        "mean error": found.errors.mean() <= 0.01,
        "greatest error": found.errors.max() <= 0.02,
        "Spearman": some and found.spearman >= 0.9,
        "signs": some and found.right_signs >= 0.95,
    }
    return [name for name, met in aims.items() if not met]


def cells(row: Mapping[str, Any]) -> list[str]:
    """Return the cells of a row of the table."""
    found = calibration_of(row)
    clear, errors = int(found.clear.sum()) - 1, found.errors
    name = row["network"] + (f", `--rewrites {row['rewrites']}`" if row["rewrites"] != 8 else "")
    shown = [name, f"{row['sessions']}x{row['rounds']}", f"{found.bias:+.1%}"]
    shown += [f"{errors.mean():.2%}", f"{errors.max():.2%}", f"{found.noise:.2%}"]
    ranks = f"{found.spearman:.2f} ({found.repeatability:.2f})", f"{round(found.right_signs * clear)} of {clear}"
    shown += [f"{clear} of {len(errors) - 1}", *(ranks if clear else ("–", "–"))]
    return [*shown, f"all but {', '.join(missed(found))}" if missed(found) else "**all**", row["date"]]


def write_table(folder: Path) -> None:
    """Write the tables of all rows between their marks in docs/results.md, one for each machine and threads."""
    parts: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*/calibration/*.json")):
        row = json.loads(path.read_text(encoding="utf-8"))
        machine = path.parts[-3]
        parts.setdefault((KNOWN_AS.get(machine, machine), row["threads"]), []).append(row)
    text = ""
    for (machine, threads), rows in sorted(parts.items()):
        met = sum(not missed(calibration_of(row)) for row in rows)
        text += f"\n{machine}, {threads} thread{'s' if threads > 1 else ''}: {met} of {len(rows)} networks meet all.\n"
        text += f"\n| {' | '.join(HEAD)} |\n{'| --- ' * len(HEAD)}|\n"
        text += "".join(f"| {' | '.join(cells(row))} |\n" for row in rows)
    write_between("calibration", f"{text}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="network", help=f"default: {', '.join(PLANS)}")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--variants", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="measure rows anew that are there")
    parser.add_argument("--outside", type=float, metavar="SHARE", help="predict by this share, from 0 to 1")
    parser.add_argument("--folder", type=Path, default=Path("build/end_to_end"))
    parser.add_argument("--rows", type=Path, default=Path(__file__).parent / "rows")
    settings = parser.parse_args()
    for network in (n for n in networks() if n.name in (settings.networks or PLANS)):
        path = folder_of(settings.rows, cpu_name()) / "calibration" / f"{network.name}-t{settings.threads}.json"
        if settings.outside is not None:
            if not path.exists():
                print(f"{network.name}: no row to compare with")
                continue
            row = json.loads(path.read_text(encoding="utf-8"))
            if row.get("rules") != RuleSet.load().digest:
                print(f"{network.name}: its variants are of other rules: --again")
                continue
            found = with_share(network, settings, row)
            print(f"{network.name} {found}; misses: {', '.join(missed(found)) or 'nothing'}", flush=True)
        elif settings.again or not path.exists():
            try:
                row = row_of(network, settings)
            except ImportError as error:  # of what exports it (benchmarks/requirements.txt)
                print(f"{network.name}: {error}", flush=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps(row) + "\n")
            print(network.name, calibration_of(row), flush=True)
    if settings.outside is None:
        write_table(settings.rows)


if __name__ == "__main__":
    main()
