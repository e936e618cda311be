"""Fitting a world model to episodes: first everything on single steps, end to end, then the rest on latents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from taso_agents import world_models
from taso_agents.data.episodes import Dataset, EpisodeRecord
from taso_agents.world_models.mdn_rnn import Prediction, WorldModel
from taso_gym.errors import OptionError

ENCODED = 64
"""Graphs that are encoded at once."""


@dataclass(frozen=True)
class FitSettings:
    """How a world model is fitted.

    Attributes:
        encoder_epochs: passes over all single steps, training encoder and heads together.
        encoder_batch: steps a gradient.
        epochs: passes over all episodes, training all but the encoder.
        batch: episodes a gradient.
        forget: chance that the memory doesn't see a latent, so that it learns to do with what it predicts itself.
        learning_rate: of Adam; falls to 0 along a half cosine in each phase.
        gradient_norm: largest norm of a gradient.
        seed: of the shuffling.
    """

    encoder_epochs: int = 20
    encoder_batch: int = 64
    epochs: int = 40
    batch: int = 4
    forget: float = 0.5
    learning_rate: float = 1e-3
    gradient_norm: float = 1.0
    seed: int = 0


class Sequences(NamedTuple):
    """Episodes padded to the longest, B of T steps.

    Attributes:
        graph: (B, T + 1) numbers in the store, 0 beyond the end.
        counts: (B, T + 1, N).
        xfer, location: (B, T).
        reward: (B, T) in %.
        end: (B, T) 1 where nothing was left to do afterwards.
        valid: (B, T) a real step, and not NO-OP, which ends the episode by definition.
    """

    graph: Tensor
    counts: Tensor
    xfer: Tensor
    location: Tensor
    reward: Tensor
    end: Tensor
    valid: Tensor


def pad_episodes(episodes: list[EpisodeRecord], noop: int) -> Sequences:
    """Pad episodes to the longest of them."""
    B, T, N = len(episodes), max(len(e.actions) for e in episodes), len(episodes[0].counts[0])
    graph, counts = np.zeros((B, T + 1), np.int64), np.zeros((B, T + 1, N), np.int64)
    actions, reward = np.zeros((B, T, 2), np.int64), np.zeros((B, T), np.float32)
    end, valid = np.zeros((B, T), np.float32), np.zeros((B, T), bool)
    for b, episode in enumerate(episodes):
        length = len(episode.actions)
        graph[b, : length + 1], counts[b, : length + 1] = episode.graphs, np.stack(episode.counts)
        actions[b, :length], reward[b, :length] = episode.actions, episode.rewards
        end[b, length - 1] = episode.exhausted
        valid[b, :length] = actions[b, :length, 0] != noop
    arrays = (graph, counts, actions[..., 0], actions[..., 1], reward, end, valid)
    return Sequences(*(torch.from_numpy(np.ascontiguousarray(a)) for a in arrays))


def step_losses(
    model: WorldModel, prediction: Prediction, batch: Sequences, next_latent: Tensor | None
) -> dict[str, Tensor]:
    """Return each loss for every step, (B, T); that of the latent only if the next one is given (B, T, Z)."""
    R = model.settings.max_change
    following, present = batch.counts[:, 1:, model.seen], batch.counts[:, :-1, model.seen]
    change = (following - present).clamp(-R, R) + R
    mask = functional.binary_cross_entropy_with_logits(prediction.mask, (following > 0).float(), reduction="none")
    losses = {
        "reward": model.reward_loss(prediction, batch.reward / model.reward_scale),
        "end": functional.binary_cross_entropy_with_logits(prediction.end, batch.end, reduction="none"),
        "mask": mask.sum(-1),
        "change": functional.cross_entropy(prediction.change.movedim(-1, 1), change, reduction="none").sum(-1),
    }
    if next_latent is not None:
        losses["latent"] = model.latent_loss(prediction, next_latent)
    assert all(loss.shape == batch.valid.shape for loss in losses.values())
    assert set(losses) <= set(model.loss_weights)
    return losses


def total_loss(model: WorldModel, losses: dict[str, Tensor], valid: Tensor) -> tuple[Tensor, dict[str, float]]:
    """Return the weighted sum of the means over valid steps, and the means by name."""
    weight = valid / valid.sum().clamp(min=1)
    means = {name: (loss * weight).sum() for name, loss in losses.items()}
    total = torch.stack([model.loss_weights[name] * mean for name, mean in means.items()]).sum()
    return total, {name: float(mean.detach()) for name, mean in means.items()}


class Fitted(NamedTuple):
    """One epoch of a fit.

    Attributes:
        phase: "encoder" or "memory".
        epoch: within the phase.
        losses: mean over the epoch by name.
    """

    phase: str
    epoch: int
    losses: dict[str, float]


def fit(
    model: WorldModel,
    dataset: Dataset,
    settings: FitSettings | None = None,
    on_epoch: Callable[[Fitted], None] | None = None,
) -> Tensor | None:
    """Fit a world model to episodes.

    Returns:
        The latents of all graphs of the store, (S, Z); None of a kind that learns without them.
    """
    settings = settings or FitSettings()
    report = on_epoch or (lambda _fitted: None)
    rng = np.random.default_rng(settings.seed)
    model.prepare(dataset)
    if not model.has_gradients:
        return None
    model.train()
    train_encoder = world_models.encoder_epoch(model.kind)
    encoder_optimizer = torch.optim.Adam(model.parameters(), settings.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(encoder_optimizer, max(settings.encoder_epochs, 1))
    for epoch in range(settings.encoder_epochs):
        report(Fitted("encoder", epoch, train_encoder(model, dataset, encoder_optimizer, settings, rng)))
        schedule.step()
    latents = encode_all(model, dataset)
    if not model.has_memory:
        model.eval()
        return latents
    optimizer = torch.optim.Adam(
        [
            p
            for n, p in model.named_parameters()
            if not n.startswith(("encoder.", "to_latent.", "to_posterior.", "decode"))
        ],
        settings.learning_rate,
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(settings.epochs, 1))
    for epoch in range(settings.epochs):
        report(Fitted("memory", epoch, _memory_epoch(model, dataset, latents, optimizer, settings, rng)))
        schedule.step()
    model.eval()
    return latents


def encode_all(model: WorldModel, dataset: Dataset) -> Tensor:
    """Return the latents of all graphs of a store, (S, Z)."""
    numbers = range(len(dataset.store.graphs))
    with torch.no_grad():
        parts = [model.encode(dataset.store.batch(numbers[i : i + ENCODED])) for i in numbers[::ENCODED]]
    return torch.cat(parts)


def single_step_epoch(
    model: WorldModel,
    dataset: Dataset,
    optimizer: torch.optim.Optimizer,
    settings: FitSettings,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Train encoder and heads on single steps, each with an empty memory; the latent must also tell the counts."""
    steps = [(e, t) for e in dataset.episodes for t in range(len(e.actions)) if e.actions[t][0] != model.xfers]
    seen: list[dict[str, float]] = []
    for chosen in batches(len(steps), settings.encoder_batch, rng):
        batch = pad_episodes([_single(*steps[i]) for i in chosen], model.xfers)
        latent = model.encode(dataset.store.batch(batch.graph[:, 0].tolist()))
        prediction, *_ = model(latent[:, None], batch.counts[:, :-1], batch.xfer, batch.location)
        loss, means = total_loss(model, step_losses(model, prediction, batch, None), batch.valid)
        told = functional.mse_loss(model.decode(latent), model.scaled_counts(batch.counts[:, 0]))
        descend(loss + told, model, optimizer, settings.gradient_norm)
        seen.append({**means, "decode": float(told.detach())})
    return mean(seen)


def _memory_epoch(
    model: WorldModel,
    dataset: Dataset,
    latents: Tensor,
    optimizer: torch.optim.Optimizer,
    settings: FitSettings,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Train all but the encoder on whole episodes, from an empty memory."""
    seen: list[dict[str, float]] = []
    for chosen in batches(len(dataset.episodes), settings.batch, rng):
        batch = pad_episodes([dataset.episodes[i] for i in chosen], model.xfers)
        latent = latents[batch.graph]
        kept = torch.from_numpy(rng.random(batch.xfer.shape) >= settings.forget)[..., None]
        prediction, *_ = model(latent[:, :-1] * kept, batch.counts[:, :-1], batch.xfer, batch.location)
        loss, means = total_loss(model, step_losses(model, prediction, batch, latent[:, 1:]), batch.valid)
        descend(loss, model, optimizer, settings.gradient_norm)
        seen.append(means)
    return mean(seen)


def _single(episode: EpisodeRecord, t: int) -> EpisodeRecord:
    """Return one step of an episode as an episode."""
    last = t == len(episode.actions) - 1
    states = slice(t, t + 2)
    return EpisodeRecord(
        episode.graphs[states],
        episode.counts[states],
        [episode.actions[t]],
        [episode.rewards[t]],
        episode.exhausted and last,
    )


def batches(count: int, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return 0 … count - 1 in random order, in parts of at most ``size``."""
    order = rng.permutation(count)
    return [order[i : i + size] for i in range(0, count, size)]


def descend(loss: Tensor, model: nn.Module, optimizer: torch.optim.Optimizer, gradient_norm: float) -> None:
    """Take one step down a loss."""
    model.zero_grad()  # of all that is clipped together, the optimizer's or not
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), gradient_norm)
    optimizer.step()


def mean(seen: list[dict[str, float]]) -> dict[str, float]:
    """Return the mean of each loss.

    Raises:
        OptionError: there is none.
    """
    if not seen:
        raise OptionError("expected episodes of some steps to learn from, found only shorter ones")
    return {name: float(np.mean([s[name] for s in seen])) for name in seen[0]}
