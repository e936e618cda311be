"""How well each kind of world model foresees the real environment, from the same steps.

    python benchmarks/world_models.py [network] [--kinds graph tokens mdn] [--steps 1200] [--seeds 5] [--passes 20 40]
        [--out FOLDER]

For each seed: real episodes of noisy greed and of chance, half each, every kind fitted to them with its default sizes,
then compared with a third as many fresh steps (`taso_agents.dreams.gap`). Printed are interquartile means over seeds
with 95 % bootstrap intervals; times are CPU times of this process at one thread. Errors are in % of the start graph's
cost. Every fit is a file in FOLDER and isn't repeated.
"""

import argparse
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
from support.cells import cell

from taso_agents.data.collect import collect, empty_dataset, greedy_actor, random_actor
from taso_agents.data.episodes import Dataset
from taso_agents.dreams.gap import horizons, one_step
from taso_agents.dreams.settings import DreamTrainSettings
from taso_agents.dreams.train import build_model
from taso_agents.environment.real_env import make_env
from taso_agents.stats import iqm_estimate
from taso_agents.world_models import world_model
from taso_agents.world_models.fit import FitSettings, fit
from taso_gym.registration import env_id
from taso_gym.rules.ruleset import RuleSet

MAX_STEPS = 40
EPSILON = 0.3
HORIZONS = (1, 5, 10)
PASSES_OF_TOKENS = (10, 0)
RATES = {"tokens": 2e-3}


def episodes(env: gym.Env, steps: int, rng: np.random.Generator) -> Dataset:
    """Collect so many steps, half by noisy greed and half by chance."""
    found = empty_dataset(env)
    collect(env, greedy_actor(EPSILON), steps // 2, rng, found)
    collect(env, random_actor(0.0), steps // 2, rng, found)
    return found


def figures(kind: str, env: gym.Env, known: Dataset, fresh: Dataset, settings: FitSettings) -> dict[str, float]:
    """Fit one model and compare it with fresh episodes."""
    torch.manual_seed(settings.seed)
    model = build_model(env, replace(DreamTrainSettings(), model=world_model(kind).Settings()))
    began = time.process_time()
    fit(model, known, settings)
    found = {"fit, CPU s": time.process_time() - began}
    single = one_step(model, fresh)
    found |= {"reward MAE": single.reward_mae, "sign": single.sign_accuracy, "retrieval": single.retrieval}
    for horizon in horizons(model, fresh, HORIZONS):
        name = f"k={horizon.steps:g}"
        found |= {
            f"gap {name}": horizon.gap,
            f"error {name}": horizon.reward_error,
            f"F1 {name}": horizon.f1,
            f"illegal {name}": horizon.illegal,
        }
        found[f"persistence {name}"] = horizon.persistence_error
    return found


def measured(options: argparse.Namespace, kind: str, seed: int, known: Dataset, fresh: Dataset) -> dict[str, float]:
    """Return the figures of a kind and seed, measured now or before."""
    settings = {"steps": options.steps, "max_steps": MAX_STEPS, "rules": options.rules}
    fitting = FitSettings(seed=seed)
    if kind != "graph":
        passes = PASSES_OF_TOKENS if kind == "tokens" else options.passes
        settings["passes"] = passes
        fitting = FitSettings(
            encoder_epochs=passes[0], epochs=passes[1], seed=seed, learning_rate=RATES.get(kind, 1e-3)
        )
    name = f"{options.network}/{kind}-{seed}"
    return cell(options.out, name, settings, lambda: figures(kind, options.env, known, fresh, fitting))


def main() -> None:
    """Print a row a figure, a column a kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", nargs="?", default="SqueezeNet1.1")
    parser.add_argument("--kinds", nargs="+", default=["graph", "tokens", "discrete", "mdn"])
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--passes", type=int, nargs=2, default=(20, 40), help="over the steps, and over the episodes")
    parser.add_argument("--out", type=Path, default=Path("out/world_models"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.env = make_env(env_id(options.network), max_steps=MAX_STEPS)
    options.env.reset()
    options.rules = RuleSet.load("default").digest
    samples: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for seed in range(options.seeds):
        known = episodes(options.env, options.steps, np.random.default_rng([seed, 0]))
        fresh = episodes(options.env, options.steps // 3, np.random.default_rng([seed, 1]))
        for kind in options.kinds:
            for name, value in measured(options, kind, seed, known, fresh).items():
                if isinstance(value, float):
                    samples[name][kind].append(value)
    print(f"\n{options.network}, {options.steps} steps, {options.seeds} seeds\n")
    print("| figure | " + " | ".join(options.kinds) + " |\n" + "| --- " * (len(options.kinds) + 1) + "|")
    for name, of_kind in samples.items():
        cells = [str(iqm_estimate(of_kind[kind])) for kind in options.kinds]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
