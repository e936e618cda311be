"""First phase of fitting a discrete world model: everything end to end, on short windows of episodes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from taso_agents.data.episodes import Dataset, EpisodeRecord
from taso_agents.world_models.categorical import Categoricals, balanced_kl
from taso_agents.world_models.discrete import DiscreteWorldModel
from taso_agents.world_models.fit import (
    FitSettings,
    Sequences,
    batches,
    descend,
    mean,
    pad_episodes,
    step_losses,
    total_loss,
)

WINDOW = 8
"""Steps of a window; the memory is empty before it."""


def window_epoch(
    model: DiscreteWorldModel,
    dataset: Dataset,
    optimizer: torch.optim.Optimizer,
    settings: FitSettings,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Go once over all steps, as many in a gradient as for the other kinds."""
    offset = int(rng.integers(WINDOW))
    windows = [part for episode in dataset.episodes for part in cut(episode, offset)]
    seen: list[dict[str, float]] = []
    for chosen in batches(len(windows), max(settings.encoder_batch // WINDOW, 1), rng):
        batch = pad_episodes([windows[i] for i in chosen], model.xfers)
        if batch.valid.any():
            loss, means = window_loss(model, dataset, batch)
            descend(loss, model, optimizer, settings.gradient_norm)
            seen.append(means)
    return mean(seen)


def window_loss(model: DiscreteWorldModel, dataset: Dataset, batch: Sequences) -> tuple[Tensor, dict[str, float]]:
    """Return the weighted losses of a batch of windows; padding counts in none."""
    observations = dataset.store.batch(batch.graph.flatten().tolist())
    flat = model.posterior(observations)
    posterior = Categoricals(flat.log_probs.unflatten(0, batch.graph.shape))
    latent = posterior.straight_through()
    prediction, *_ = model(latent[:, :-1], batch.counts[:, :-1], batch.xfer, batch.location)
    following = Categoricals(posterior.log_probs[:, 1:])
    assert isinstance(prediction.latent, Categoricals)
    losses = step_losses(model, prediction, batch, None)
    losses["dynamics"], losses["representation"] = balanced_kl(following, prediction.latent, model.settings.free_nats)
    loss, means = total_loss(model, losses, batch.valid)
    real = torch.cat([batch.valid[:, :1], batch.valid], 1)
    counts = (model.decode(latent) - model.scaled_counts(batch.counts)).square().mean(-1)
    whole = (model.decode_globals(latent) - observations["globals"].unflatten(0, real.shape)).square().mean(-1)
    told = ((counts + whole) * real).sum() / real.sum()
    return loss + told, {**means, "decode": float(told.detach())}


def cut(episode: EpisodeRecord, offset: int) -> list[EpisodeRecord]:
    """Cut an episode into windows; the first has ``offset`` steps, or as many as the others if that is 0."""
    ends = [*range(offset or WINDOW, len(episode.actions), WINDOW), len(episode.actions)]
    parts: list[EpisodeRecord] = []
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        states = slice(begin, end + 1)
        exhausted = episode.exhausted and end == len(episode.actions)
        actions, rewards = episode.actions[begin:end], episode.rewards[begin:end]
        parts.append(EpisodeRecord(episode.graphs[states], episode.counts[states], actions, rewards, exhausted))
    return parts
