"""Real environment steps of dream training and of model-free PPO until the same cost is reached.

    python benchmarks/real_steps.py [networks] [--seeds 5] [--out FOLDER]

The mark is a part of what greedy search saves. All real steps until then count, those of judging among them, looked at
after every round or update: of a dream the cheapest graph of its controller's episodes, of PPO the cheapest that it
came across at all. Both once without knowing the cost changes of candidates that weren't taken, as where each has to be
measured, and once with them, as a simulator gives them. Both may look at several sizes of rounds and updates, of which
the one with the fewest steps is shown: small ones look more often. Every run is a file in FOLDER and isn't repeated.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from support.cells import cell

from taso_agents.dreams.run import Round
from taso_agents.dreams.settings import DreamTrainSettings
from taso_agents.dreams.train import train_in_dream
from taso_agents.environment.real_env import make_env, state_of
from taso_agents.stats import Estimate, iqm_estimate
from taso_agents.training.ppo import train
from taso_agents.training.run_callback import Point
from taso_agents.training.run_state import torch_threads
from taso_agents.training.settings import PPOSettings
from taso_gym.registration import env_id
from taso_gym.rules.ruleset import RuleSet
from taso_gym.search import Budget, run


class Reached(Exception):  # noqa: N818 - not an error
    """Ends a training at the mark; its argument are the steps."""


def mark_of(network: str, part: float) -> float:
    """Return the mark of a network, in % saved."""
    env = make_env(env_id(network))
    env.reset()
    start = state_of(env)
    found = run(start, "greedy", Budget())
    return part * 100 * (1 - found.state.cost.time_ps / start.cost.time_ps)


def dream_steps(options: argparse.Namespace, network: str, seed: int, size: int, see_costs: bool) -> None:
    """Train in dreams, with so many real steps a round; `Reached` says how many in all."""

    def watch(done: Round) -> None:
        if done.best >= options.marks[network] - 1e-6:
            raise Reached(done.real_steps)

    settings = replace(
        DreamTrainSettings(), seed=seed, steps=size, see_costs=see_costs, episodes=1, dream_steps=options.dream_steps
    )
    rounds = -(-options.most // size)
    train_in_dream(
        env_id(network), replace(settings, rounds=rounds), on_round=watch, max_steps=options.max_steps[network]
    )


def ppo_steps(options: argparse.Namespace, network: str, seed: int, size: int, see_costs: bool) -> None:
    """Train PPO, with so many real steps between updates; `Reached` says how many in all."""

    def watch(point: Point) -> None:
        if 100 * (1 - point.best_seen) >= options.marks[network] - 1e-6:
            raise Reached(point.steps + point.evaluation_steps)

    environments = PPOSettings().environments
    settings = PPOSettings(steps=options.most, see_costs=see_costs, seed=seed, rollout=size // environments)
    train(env_id(network), settings, on_point=watch, max_steps=options.max_steps[network])


METHODS = {"dream": dream_steps, "ppo": ppo_steps}
SIZES = {"dream": "rounds", "ppo": "updates"}


def measured(options: argparse.Namespace, network: str, method: str, size: int, see_costs: bool, seed: int) -> float:
    """Return the real steps to the mark; infinite if it isn't reached."""

    def measure() -> dict[str, Any]:
        try:
            METHODS[method](options, network, seed, size, see_costs)
        except Reached as reached:
            return {"steps": int(reached.args[0])}
        return {"steps": None}

    settings = {"mark": options.marks[network], "most": options.most, "rules": options.rules}
    settings |= {"max_steps": options.max_steps[network]}
    if method == "dream":
        settings["dream_steps"] = options.dream_steps
    name = f"{network}/{method}-{size}-{'seen' if see_costs else 'blind'}-{seed}"
    steps = cell(options.out, name, settings, measure)["steps"]
    return float("inf") if steps is None else float(steps)


def best_of(options: argparse.Namespace, network: str, method: str, see_costs: bool) -> tuple[int, list[float]]:
    """Return the size with which a method needs the fewest steps, in the median, and these by seed."""
    sizes = getattr(options, SIZES[method])
    found = {s: [measured(options, network, method, s, see_costs, i) for i in range(options.seeds)] for s in sizes}
    return min(found.items(), key=lambda item: (float(np.median(item[1])), float(np.sum(np.isinf(item[1])))))


def shown(steps: list[float], most: int) -> str:
    """Return steps with their interval; a run that didn't get there counts as the most that it was given."""
    missed = sum(map(np.isinf, steps))
    estimate = iqm_estimate(np.minimum(steps, most))
    over = f" ({missed} of {len(steps)} not there after {most})" if missed else ""
    return f"{estimate.value:.0f} [{estimate.low:.0f}, {estimate.high:.0f}]{over}"


def ratio(ppo: list[float], dream: list[float], most: int) -> Estimate:
    """Return how many times as many steps PPO takes, both drawn anew for the interval."""
    rng = np.random.default_rng(0)
    a, b = np.minimum(ppo, most), np.minimum(dream, most)

    def of(x: np.ndarray, y: np.ndarray) -> float:
        return iqm_estimate(x, resamples=1).value / iqm_estimate(y, resamples=1).value

    drawn = [of(rng.choice(a, len(a)), rng.choice(b, len(b))) for _ in range(1000)]
    return Estimate(of(a, b), *map(float, np.quantile(drawn, [0.025, 0.975])))


def main() -> None:
    """Run what isn't there yet and show all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=["SqueezeNet1.1", "ResNet18"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--part", type=float, default=0.95, help="of what greedy search saves")
    parser.add_argument("--rounds", type=int, nargs="+", default=[30, 120], help="real steps of a round")
    parser.add_argument("--updates", type=int, nargs="+", default=[64, 256, 1024], help="real steps between updates")
    parser.add_argument("--dream-steps", type=int, default=2048, help="of a round")
    parser.add_argument("--max-steps", type=int, nargs="+", default=[30], help="of an episode, for all or each network")
    parser.add_argument("--most", type=int, default=4096, help="real steps after which a run ends")
    parser.add_argument("--out", type=Path, default=Path("out/real_steps"))
    options = parser.parse_args()
    limits = options.max_steps * len(options.networks) if len(options.max_steps) == 1 else options.max_steps
    options.max_steps = dict(zip(options.networks, limits, strict=True))
    options.marks = {network: mark_of(network, options.part) for network in options.networks}
    options.rules = RuleSet.load("default").digest
    table = Table("network, saved by the mark", "cost changes", "dream", "PPO", "times as many")
    with torch_threads(1):
        for network in options.networks:
            for see_costs in (False, True):
                found = {method: best_of(options, network, method, see_costs) for method in METHODS}
                cells = [f"{shown(steps, options.most)}, {SIZES[m]} of {size}" for m, (size, steps) in found.items()]
                times = ratio(found["ppo"][1], found["dream"][1], options.most)
                known = "of all candidates" if see_costs else "of taken steps"
                table.add_row(f"{network}, {options.marks[network]:.2f} %", known, *cells, str(times))
    Console(width=170).print(table)


if __name__ == "__main__":
    main()
