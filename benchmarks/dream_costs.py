"""Costs that controllers trained in dreams reach for real, beside those of searches and of PPO.

    python benchmarks/dream_costs.py [networks] [--seeds 1] --out costs.jsonl

For each network and seed: dream training (`taso_agents.dreams.train`); greedy search; TASO's search with so many
candidates weighed; and PPO on the real environment, if it is given steps. A cost is that of the cheapest graph that
was come across, by the environment's cost model. What is in the file is left out, so a killed run goes on.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

from rich.console import Console
from rich.table import Table

from taso_agents.dreams.train import DreamTrainSettings, train_in_dream
from taso_agents.stats import iqm_estimate
from taso_agents.training.ppo import train
from taso_agents.training.run_state import torch_threads
from taso_agents.training.settings import PPOSettings
from taso_agents.training.training_env import make_env, state_of
from taso_gym.atomic import write_text
from taso_gym.registration import env_id
from taso_gym.search import Budget, run

NETWORKS = ("SqueezeNet1.1", "ResNet18", "ResNet50", "InceptionV3", "BERT")


def saved_by_search(network: str, search: str, budget: Budget) -> float:
    """Return what a search saves in %."""
    env = make_env(network)
    env.reset()
    start = state_of(env)
    found = run(start, search, budget)
    return 100 * (start.cost.time_ps - found.state.cost.time_ps) / start.cost.time_ps


def measure(options: argparse.Namespace, network: str, seed: int) -> dict[str, Any]:
    """Return what each method saves in %."""
    began = process_time()
    settings = replace(
        DreamTrainSettings(), seed=seed, steps=options.steps, dream_steps=options.dream_steps, rounds=options.rounds
    )
    result = train_in_dream(network, settings, max_steps=options.max_steps)
    last = result.rounds[-1]
    row = {"dream": last.best, "dream, last controller": last.fixed, "real steps": last.real_steps}
    row["dream, CPU s"] = round(process_time() - began, 1)
    row["greedy"] = saved_by_search(network, "greedy", Budget(60.0))
    row["taso"] = saved_by_search(network, "taso", Budget(steps=options.taso_steps))
    if options.ppo_steps:
        played = train(network, PPOSettings(steps=options.ppo_steps, seed=seed), max_steps=options.max_steps)
        row["ppo"] = 100 * (1 - min(point.best_seen for point in played.curve))
    return row


def table_of(rows: list[dict[str, Any]]) -> Table:
    """Return what was saved, and how much dearer the dream's graph is than the best of the others'."""
    methods = ("greedy", "taso", "ppo")
    table = Table("network", "dream", "last controller", *methods, "dearer, %", "real steps", "CPU s", "seeds")
    for network in dict.fromkeys(row["network"] for row in rows):
        own = [row for row in rows if row["network"] == network]
        dearer = [100 * ((100 - r["dream"]) / (100 - max(r[m] for m in methods if m in r)) - 1) for r in own]
        cells = [
            str(iqm_estimate([r[name] for r in own])) if all(name in r for r in own) else ""
            for name in ("dream", "dream, last controller", *methods)
        ]
        counts = [f"{sum(r[name] for r in own) / len(own):.0f}" for name in ("real steps", "dream, CPU s")]
        table.add_row(network, *cells, str(iqm_estimate(dearer)), *counts, str(len(own)))
    return table


def main() -> None:
    """Run what isn't there yet and show all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=600, help="real steps of a round")
    parser.add_argument("--dream-steps", type=int, default=2048)
    parser.add_argument("--max-steps", type=int, default=100)
    parser.add_argument("--taso-steps", type=int, default=20_000, help="candidates that TASO's search weighs")
    parser.add_argument("--ppo-steps", type=int, default=0, help="of PPO on the real environment; 0 leaves it out")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.out.read_text("utf-8").splitlines()] if options.out.exists() else []
    console = Console(width=160)
    with torch_threads(1):
        for seed in range(options.seeds):
            for network in options.networks:
                if any((r["network"], r["seed"]) == (network, seed) for r in rows):
                    continue
                rows.append({"network": network, "seed": seed, **measure(options, env_id(network), seed)})
                write_text(options.out, "".join(json.dumps(row) + "\n" for row in rows))
                console.print(rows[-1])
    console.print(table_of(rows))


if __name__ == "__main__":
    main()
