"""Rewards as distributions over fixed numbers: a graph knows few different cost changes, which are then met exactly."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taso_agents.data.episodes import Dataset
from taso_gym.errors import OptionError
from taso_gym.observation.layout import MAX_CHANGE_PERCENT


def two_hot_loss(logits: Tensor, values: Tensor, bins: Tensor) -> Tensor:
    """Return the mean cross entropy of distributions (C, bins) with what has the values (C,) as its means.

    Two bins share a value between them in proportion; one beyond the ends is the end (Schrittwieser et al. 2020).
    """
    given = values.clamp(float(bins[0]), float(bins[-1])).contiguous()
    above = torch.searchsorted(bins, given).clamp(1, len(bins) - 1)
    low, high = bins[above - 1], bins[above]
    share = (given - low) / (high - low)
    log_p = logits.log_softmax(1)
    of_low, of_high = (log_p.gather(1, which[:, None])[:, 0] for which in (above - 1, above))
    return -((1 - share) * of_low + share * of_high).mean()


def bins_of(changes: NDArray[np.float32], count: int) -> Tensor:
    """Return ascending numbers (count,): the most frequent rewards, and others between and around them."""
    rewards, frequency = np.unique(np.round(-changes.astype(np.float64), 5), return_counts=True)
    known = rewards[np.argsort(-frequency, kind="stable")[: count * 3 // 4]]
    largest = 1.25 * max(float(np.abs(rewards).max()), 1e-2)
    bins = np.union1d(known, [-largest, largest]).astype(np.float32)
    while len(bins) < count:
        widest = np.argsort(-np.diff(bins), kind="stable")[: count - len(bins)]
        bins = np.union1d(bins, (bins[widest] + bins[widest + 1]) / 2)
    return torch.from_numpy(bins)


def check_rewards(dataset: Dataset) -> None:
    """Make sure that rewards are what the data say that actions save.

    Raises:
        OptionError: they aren't, so that they can't be learned from the candidates' cost changes.
    """
    for episode in dataset.episodes:
        for number, action, reward in zip(episode.graphs, episode.actions, episode.rewards, strict=False):
            saved = -dataset.store.graphs[number].change_of(action)
            reward = min(max(reward, -MAX_CHANGE_PERCENT), MAX_CHANGE_PERCENT)  # as changes are
            if abs(reward - saved) > 1e-3 + 1e-3 * abs(saved):
                raise OptionError(
                    f"expected rewards that are what an action saves in %, {saved:.4f}, found {reward:.4f}: "
                    "a world model of tokens needs the environment's reward 'runtime'"
                )
