"""Fitting a token world model: dreams of a few steps along real ones, with all that can be said about every token."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from taso_agents.data.episodes import Dataset, EpisodeRecord
from taso_agents.world_models.fit import FitSettings, batches, descend, mean
from taso_agents.world_models.token_model import TokenWorldModel
from taso_agents.world_models.token_rewards import two_hot_loss
from taso_agents.world_models.token_transition import Step
from taso_agents.world_models.tokens import Edits, TokenLayout, edits_of

UNROLL = 3
"""Steps of a dream in training; a fixed number, since what goes wrong later goes wrong in the first few."""


class Windows(NamedTuple):
    """B pieces of K steps of episodes.

    Attributes:
        graph: (B, K + 1) numbers in the store.
        counts: (B, K + 1, N).
        xfer, location: (B, K).
        origins: (B, K, M) for each token after a step its number before it, -1 for a new one or none.
    """

    graph: Tensor
    counts: Tensor
    xfer: Tensor
    location: Tensor
    origins: Tensor


def windows_of(pieces: list[tuple[EpisodeRecord, int]], length: int, tokens: int) -> Windows:
    """Cut pieces of so many steps out of episodes, each beginning at its step."""
    origins = np.full((len(pieces), length, tokens), -1, np.int64)
    for b, (episode, t) in enumerate(pieces):
        for k, origin in enumerate(episode.origins[t : t + length]):
            kept = origin[:tokens]
            origins[b, k, : len(kept)] = np.where(kept < tokens, kept, -1)
    graph = np.array([e.graphs[t : t + length + 1] for e, t in pieces])
    counts = np.array([np.stack(e.counts[t : t + length + 1]) for e, t in pieces]).astype(np.int64)
    actions = np.array([e.actions[t : t + length] for e, t in pieces])
    arrays = (graph, counts, actions[..., 0], actions[..., 1], origins)
    return Windows(*(torch.from_numpy(np.ascontiguousarray(a)) for a in arrays))


def window_loss(model: TokenWorldModel, dataset: Dataset, windows: Windows) -> tuple[Tensor, dict[str, float]]:
    """Return the loss of dreams along real steps, and its parts by name.

    The dreams make the real edits, so that every dreamt token is some real one: it must have its reward, and look like
    what the encoder makes of it.
    """
    B, K = windows.xfer.shape
    observed = dataset.store.batch(windows.graph.flatten().tolist())
    encoded, layout = model.encode_tokens(observed)
    changes = functional.pad(observed["changes"], (0, max(model.settings.tokens - observed["changes"].shape[1], 0)))
    rewards = -changes[:, : model.settings.tokens].unflatten(0, (B, K + 1))
    real = encoded.unflatten(0, (B, K + 1))
    parts = {"reward": value_loss(model, encoded, layout, rewards.flatten(0, 1))}
    tokens = real[:, 0]
    for k in range(K):
        now = model.lay_out(windows.counts[:, k])
        chosen = model.chosen_token(now, windows.counts[:, k], windows.xfer[:, k], windows.location[:, k])
        step = model.transition(tokens, now, chosen, model.seen)
        edits = edits_of(now, model.fitting(windows.counts[:, k + 1]), windows.origins[:, k])
        add(parts, edit_losses(model, step, edits, B))
        tokens, _ = model.transition.carry_out(step, edits)
        after = model.lay_out(windows.counts[:, k + 1])
        apart = (tokens - real[:, k + 1].detach()).square().mean(2)[after.valid].mean()
        add(parts, {"likeness": apart, "dreamt": value_loss(model, tokens, after, rewards[:, k + 1])})
    loss = parts["reward"] + sum(parts[name] / K for name in parts if name != "reward")
    return loss, {name: float(part.detach()) / (1 if name == "reward" else K) for name, part in parts.items()}


def value_loss(model: TokenWorldModel, tokens: Tensor, layout: TokenLayout, rewards: Tensor) -> Tensor:
    """Return the cross entropy of the rewards (B, M) of tokens."""
    logits = model.value_logits(tokens, layout)
    return two_hot_loss(logits, rewards[layout.valid], model.values)


def edit_losses(model: TokenWorldModel, step: Step, edits: Edits, graphs: int) -> dict[str, Tensor]:
    """Return the losses of what stays and what comes, summed over a graph's items."""
    token = step.layout.item_token >= 0
    stays = functional.binary_cross_entropy_with_logits(step.stays[token], edits.stays[token].float(), reduction="sum")
    new = functional.cross_entropy(step.new, edits.new.clamp(max=model.settings.most_new), reduction="sum")
    return {"stays": stays / graphs, "new": new / graphs}


def add(parts: dict[str, Tensor], more: dict[str, Tensor]) -> None:
    """Add losses by name."""
    for name, part in more.items():
        parts[name] = parts[name] + part if name in parts else part


def window_epoch(
    model: TokenWorldModel,
    dataset: Dataset,
    optimizer: torch.optim.Optimizer,
    settings: FitSettings,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Take each step of the data once as the first of a window; the last ones of an episode come in windows only."""
    noop = model.xfers
    pieces = [
        (episode, t)
        for episode in dataset.episodes
        for t in range(sum(x != noop for x, _ in episode.actions) - UNROLL + 1)
    ]
    seen: list[dict[str, float]] = []
    for chosen in batches(len(pieces), max(settings.encoder_batch // 4, 1), rng):
        windows = windows_of([pieces[j] for j in chosen], UNROLL, model.settings.tokens)
        loss, parts = window_loss(model, dataset, windows)
        descend(loss, model, optimizer, settings.gradient_norm)
        seen.append(parts)
    return mean(seen)
