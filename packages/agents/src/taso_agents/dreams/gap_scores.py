"""Scores of the same policies in dreams and in reality: does a dream rank them as reality does?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from stable_baselines3.common.policies import BasePolicy

from taso_agents.checkpoint import part_of
from taso_agents.dreams.env import DreamSettings, DreamVectorEnv, play_dreams
from taso_agents.dreams.gap_report import load_controller
from taso_agents.dreams.latent import LatentObservation
from taso_agents.dreams.starts import Starts
from taso_agents.environment.real_env import Arrays, expect_graph_of, make_env
from taso_agents.stats import iqm_estimate
from taso_agents.world_models.mdn_rnn import load_world_model

CHANCES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Probability that an action is drawn by chance and not by the controller, of the policies that are compared."""


class Score(NamedTuple):
    """Mean sums of rewards of one policy, in % of the start graph's cost; ``temperature`` is that of its dreams."""

    chance: float
    dream: float
    real: float
    temperature: float = 1.0


Act = Callable[[Arrays], NDArray[np.int64]]


def mixed(policy: BasePolicy, chance: float, rng: np.random.Generator) -> Act:
    """Return a policy over batches that draws legal actions by chance, or with the rest of the probability its own."""

    def act(observation: Arrays) -> NDArray[np.int64]:
        actions = np.array(policy.predict(observation)[0])  # pyright: ignore[reportArgumentType]
        for row in np.flatnonzero(rng.random(len(actions)) < chance):
            counts = observation["location_counts"][row, :-1]
            if counts.any():
                number = int(rng.integers(counts.sum()))
                xfer = int(np.searchsorted(counts.cumsum(), number, side="right"))
                actions[row] = xfer, number - counts[:xfer].sum()
        return actions

    return act


def real_score(act: Act, env: LatentObservation, episodes: int) -> float:
    """Return the mean over real episodes."""
    total = 0.0
    for _ in range(episodes):
        observation, _ = env.reset()
        ended = False
        while not ended:
            action = act({key: array[None] for key, array in observation.items()})[0]
            observation, reward, terminated, truncated, _ = env.step(action)
            total, ended = total + reward, terminated or truncated
    return total / episodes


def scores(path: str, episodes: int, seed: int = 1) -> list[Score]:
    """Play policies between the controller of a file of dream training and chance, dreamt and for real.

    Dreams have the temperature that the controller learned at.

    Args:
        path: of `DreamResult.save`.
        episodes: real ones of each policy; four times as many are dreamt.
        seed: of both.

    Raises:
        CheckpointError: the file is something else, of another graph or other rules, or without a controller.
    """
    model, data = load_world_model(path)
    taso, policy = data["taso"], load_controller(model, part_of(data, "controller", path))
    starts = Starts(*part_of(data, "starts", path))
    max_steps = taso["sizes"]["max_steps"]
    real = make_env(taso["model"], **{**taso["arguments"], "max_steps": max_steps})
    real.reset()
    expect_graph_of(taso, real, path)
    env = LatentObservation(real, model)
    how = DreamSettings(taso["settings"].get("temperature", DreamSettings().temperature), max_steps)
    dreams = DreamVectorEnv(model, starts, 4 * episodes, how)
    found: list[Score] = []
    for chance in CHANCES:
        dreamt, played = (mixed(policy, chance, np.random.default_rng([seed, i])) for i in range(2))
        dream = float(play_dreams(dreamt, dreams, seed).mean())
        found.append(Score(chance, dream, real_score(played, env, episodes), how.temperature))
    return found


def correlation(found: Sequence[Score]) -> float:
    """Return the correlation of dreamt and real scores; nan where there is none."""
    pairs = np.array([(score.dream, score.real) for score in found])
    return float(np.corrcoef(pairs.T)[0, 1]) if len(pairs) > 2 and pairs.std(0).all() else float("nan")


def table_of_scores(found: Sequence[Sequence[Score]]) -> Table:
    """Return the scores of each policy, IQM over world models, and the correlation over all of them."""
    every = [score for row in found for score in row]
    dreamt = ", ".join(f"{temperature:g}" for temperature in sorted({score.temperature for score in every}))
    title = (
        f"Scores, dreamt at τ = {dreamt}, IQM over {len(found)} world models; "
        f"correlation over {len(every)}: {correlation(every):.3f}"
    )
    table = Table("actions by chance", "dream, % saved", "real, % saved", title=title)
    for policy in zip(*found, strict=True):
        cells = [str(iqm_estimate([getattr(score, name) for score in policy])) for name in ("dream", "real")]
        table.add_row(f"{100 * policy[0].chance:.0f} %", *cells)
    return table
