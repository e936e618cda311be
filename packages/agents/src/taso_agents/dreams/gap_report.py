"""The report of the gap: world models of one network, played by several actors, against what they should reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from rich.table import Table

from taso_agents import world_models
from taso_agents.checkpoint import part_of
from taso_agents.data.collect import Actor, collect, empty_dataset, greedy_actor, random_actor
from taso_agents.data.episodes import Dataset
from taso_agents.dreams.actors import controller_actor
from taso_agents.dreams.gap import Horizon, OneStep, horizons, one_step
from taso_agents.dreams.latent import latent_space
from taso_agents.dreams.starts import everywhere
from taso_agents.environment.real_env import expect_graph_of, make_env
from taso_agents.policies.latent_policy import LatentPolicy
from taso_agents.stats import iqm_estimate, known_mean
from taso_agents.world_models.fit import encode_all, pad_episodes
from taso_agents.world_models.mdn_rnn import WorldModel, load_world_model
from taso_agents.world_models.token_rewards import check_rewards
from taso_gym.cost.calibrate import rank_correlation
from taso_gym.errors import OptionError

STEPS = (1, 5, 10)
STATES = 48
"""Most states whose candidates are compared."""


class Ranking(NamedTuple):
    """Rewards of all candidates of a state, predicted and real, the mean over states.

    Attributes:
        mae: in % of the start graph's cost.
        sign_accuracy: of those that aren't 0.
        spearman: rank correlation, over states with at least three different rewards.
    """

    mae: float
    sign_accuracy: float
    spearman: float


class Gap(NamedTuple):
    """Everything about one world model and one actor."""

    one_step: OneStep
    ranking: Ranking
    horizons: list[Horizon]


@torch.no_grad()
def ranking(model: WorldModel, dataset: Dataset) -> Ranking:
    """Compare the predicted rewards of all candidates with the real ones, in `STATES` drawn from real episodes.

    Undefined where no action but NO-OP was taken, and where rewards aren't what an action saves in %: then those of
    candidates that aren't taken aren't known.
    """
    try:
        check_rewards(dataset)
    except OptionError:
        return Ranking(*[float("nan")] * len(Ranking._fields))
    batch, latents = pad_episodes(dataset.episodes, model.xfers), encode_all(model, dataset)
    found = everywhere(model, batch, latents)
    rng = np.random.default_rng(0)
    rows: list[tuple[float, float, float]] = []
    for row in rng.permutation(len(found.episode))[:STATES]:
        episode, state = found.take(torch.tensor([int(row)]))
        graph = dataset.store.graphs[int(batch.graph[episode[0], state.step[0]])]
        actions = torch.from_numpy(graph.candidates[:, :2].astype(np.int64))
        size = len(actions)
        memory = state.hidden.expand(size, -1).contiguous(), state.cell.expand(size, -1).contiguous()
        given = state.latent.expand(size, -1), state.counts.expand(size, -1)
        predicted = (model.rewards(*given, actions[:, 0], actions[:, 1], memory) * model.reward_scale).numpy()
        real = -graph.changes
        moving = np.abs(real) > 1e-6
        same = (np.sign(predicted) == np.sign(real))[moving]
        rounded = np.round(predicted, 6), np.round(real, 6)
        correlation = rank_correlation(*rounded) if len(np.unique(rounded[1])) > 2 else float("nan")
        rows.append((float(np.abs(predicted - real).mean()), known_mean(same), correlation))
    return Ranking(*map(known_mean, np.array(rows).reshape(-1, len(Ranking._fields)).T))


def compare(
    model: WorldModel, env: gym.Env, actor: Actor, steps: int, seed: int, temperature: float = 0.0
) -> tuple[Gap, Dataset]:
    """Play for real and in the dream with the same actions; return the gap and what was played."""
    dataset = empty_dataset(env)
    collect(env, actor, steps, np.random.default_rng([seed, 77]), dataset)
    found = Gap(
        one_step(model, dataset), ranking(model, dataset), horizons(model, dataset, STEPS, temperature=temperature)
    )
    return found, dataset


def load_controller(model: WorldModel, weights: Mapping[str, Any]) -> LatentPolicy:
    """Return the controller that was saved with a world model."""
    spaces = latent_space(model), gym.spaces.MultiDiscrete([model.xfers + 1, model.locations])
    policy = world_models.policy(model.kind)(*spaces, lambda _progress: 0.0, **model.policy_arguments())
    policy.load_state_dict(weights)
    policy.set_training_mode(False)
    return policy


def report(paths: Sequence[str], steps: int = 300, seed: int = 1) -> dict[str, list[Gap]]:
    """Return for each actor the gaps of all world models, on new real episodes.

    Args:
        paths: files of `DreamResult.save`, of one network, one a seed.
        steps: real steps of each actor.
        seed: of these episodes.

    Raises:
        OptionError: they are of different networks.
        CheckpointError: one is something else, of another graph or other rules, or without a controller.
    """
    found: dict[str, list[Gap]] = {}
    network = ""
    for path in paths:
        model, data = load_world_model(path)
        taso, weights = data["taso"], part_of(data, "controller", path)
        if network and taso["model"] != network:
            raise OptionError(f"expected world models of {network}, found one of {taso['model']} in {path}")
        network = taso["model"]
        env = make_env(network, **{**taso["arguments"], "max_steps": taso["sizes"]["max_steps"]})
        env.reset()
        expect_graph_of(taso, env, path)
        actors = {
            "random": random_actor(0.0),
            "noisy greed": greedy_actor(0.3),
            "controller": controller_actor(load_controller(model, weights), model),
        }
        torch.manual_seed(seed)
        for name, actor in actors.items():
            found.setdefault(name, []).append(compare(model, env, actor, steps, seed)[0])
    return found


TARGETS = {
    "reward MAE, %": "<= 0.5",
    "sign accuracy": ">= 0.97",
    "Spearman over candidates": ">= 0.9",
    "retrieval among 100": ">= 0.9",
    "gap, k = 5": "<= 0.03",
    "gap, full": "<= 0.1",
    "mask F1, k = 1": ">= 0.98",
    "illegal, k = 1": "<= 0.01",
    "illegal, k = 10": "<= 0.05",
}
"""Figure -> what it should reach."""


def figures_of(gap: Gap) -> dict[str, float]:
    """Return the figures of the table by name."""
    horizons = dict(zip(("k = 1", "k = 5", "k = 10", "full"), gap.horizons, strict=True))
    near = {name: horizons[name] for name in ("k = 1", "k = 10")}
    return {
        "reward MAE, %": gap.ranking.mae,
        "sign accuracy": gap.ranking.sign_accuracy,
        "Spearman over candidates": gap.ranking.spearman,
        "retrieval among 100": gap.one_step.retrieval,
        **{f"error of the sum, {name}, %": found.reward_error for name, found in horizons.items()},
        **{f"error of the mean, {name}, %": found.mean_error for name, found in horizons.items()},
        **{f"gap, {name}": found.gap for name, found in horizons.items()},
        "steps, full": horizons["full"].steps,
        **{f"mask precision, {name}": found.precision for name, found in near.items()},
        **{f"mask recall, {name}": found.recall for name, found in near.items()},
        **{f"mask F1, {name}": found.f1 for name, found in horizons.items() if name != "k = 5"},
        **{f"illegal, {name}": found.illegal for name, found in near.items()},
        "end AUC": gap.one_step.end_auc,
    }


def table_of(found: Mapping[str, Sequence[Gap]]) -> Table:
    """Return the report as a table: IQM over world models with 95 % bootstrap intervals."""
    count = len(next(iter(found.values())))
    table = Table("figure", "target", *found, title=f"Dream against reality, IQM over {count} world models")
    rows = {name: [figures_of(gap) for gap in gaps] for name, gaps in found.items()}
    for figure in next(iter(rows.values()))[0]:
        cells = [_cell([values[figure] for values in column]) for column in rows.values()]
        table.add_row(figure, TARGETS.get(figure, ""), *cells)
    return table


def _cell(values: Sequence[float]) -> str:
    if not np.isfinite(values).all():
        return "undefined"
    estimate = iqm_estimate(values)
    interval = f" [{estimate.low:.3f}, {estimate.high:.3f}]" if len(values) > 1 else ""
    return f"{estimate.value:.3f}{interval}"
