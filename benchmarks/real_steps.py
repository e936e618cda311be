"""Real environment steps of dream training and of model-free PPO until the same cost is reached.

    python benchmarks/real_steps.py [--network TasoGraph-SqueezeNet1.1-v0] [--seeds 5] --out steps.jsonl

For each seed a controller is trained in dreams; the cheapest graph of its real episodes sets the mark, and its steps
are all that were taken for real, judging among them. PPO then trains until it has seen a graph as cheap, deterministic
episodes counted, or until its steps are over: once by trying alone, once with the cost change of every candidate shown,
which a simulator gives but hardware doesn't. What is in the file is left out, so a killed run goes on.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from taso_agents.dreams.train import DreamTrainSettings, train_in_dream
from taso_agents.stats import iqm_estimate
from taso_agents.training.ppo import train
from taso_agents.training.run_callback import Point
from taso_agents.training.run_state import torch_threads
from taso_agents.training.settings import PPOSettings
from taso_gym.atomic import write_text


def ppo_steps(options: argparse.Namespace, seed: int, cost: float, *, see_costs: bool) -> int | None:
    """Return the real steps until PPO has seen a graph of this relative cost; None if it never does."""

    class Reached(Exception):  # noqa: N818 - not an error
        """Ends the training."""

    def watch(point: Point) -> None:
        if point.best_seen <= cost + 1e-9:
            raise Reached(point.steps + point.evaluation_steps)

    settings = PPOSettings(steps=options.ppo_steps, see_costs=see_costs, seed=seed)
    try:
        train(options.network, settings, on_point=watch, max_steps=options.max_steps)
    except Reached as reached:
        return int(reached.args[0])
    return None


def run(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Return the mark of a seed and the steps to it."""
    settings = replace(
        DreamTrainSettings(), seed=seed, rounds=options.rounds, steps=options.steps, dream_steps=options.dream_steps
    )
    result = train_in_dream(options.network, settings, max_steps=options.max_steps)
    best = max(r.best for r in result.rounds)
    taken = next(r.real_steps for r in result.rounds if r.best == best)
    cost = 1 - best / 100
    return {
        "seed": seed,
        "saved": best,
        "dream": taken,
        "ppo": ppo_steps(options, seed, cost, see_costs=False),
        "ppo that sees cost changes": ppo_steps(options, seed, cost, see_costs=True),
    }


def main() -> None:
    """Run the seeds that aren't there yet and show all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="TasoGraph-SqueezeNet1.1-v0")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=250, help="real steps of a round")
    parser.add_argument("--dream-steps", type=int, default=4096)
    parser.add_argument("--max-steps", type=int, default=30)
    parser.add_argument("--ppo-steps", type=int, default=20_000, help="most steps of PPO")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.out.read_text("utf-8").splitlines()] if options.out.exists() else []
    with torch_threads(1):
        for seed in range(options.seeds):
            if seed not in {row["seed"] for row in rows}:
                rows.append(run(options, seed))
                write_text(options.out, "".join(json.dumps(row) + "\n" for row in rows))
    table = Table("method", "real steps, IQM", "times as many as in dreams", "seeds that got there")
    for name in ("dream", "ppo", "ppo that sees cost changes"):
        reached = [row for row in rows if row[name] is not None]
        if reached:
            ratio = iqm_estimate([row[name] / row["dream"] for row in reached])
            table.add_row(
                name, str(iqm_estimate([row[name] for row in reached])), str(ratio), f"{len(reached)}/{len(rows)}"
            )
        else:
            table.add_row(name, f"over {options.ppo_steps}", "", f"0/{len(rows)}")
    console = Console()
    console.print(table)
    console.print(f"saved by the mark, %: {iqm_estimate([row['saved'] for row in rows])}")


if __name__ == "__main__":
    main()
