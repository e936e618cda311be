"""Costs that controllers trained in dreams reach for real, beside those of searches and of PPO.

    python benchmarks/dream_costs.py [networks] [--seeds 5] [--methods greedy taso ppo blind-ppo dream] [--out FOLDER]

* dream: `taso_agents.dreams.train`, the cheapest graph of the controller's real episodes;
* greedy: taso_gym's greedy search to its end;
* taso: TASO's search for so many seconds of CPU time, or to its end; it has no chance in it, so one run a network;
* ppo: PPO on the real environment (`taso_agents.training.ppo`), the cheapest graph that it came across; it is shown by
  how much each candidate would change the cost;
* blind-ppo: PPO that finds out by trying, as the dissertation's model-free agent, in shorter episodes.

Costs are those of the environment's cost model. Every measurement is a file in FOLDER and isn't repeated, so a killed
run goes on, and several may run at once with different methods.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from support.cells import cell

from taso_agents.dreams.settings import DreamTrainSettings
from taso_agents.dreams.train import train_in_dream
from taso_agents.environment.real_env import make_env, state_of
from taso_agents.stats import iqm_estimate
from taso_agents.training.ppo import train
from taso_agents.training.run_state import torch_threads
from taso_agents.training.settings import PPOSettings
from taso_gym.registration import env_id
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.search import Budget, run
from taso_gym.search.taso import Taso

NETWORKS = ("SqueezeNet1.1", "ResNet18", "ResNet50", "InceptionV3", "BERT")
METHODS = ("greedy", "taso", "ppo", "blind-ppo", "dream")
WITHOUT_CHANCE = ("greedy", "taso")
TRACE_SECONDS = 10.0


def start_of(network: str) -> RewriteState:
    """Return the state that episodes of a network begin in."""
    env = make_env(env_id(network))
    env.reset()
    return state_of(env)


def saved(start: RewriteState, time_ps: int) -> float:
    """Return what a cost saves of the start's, in %."""
    return 100 * (start.cost.time_ps - time_ps) / start.cost.time_ps


def greedy(options: argparse.Namespace, network: str, _seed: int) -> dict[str, Any]:  # noqa: ARG001 - as the others
    """Search greedily to the end."""
    start = start_of(network)
    found = run(start, "greedy", Budget())
    return {"saved": saved(start, found.state.cost.time_ps), "rewrites": len(found.path)}


def taso(options: argparse.Namespace, network: str, _seed: int) -> dict[str, Any]:
    """Let TASO's search run for seconds of CPU time; ``trace`` is (seconds, candidates, saved), ten seconds apart."""
    start, trace, spent, goes_on = start_of(network), [], 0.0, True
    began = process_time()
    search = Taso(start, np.random.default_rng(0))
    while spent < options.taso_seconds and goes_on:
        goes_on, spent = search.step(), process_time() - began
        if not trace or spent - trace[-1][0] >= TRACE_SECONDS:
            trace.append([spent, search.explored, saved(start, search.best_value)])
    if goes_on:
        search.finish(lambda: False)
    last = saved(start, search.state(search.best).cost.time_ps)
    return {"saved": last, "candidates": search.explored, "ended": not goes_on, "trace": trace}


def ppo(options: argparse.Namespace, network: str, seed: int) -> dict[str, Any]:
    """Train PPO that is shown cost changes."""
    settings = PPOSettings(steps=options.ppo_steps, seed=seed, rollout=options.ppo_rollout)
    return trained(network, settings, options.max_steps)


def blind_ppo(options: argparse.Namespace, network: str, seed: int) -> dict[str, Any]:
    """Train PPO that tries alone."""
    settings = PPOSettings(steps=options.blind_steps, seed=seed, rollout=options.ppo_rollout, see_costs=False)
    return trained(network, settings, options.blind_max_steps)


def trained(network: str, settings: PPOSettings, max_steps: int) -> dict[str, Any]:
    """Train PPO for real; ``curve`` holds the points of `taso_agents.training.run_callback.Point`."""
    curve = train(env_id(network), settings, max_steps=max_steps).curve
    last = curve[-1]
    return {
        "saved": 100 * (1 - min(point.best_seen for point in curve)),
        "policy": 100 * (1 - min(point.policy for point in curve)),
        "real steps": last.steps + last.evaluation_steps,
        "curve": [list(point) for point in curve],
    }


def dream(options: argparse.Namespace, network: str, seed: int) -> dict[str, Any]:
    """Train in dreams; real steps count those of judging."""
    given = {name: getattr(options, name) for name in ("steps", "dream_steps", "rounds", "episodes")}
    settings = replace(DreamTrainSettings(), seed=seed, **given)
    result = train_in_dream(env_id(network), settings, max_steps=options.max_steps)
    last = result.rounds[-1]
    return {"saved": last.best, "policy": last.fixed, "real steps": last.real_steps, "returns": result.run.returns}


MEASURES: dict[str, Callable[[argparse.Namespace, str, int], dict[str, Any]]] = {
    "greedy": greedy,
    "taso": taso,
    "ppo": ppo,
    "blind-ppo": blind_ppo,
    "dream": dream,
}
SETTINGS = {
    "greedy": (),
    "taso": ("taso_seconds",),
    "ppo": ("ppo_steps", "ppo_rollout", "max_steps"),
    "blind-ppo": ("blind_steps", "ppo_rollout", "blind_max_steps"),
    "dream": ("steps", "dream_steps", "rounds", "episodes", "max_steps"),
}


def measured(options: argparse.Namespace, method: str, network: str, seed: int) -> dict[str, Any]:
    """Return what a method saves on a network in %, measured now or before."""
    settings = {name: getattr(options, name) for name in SETTINGS[method]} | {"rules": options.rules}
    name = f"{method}/{network}-{seed}" + (f"-{options.taso_seconds:g}s" if method == "taso" else "")
    return cell(options.out, name, settings, lambda: MEASURES[method](options, network, seed))


def table_of(options: argparse.Namespace, found: dict[tuple[str, str], list[dict[str, Any]]]) -> Table:
    """Return what was saved, and how much dearer each seed's dream is than the best of the other methods' IQMs."""
    table = Table("network", *options.methods, "dearer than the best, %", "real steps", "CPU s of dream")
    for network in options.networks:
        estimates = {m: iqm_estimate([row["saved"] for row in found[m, network]]) for m in options.methods}
        others = [estimate.value for method, estimate in estimates.items() if method != "dream"]
        cells = ["", "", ""]
        if "dream" in options.methods and others:
            own = found["dream", network]
            dearer = iqm_estimate([100 * ((100 - r["saved"]) / (100 - max(others)) - 1) for r in own])
            means = [float(np.mean([r[name] for r in own])) for name in ("real steps", "cpu_s")]
            cells = [str(dearer), f"{means[0]:.0f}", f"{means[1]:.0f}"]
        table.add_row(network, *map(str, estimates.values()), *cells)
    return table


def arguments() -> argparse.ArgumentParser:
    """Return the command line, whose values the figures of training share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=600, help="real steps of a round")
    parser.add_argument("--dream-steps", type=int, default=2048)
    parser.add_argument("--episodes", type=int, default=1, help="real ones that a controller is judged by, with chance")
    parser.add_argument("--max-steps", type=int, default=200, help="of an episode")
    parser.add_argument("--taso-seconds", type=float, default=600.0, help="CPU time of TASO's search")
    parser.add_argument("--ppo-steps", type=int, default=1024, help="of PPO on the real environment")
    parser.add_argument("--ppo-rollout", type=int, default=64, help="steps of each of 8 environments between updates")
    parser.add_argument("--blind-steps", type=int, default=3072, help="of PPO that isn't shown cost changes")
    parser.add_argument("--blind-max-steps", type=int, default=60, help="of an episode of it")
    parser.add_argument("--out", type=Path, default=Path("out/dreams"))
    return parser


def main() -> None:
    """Run what isn't there yet and show all."""
    options = arguments().parse_args()
    options.rules = RuleSet.load("default").digest
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    with torch_threads(1):
        for method in options.methods:
            for network in options.networks:
                seeds = 1 if method in WITHOUT_CHANCE else options.seeds
                found[method, network] = [measured(options, method, network, seed) for seed in range(seeds)]
    Console(width=160).print(table_of(options, found))


if __name__ == "__main__":
    main()
