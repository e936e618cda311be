"""Steps per second of CPU time, dreamt and real, with random legal actions.

    python benchmarks/dream_speed.py dream.pt [--dreams 1 16 64] [--steps 40]

A real step makes the observation and, for `LatentObservation`, its latent. One thread; choosing actions is left out.
"""

from __future__ import annotations

import argparse
from time import process_time
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import taso_agents  # noqa: F401 - registers the dreams
from taso_agents.dreams.latent import LatentObservation
from taso_agents.environment.real_env import make_env
from taso_agents.world_models.mdn_rnn import load_world_model


def drawn(counts: np.ndarray, rng: np.random.Generator) -> list[int]:
    """Return a legal action by numbers of locations (N + 1,); NO-OP only if nothing else is legal."""
    legal = np.flatnonzero(counts[:-1])
    xfer = int(rng.choice(legal)) if len(legal) else len(counts) - 1
    return [xfer, int(rng.integers(counts[xfer]))]


def dreams_a_second(path: str, count: int, steps: int) -> float:
    """Return how many dreamt steps a second of CPU time gives."""
    dreams: Any = gym.make_vec("TasoDream-v0", num_envs=count, world_model=path)
    rng, spent = np.random.default_rng(0), 0.0
    observation, _ = dreams.reset(seed=0)
    for _ in range(steps):
        actions = np.array([drawn(row, rng) for row in observation["location_counts"]])
        began = process_time()
        observation, *_ = dreams.step(actions)
        spent += process_time() - began
    return count * steps / spent


def real_a_second(env: gym.Env, steps: int) -> float:
    """Return how many real steps a second of CPU time gives."""
    rng, spent = np.random.default_rng(0), 0.0
    observation, _ = env.reset(seed=0)
    for _ in range(steps):
        action = np.array(drawn(observation["location_counts"], rng))
        began = process_time()
        observation, _, terminated, truncated, _ = env.step(action)
        spent += process_time() - began
        if terminated or truncated:
            observation, _ = env.reset()
    return steps / spent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("world_model")
    parser.add_argument("--dreams", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model, data = load_world_model(options.world_model)
    taso = data["taso"]
    env = make_env(taso["model"], **taso["arguments"])
    table = Table("", "steps a second of CPU time", title=f"{taso['model']}, {model.kind}")
    table.add_row("real", f"{real_a_second(env, options.steps * 5):.0f}")
    table.add_row("real, with its latent", f"{real_a_second(LatentObservation(env, model), options.steps):.0f}")
    for count in options.dreams:
        table.add_row(f"{count} dreams at once", f"{dreams_a_second(options.world_model, count, options.steps):.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
