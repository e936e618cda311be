"""The world model and its fit."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from agent_batches import collected

from taso_agents import checkpoint
from taso_agents.data.collect import greedy_actor, random_actor
from taso_agents.data.episodes import Dataset
from taso_agents.environment.real_env import describe, make_env
from taso_agents.world_models.fit import FitSettings, Fitted, encode_all, fit, pad_episodes, step_losses
from taso_agents.world_models.mdn_rnn import WorldModel, WorldModelSettings, load_world_model
from taso_gym.errors import CheckpointError

SIZES = WorldModelSettings(latent=8, hidden=48, mixtures=3, embedding=16, encoder=16, rounds=2)


@pytest.fixture(scope="module")
def short() -> gym.Env:
    env = make_env("TasoGraph-SqueezeNet1.1-v0", max_steps=12)
    env.reset()
    return env


@pytest.fixture(scope="module")
def dataset(short: gym.Env) -> Dataset:
    return collected(short, (greedy_actor(0.3), 240), (random_actor(0.1), 60))


def make_model(env: gym.Env, settings: WorldModelSettings = SIZES) -> WorldModel:
    torch.manual_seed(0)
    return WorldModel(env.observation_space, env.action_space, settings)


@pytest.fixture(scope="module")
def fitted(short: gym.Env, dataset: Dataset) -> tuple[WorldModel, torch.Tensor, list[Fitted]]:
    model, epochs = make_model(short), []
    latents = fit(model, dataset, FitSettings(encoder_epochs=8, epochs=6, encoder_batch=16), epochs.append)
    return model, latents, epochs


def test_sizes_are_the_dissertation_s(short: gym.Env) -> None:
    model = make_model(short, WorldModelSettings())
    assert (model.settings.latent, model.lstm.hidden_size) == (32, 256)
    assert model.mixture.layer.out_features == (2 * 32 + 1) * 8


def test_latents_are_bounded(short: gym.Env, dataset: Dataset) -> None:
    latents = encode_all(make_model(short), dataset)
    assert latents.shape == (len(dataset.store.graphs), 8)
    assert latents.abs().max() <= np.sqrt(8)


def test_padding_counts_in_no_loss(short: gym.Env, dataset: Dataset) -> None:
    """The losses of an episode are the same alone and beside a longer one."""
    model = make_model(short)
    model.seen.fill_(True)
    latents = encode_all(model, dataset)
    episodes = sorted(dataset.episodes, key=lambda e: len(e.actions))
    pair = [episodes[0], episodes[-1]]
    assert len(pair[0].actions) < len(pair[1].actions)

    def losses(chosen: list) -> dict[str, torch.Tensor]:
        batch = pad_episodes(chosen, model.xfers)
        latent = latents[batch.graph]
        prediction, *_ = model(latent[:, :-1], batch.counts[:, :-1], batch.xfer, batch.location)
        found = step_losses(model, prediction, batch, latent[:, 1:])
        return {name: (loss * batch.valid)[0].sum() for name, loss in found.items()}

    torch.testing.assert_close(losses(pair[:1]), losses(pair))


def test_noop_steps_are_not_learnt(short: gym.Env, dataset: Dataset) -> None:
    batch = pad_episodes(dataset.episodes, short.unwrapped.layout.xfers)
    assert not batch.valid[batch.xfer == short.unwrapped.layout.xfers].any()
    assert (batch.xfer == short.unwrapped.layout.xfers).any()


def test_memory_goes_on_where_it_was(short: gym.Env, dataset: Dataset) -> None:
    model = make_model(short)
    batch = pad_episodes(dataset.episodes[:2], model.xfers)
    latent = encode_all(model, dataset)[batch.graph][:, :-1]
    given = latent, batch.counts[:, :-1], batch.xfer, batch.location
    _, whole, _ = model(*given)
    _, _, memory = model(*(part[:, :4] for part in given))
    _, rest, _ = model(*(part[:, 4:] for part in given), memory)
    torch.testing.assert_close(rest, whole[:, 4:])


def test_the_fit_lowers_every_loss(fitted: tuple[WorldModel, torch.Tensor, list[Fitted]]) -> None:
    _, _, epochs = fitted
    encoder = [f.losses for f in epochs if f.phase == "encoder"]
    memory = [f.losses for f in epochs if f.phase == "memory"]
    for name in ("reward", "mask", "change", "decode"):
        assert encoder[-1][name] < encoder[0][name]
    assert memory[-1]["latent"] < memory[0]["latent"]


def test_it_predicts_better_than_persistence(
    short: gym.Env, fitted: tuple[WorldModel, torch.Tensor, list[Fitted]]
) -> None:
    model = fitted[0]
    fresh = collected(short, (greedy_actor(0.3), 60), seed=9)
    batch = pad_episodes(fresh.episodes, model.xfers)
    with torch.no_grad():
        latent = encode_all(model, fresh)[batch.graph][:, :-1]
        prediction, *_ = model(latent, batch.counts[:, :-1], batch.xfer, batch.location)
    wrong = (model.next_counts(prediction, batch.counts[:, :-1]) != batch.counts[:, 1:])[batch.valid]
    unchanged = (batch.counts[:, :-1] != batch.counts[:, 1:])[batch.valid]
    assert wrong.float().mean() < unchanged.float().mean()
    error = (prediction.reward * model.reward_scale - batch.reward)[batch.valid].abs().mean()
    assert error < batch.reward[batch.valid].abs().mean()


def test_a_separate_reward_network_doesn_t_read_the_memory(short: gym.Env, dataset: Dataset) -> None:
    model = make_model(short, WorldModelSettings(**{**SIZES.__dict__, "separate_reward": True}))
    batch = pad_episodes(dataset.episodes[:1], model.xfers)
    latent = encode_all(model, dataset)[batch.graph][:, :1]
    given = latent, batch.counts[:, :1], batch.xfer[:, :1], batch.location[:, :1]
    memory = torch.ones(1, 48), torch.ones(1, 48)
    with_memory, without = model(*given, memory)[0], model(*given)[0]
    assert torch.equal(with_memory.reward, without.reward)
    assert not torch.equal(with_memory.end, without.end)


def test_saved_and_loaded_says_the_same(
    tmp_path: Path, short: gym.Env, dataset: Dataset, fitted: tuple[WorldModel, torch.Tensor, list[Fitted]]
) -> None:
    model, latents, _ = fitted
    model.save(tmp_path / "w.pt", describe("SqueezeNet", short, {}, {}), starts=[latents[:1]])
    loaded, data = load_world_model(tmp_path / "w.pt")
    assert torch.equal(encode_all(loaded, dataset), latents)
    assert torch.equal(data["starts"][0], latents[:1]) and data["taso"]["model"] == "SqueezeNet"


def test_a_file_of_another_version_is_refused(tmp_path: Path, short: gym.Env) -> None:
    taso = describe("SqueezeNet", short, {}, {})
    checkpoint.save(tmp_path / "w.pt", "world model", taso, settings={"latent": 3}, weights={})
    with pytest.raises(CheckpointError, match="doesn't fit this version's observation"):
        load_world_model(tmp_path / "w.pt")
