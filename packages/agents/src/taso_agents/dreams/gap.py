"""How far dreams are from reality: the same real actions, imagined from real states, against what really happened."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from taso_agents.data.episodes import Dataset
from taso_agents.dreams.imagined import imagine
from taso_agents.dreams.starts import Moments, everywhere
from taso_agents.world_models.fit import Sequences, encode_all, pad_episodes
from taso_agents.world_models.mdn_rnn import WorldModel

MIN_SCORE_PERCENT = 1.0
"""Scores below it count as this much, so that the relative gap of an episode that gained nothing is defined."""


class Horizon(NamedTuple):
    """Dreams of k steps from every real state that has so many after it, NO-OP left out.

    Attributes:
        steps: k, or the mean length of whole episodes.
        dreams: how many.
        reward_error: mean |dreamt - real| of the sum of rewards, in % of the start graph's cost.
        persistence_error: the same if every reward were 0.
        mean_error: the same if every sum were the mean of the real ones.
        gap: mean of |dreamt - real| / max(|real|, 1 %).
        precision, recall, f1: of the substitutions that are legal after k steps.
        illegal: part of the dreamt locations that are illegal in reality.
    """

    steps: float
    dreams: int
    reward_error: float
    persistence_error: float
    mean_error: float
    gap: float
    precision: float
    recall: float
    f1: float
    illegal: float


class OneStep(NamedTuple):
    """Predictions of single steps with the real memory.

    Attributes:
        reward_mae: in % of the start graph's cost.
        sign_accuracy: of rewards that aren't 0.
        retrieval: how often the true successor is the nearest to the predicted latent among 100.
        end_auc: area under the curve of the prediction that nothing is left; nan without both cases.
    """

    reward_mae: float
    sign_accuracy: float
    retrieval: float
    end_auc: float


def auc(scores: ArrayLike, positive: ArrayLike) -> float:
    """Return the probability that a positive case scores higher than a negative one, ties counting half."""
    s, p = np.asarray(scores, np.float64), np.asarray(positive, bool)
    if p.all() or not p.any():
        return float("nan")
    higher = (s[p][:, None] > s[~p]).mean()
    return float(higher + 0.5 * (s[p][:, None] == s[~p]).mean())


@torch.no_grad()
def one_step(model: WorldModel, dataset: Dataset) -> OneStep:
    """Compare predictions of single steps with a dataset that the model wasn't fitted to."""
    batch, latents = pad_episodes(dataset.episodes, model.xfers), encode_all(model, dataset)
    latent = latents[batch.graph]
    prediction, *_ = model(latent[:, :-1], batch.counts[:, :-1], batch.xfer, batch.location)
    valid, reward = batch.valid, batch.reward[batch.valid]
    predicted = (prediction.reward * model.reward_scale)[valid]
    moving = reward.abs() > 1e-6
    expected = model.follow(prediction, batch.counts[:, :-1], 0.0)[0][valid]
    rng = np.random.default_rng(0)
    others = torch.from_numpy(rng.integers(len(latents), size=(len(expected), 99)))
    own = (expected - latent[:, 1:][valid]).norm(dim=-1)
    nearest = (expected[:, None] - latents[others]).norm(dim=-1).min(1).values
    same = (latents[others] == latent[:, 1:][valid][:, None]).all(-1).any(1)
    return OneStep(
        float((predicted - reward).abs().mean()),
        float((predicted.sign() == reward.sign())[moving].float().mean()),
        float(((own < nearest) | (same & (own <= nearest))).float().mean()),
        auc(prediction.end[valid].numpy(), batch.end[valid].numpy()),
    )


def horizons(
    model: WorldModel, dataset: Dataset, steps: tuple[int, ...] = (1, 5, 10), temperature: float = 0.0
) -> list[Horizon]:
    """Dream along real episodes: a horizon for each number of steps, and last one of whole episodes.

    Args:
        model: what dreams.
        dataset: the episodes, which the model wasn't fitted to.
        steps: how far it dreams, from every state that has so many steps after it.
        temperature: of what is dreamt; 0 takes the most likely.
    """
    batch, latents = pad_episodes(dataset.episodes, model.xfers), encode_all(model, dataset)
    starts = everywhere(model, batch, latents)
    generator = torch.Generator().manual_seed(0)
    lengths = batch.valid.sum(1)
    found: list[Horizon] = []
    for k in (*steps, 0):
        first = starts.state.step == 0
        left = lengths[starts.episode] - starts.state.step
        chosen = starts.take(((left >= k) if k else first).nonzero()[:, 0])
        found.append(_dream_along(model, batch, chosen, k, temperature, generator))
    return found


def _dream_along(
    model: WorldModel, batch: Sequences, starts: Moments, k: int, temperature: float, generator: torch.Generator
) -> Horizon:
    """Dream k steps, or all that are left if k is 0, with the actions that were really taken."""
    begins = starts.state.step
    length = batch.valid.sum(1)[starts.episode] - begins
    length = length.clamp(max=k) if k else length
    dreamt, real = torch.zeros(len(length)), torch.zeros(len(length))
    latent, counts, hidden, cell = (part.clone() for part in starts.state[:4])
    for i in range(int(length.max()) if len(length) else 0):
        rows = (length > i).nonzero()[:, 0]
        episode, t = starts.episode[rows], begins[rows] + i
        actions = torch.stack([batch.xfer[episode, t], batch.location[episode, t]], 1)
        memory = hidden[rows], cell[rows]
        step = imagine(model, latent[rows], counts[rows], memory, actions, temperature, generator)
        latent[rows], counts[rows], (hidden[rows], cell[rows]) = step.latent, step.counts, step.memory
        dreamt[rows] += step.reward
        real[rows] += batch.reward[episode, t]
    truth = batch.counts[starts.episode, begins + length]
    return _compare(k or float(length.float().mean()), dreamt, real, counts, truth)


def _compare(steps: float, dreamt: Tensor, real: Tensor, counts: Tensor, truth: Tensor) -> Horizon:
    error = (dreamt - real).abs()
    both = float(((counts > 0) & (truth > 0)).sum())
    precision, recall = _part(both, float((counts > 0).sum())), _part(both, float((truth > 0).sum()))
    return Horizon(
        steps,
        len(real),
        float(error.mean()),
        float(real.abs().mean()),
        float((real - real.mean()).abs().mean()),
        float((error / real.abs().clamp(min=MIN_SCORE_PERCENT)).mean()),
        precision,
        recall,
        2 * precision * recall / (precision + recall) if precision + recall else precision + recall,
        _part(float((counts - truth).clamp(min=0).sum()), float(counts.sum())),
    )


def _part(some: float, of: float) -> float:
    """Return a part; undefined of nothing."""
    return some / of if of else float("nan")
