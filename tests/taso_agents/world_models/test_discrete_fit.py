"""The end-to-end phase of fitting a discrete world model."""

from itertools import pairwise

import gymnasium as gym
import pytest
import torch
from agent_batches import collected

from taso_agents.data.collect import random_actor
from taso_agents.data.episodes import Dataset
from taso_agents.environment.real_env import make_env
from taso_agents.world_models.discrete import DiscreteSettings, DiscreteWorldModel
from taso_agents.world_models.discrete_fit import WINDOW, cut, window_loss
from taso_agents.world_models.fit import pad_episodes


@pytest.fixture(scope="module")
def real() -> gym.Env:
    return make_env("TasoGraph-SqueezeNet1.1-v0", max_steps=20)


@pytest.fixture(scope="module")
def dataset(real: gym.Env) -> Dataset:
    return collected(real, (random_actor(0.0), 20), (random_actor(0.5), 5))


@pytest.fixture(scope="module")
def model(real: gym.Env, dataset: Dataset) -> DiscreteWorldModel:
    torch.manual_seed(0)
    settings = DiscreteSettings(groups=4, classes=4, hidden=32, embedding=8, encoder=8, rounds=1, free_nats=0.0)
    model = DiscreteWorldModel(real.observation_space, real.action_space, settings)
    model.seen.fill_(True)
    return model


@pytest.mark.parametrize("offset", [0, 3])
def test_windows_hold_every_step_once(dataset: Dataset, offset: int) -> None:
    for episode in dataset.episodes:
        parts = cut(episode, offset)
        assert [a for p in parts for a in p.actions] == episode.actions
        assert all(1 <= len(p.actions) <= WINDOW and len(p.graphs) == len(p.actions) + 1 for p in parts)
        assert [p.exhausted for p in parts] == [False] * (len(parts) - 1) + [episode.exhausted]
        assert all(a.graphs[-1] == b.graphs[0] for a, b in pairwise(parts))


def test_padding_counts_in_no_loss(model: DiscreteWorldModel, dataset: Dataset) -> None:
    parts = [part for episode in dataset.episodes for part in cut(episode, 3)]
    batch = pad_episodes(parts, model.xfers)
    assert not batch.valid.all()
    gone = ~torch.cat([batch.valid[:, :1], batch.valid], 1)
    spoilt = batch._replace(
        reward=batch.reward.masked_fill(~batch.valid, 1e3),
        end=batch.end.masked_fill(~batch.valid, 1.0),
        counts=batch.counts.masked_fill(gone[..., None], 7),
    )
    found: list[dict[str, float]] = []
    for given in (batch, spoilt):
        torch.manual_seed(0)
        found.append(window_loss(model, dataset, given)[1])
    assert found[0] == found[1]


def test_encoder_prior_and_heads_all_learn(model: DiscreteWorldModel, dataset: Dataset) -> None:
    batch = pad_episodes([part for episode in dataset.episodes for part in cut(episode, 0)], model.xfers)
    model.zero_grad()
    window_loss(model, dataset, batch)[0].backward()
    for name in ("to_posterior", "to_prior.0", "mask", "decode_globals"):
        gradient = model.get_parameter(f"{name}.weight").grad
        assert gradient is not None and gradient.abs().sum() > 0, name
    assert model.encoder.blocks[0].from_node.weight.grad.abs().sum() > 0
