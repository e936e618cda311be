"""The gap between dream and reality."""

import math

import gymnasium as gym
import numpy as np
import pytest
import torch
from agent_batches import collected

from taso_agents.data.collect import greedy_actor
from taso_agents.data.episodes import Dataset
from taso_agents.dreams import gap
from taso_agents.dreams.gap import _compare, auc, horizons, one_step
from taso_agents.dreams.imagined import Imagined
from taso_agents.environment.real_env import make_env
from taso_agents.world_models.fit import FitSettings, fit
from taso_agents.world_models.mdn_rnn import WorldModel, WorldModelSettings

SIZES = WorldModelSettings(latent=8, hidden=48, mixtures=3, embedding=16, encoder=16, rounds=1)


@pytest.fixture(scope="module")
def real() -> gym.Env:
    return make_env("TasoGraph-SqueezeNet1.1-v0", max_steps=10)


@pytest.fixture(scope="module")
def dataset(real: gym.Env) -> Dataset:
    return collected(real, (greedy_actor(0.3), 60))


@pytest.fixture(scope="module")
def model(real: gym.Env, dataset: Dataset) -> WorldModel:
    torch.manual_seed(0)
    model = WorldModel(real.observation_space, real.action_space, SIZES)
    fit(model, dataset, FitSettings(encoder_epochs=2, epochs=1))
    return model


@pytest.mark.parametrize(
    ("scores", "positive", "expected"),
    [([1, 2, 3, 4], [0, 0, 1, 1], 1.0), ([4, 3, 2, 1], [0, 0, 1, 1], 0.0), ([1, 1], [0, 1], 0.5)],
)
def test_auc(scores: list, positive: list, expected: float) -> None:
    assert auc(scores, positive) == expected


def test_auc_needs_both_cases() -> None:
    assert math.isnan(auc([1.0, 2.0], [False, False]))


def test_a_perfect_dream_has_no_gap(model: WorldModel, dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the truth in place of the model's imagination every error is zero: the bookkeeping adds none of its own."""
    truth = {}
    for episode in dataset.episodes:
        for t, (action, reward) in enumerate(zip(episode.actions, episode.rewards, strict=True)):
            truth[tuple(episode.counts[t]), action] = (episode.counts[t + 1].astype(np.int64), reward)

    def remember(_model, latent, counts, memory, actions, *_):
        found = [truth[tuple(c), tuple(a)] for c, a in zip(counts.numpy(), actions.tolist(), strict=True)]
        following = torch.from_numpy(np.stack([f[0] for f in found]))
        rewards = torch.tensor([f[1] for f in found])
        return Imagined(latent, following, memory, rewards, torch.zeros(len(latent), dtype=torch.bool))

    monkeypatch.setattr(gap, "imagine", remember)
    for horizon in horizons(model, dataset, (1, 3)):
        assert horizon.f1 == 1.0 and horizon.illegal == 0.0
        assert horizon.reward_error == pytest.approx(0.0, abs=0.02)  # the same counts may stand for two graphs


def test_every_state_with_enough_steps_after_it_is_dreamt_from(model: WorldModel, dataset: Dataset) -> None:
    lengths = [len(e.actions) for e in dataset.episodes]
    assert all(length == 10 for length in lengths)
    one, four, whole = horizons(model, dataset, (1, 4))
    assert (one.dreams, four.dreams, whole.dreams) == (10 * len(lengths), 7 * len(lengths), len(lengths))
    assert whole.steps == 10


def test_whole_episodes_are_compared_with_the_improvement(model: WorldModel, dataset: Dataset) -> None:
    whole = horizons(model, dataset)[-1]
    assert whole.persistence_error == pytest.approx(np.mean([abs(sum(e.rewards)) for e in dataset.episodes]), rel=1e-4)


def test_one_step_figures_are_in_their_ranges(model: WorldModel, dataset: Dataset) -> None:
    found = one_step(model, dataset)
    assert 0 <= found.reward_mae < 5
    assert 0 <= found.sign_accuracy <= 1 and 0 <= found.retrieval <= 1


def test_of_nothing_figures_are_undefined() -> None:
    """Where no episode is as long, or nothing is legal at its end."""
    none, ended = torch.zeros(0), torch.zeros(3, 5)
    for found in (
        _compare(10, none, none, torch.zeros(0, 5), torch.zeros(0, 5)),
        _compare(3, none, none, ended, ended),
    ):
        assert math.isnan(found.f1) and math.isnan(found.illegal) and math.isnan(found.precision)
    wrong = _compare(3, none, none, torch.eye(3, 5), torch.eye(3, 5).roll(2, 1))
    assert (wrong.f1, wrong.illegal) == (0.0, 1.0)
