"""Where dreams begin: real states, with the memory that the real way to them leaves."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from taso_agents.data.episodes import Dataset
from taso_agents.world_models.fit import Sequences, encode_all, pad_episodes
from taso_agents.world_models.mdn_rnn import WorldModel


class Starts(NamedTuple):
    """Real states that dreams begin in, S of them.

    Attributes:
        latent: (S, Z).
        counts: (S, N) numbers of locations.
        hidden, cell: (S, H) memory of the real episode up to there.
        step: (S,) steps taken up to there.
    """

    latent: Tensor
    counts: Tensor
    hidden: Tensor
    cell: Tensor
    step: Tensor

    def take(self, rows: Tensor) -> Starts:
        """Return these rows."""
        return Starts(*(part[rows] for part in self))


class Moments(NamedTuple):
    """States of real episodes.

    Attributes:
        episode: (S,) its number.
        state: what the model knows there.
    """

    episode: Tensor
    state: Starts

    def take(self, rows: Tensor) -> Moments:
        """Return these rows."""
        return Moments(self.episode[rows], self.state.take(rows))


def everywhere(model: WorldModel, batch: Sequences, latents: Tensor, steps: int | None = None) -> Moments:
    """Return every state of real episodes that an action was taken in, with the memory of the real way to it.

    Of the first ``steps`` of each episode only, if that is given.
    """
    B, T = batch.xfer.shape
    memory = model.initial_memory(B)
    kept: list[Moments] = []
    for t in range(T if steps is None else steps):
        latent, counts = latents[batch.graph[:, t]], batch.counts[:, t]
        state = Starts(latent, counts, memory[0], memory[1], torch.full((B,), t))
        kept.append(Moments(torch.arange(B), state).take(batch.valid[:, t].nonzero()[:, 0]))
        with torch.no_grad():
            action = batch.xfer[:, t : t + 1], batch.location[:, t : t + 1]
            _, _, memory = model(latent[:, None], counts[:, None], *action, memory)
    episodes, states = zip(*kept, strict=True)
    return Moments(torch.cat(episodes), Starts(*(torch.cat(parts) for parts in zip(*states, strict=True))))


def starts_of(model: WorldModel, dataset: Dataset, latents: Tensor | None, *, anywhere: bool) -> Starts:
    """Return the states that dreams begin in: those at the start, or all but the last of every episode.

    The memory at a state is what the LSTM makes of the real episode up to there. ``latents`` are those of all graphs of
    the store, if they are known already.
    """
    if latents is None:
        latents = encode_all(model, dataset) if anywhere else latents_of_first(model, dataset)
    batch = pad_episodes(dataset.episodes, model.xfers)
    return everywhere(model, batch, latents, None if anywhere else 1).state


def latents_of_first(model: WorldModel, dataset: Dataset) -> Tensor:
    """Return the latents of all graphs of a store, of which only the one that all episodes begin with is real."""
    first = dataset.episodes[0].graphs[0]
    with torch.no_grad():
        latent = model.encode(dataset.store.batch([first]))
    return latent.expand(len(dataset.store.graphs), -1)
