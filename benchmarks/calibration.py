"""How far predicted times are from measured ones: `taso-gym calibrate` over networks of networks.toml, as a table.

    python benchmarks/calibration.py [network ...] [--threads 1] [--variants 20] [--again] [--folder FOLDER]

Each network is a row, a JSON file in this machine's folder of --rows with all predicted and measured times, written at
once; what is there is not done again unless --again says so. At the end the table of all rows is written into
docs/results.md. Networks that few rewrites change by less than the noise are rewritten further away than others.
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

from taso_gym import load
from taso_gym.atomic import write_text
from taso_gym.cost import bind_dims
from taso_gym.cost.calibrate import Calibration, calibrate
from taso_gym.cost.machine import cpu_name
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.variants import random_variants
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
}
"""The networks that are calibrated by default."""
HEAD = (
    "network", "sessions x rounds", "bias", "mean error", "at most", "noise", "clear", "Spearman (of the halves)",
    "right signs", "aims met", "date",
)  # fmt: skip


def row_of(network: Network, settings: argparse.Namespace) -> dict[str, Any]:
    """Return the times of a network and of its variants, predicted and measured, and how they were found."""
    graph, plan = load(file_of(network, 1, settings.folder)), PLANS.get(network.name, Plan(8, 8, 10))
    variants = list(random_variants(graph, RuleSet.load(), settings.variants, settings.seed, plan.rewrites))
    dims, threads = bind_dims(graph), settings.threads
    model = OnnxRuntimeCost(dims=dims, threads=threads, start=graph).in_turns([graph, *variants])
    how = {"sessions": plan.sessions, "rounds": plan.rounds, "seed": settings.seed}
    found = calibrate(graph, variants, model, threads=threads, dims=dims, **how)
    times = {name: value.tolist() for name, value in vars(found).items()}
    said = {"network": network.name, "threads": threads, "rewrites": plan.rewrites, **how, **times}
    return {**said, "machine": cpu_name(), "date": time.strftime("%Y-%m-%d")}


def calibration_of(row: Mapping[str, Any]) -> Calibration:
    """Return the calibration of a row."""
    return Calibration(*(np.array(row[name]) for name in ("predicted_ms", "measured_ms", "halves")))


def missed(found: Calibration) -> list[str]:
    """Return the aims that a calibration misses."""
    aims = {
        "mean error": found.errors.mean() <= 0.01,
        "greatest error": found.errors.max() <= 0.02,
        "Spearman": found.spearman >= 0.9,
        "signs": found.right_signs >= 0.95,
    }
    return [name for name, met in aims.items() if not met]


def cells(row: Mapping[str, Any]) -> list[str]:
    """Return the cells of a row of the table."""
    found = calibration_of(row)
    clear, errors = int(found.clear.sum()) - 1, found.errors
    name = row["network"] + (f", `--rewrites {row['rewrites']}`" if row["rewrites"] != 8 else "")
    shown = [name, f"{row['sessions']}x{row['rounds']}", f"{found.bias:+.1%}"]
    shown += [f"{errors.mean():.2%}", f"{errors.max():.2%}", f"{found.noise:.2%}"]
    shown += [f"{clear} of {len(errors) - 1}", f"{found.spearman:.2f} ({found.repeatability:.2f})"]
    shown += [f"{round(found.right_signs * clear)} of {clear}"]
    return [*shown, f"all but {', '.join(missed(found))}" if missed(found) else "**all**", row["date"]]


def write_table(folder: Path) -> None:
    """Write the tables of all rows between their marks in docs/results.md, one for each machine and threads."""
    parts: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*/calibration/*.json")):
        row = json.loads(path.read_text(encoding="utf-8"))
        parts.setdefault((row["machine"], row["threads"]), []).append(row)
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
    parser.add_argument("--folder", type=Path, default=Path("build/end_to_end"))
    parser.add_argument("--rows", type=Path, default=Path(__file__).parent / "rows")
    settings = parser.parse_args()
    for network in (n for n in networks() if n.name in (settings.networks or PLANS)):
        path = folder_of(settings.rows, cpu_name()) / "calibration" / f"{network.name}-t{settings.threads}.json"
        if settings.again or not path.exists():
            row = row_of(network, settings)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps(row) + "\n")
            print(network.name, calibration_of(row), flush=True)
    write_table(settings.rows)


if __name__ == "__main__":
    main()
