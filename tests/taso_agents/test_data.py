"""Stored episodes."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch

from taso_agents.collect import collect, empty_dataset, greedy_actor, random_actor
from taso_agents.data import Dataset, RowTable, load_dataset
from taso_agents.encoder import GraphEncoder
from taso_agents.training_env import make_env
from taso_gym.errors import CheckpointError


@pytest.fixture(scope="module")
def short() -> gym.Env:
    return make_env("TasoGraph-SqueezeNet1.1-v0", max_steps=8)


@pytest.fixture(scope="module")
def dataset(short: gym.Env) -> Dataset:
    found = empty_dataset(short)
    collect(short, random_actor(0.2), 20, np.random.default_rng(0), found)
    collect(short, greedy_actor(0.3), 16, np.random.default_rng(1), found)
    return found


def test_row_table_numbers_rows_as_they_come() -> None:
    table = RowTable(2)
    rows = np.array([[5, 5], [1, 2], [5, 5]], np.float32)
    first = table.number(rows)
    assert first[0] == first[2] != first[1]
    np.testing.assert_array_equal(table.rows()[first], rows)
    np.testing.assert_array_equal(table.number(rows), first)


def test_stored_graphs_are_embedded_like_their_observations(short: gym.Env) -> None:
    dataset = empty_dataset(short)
    torch.manual_seed(0)
    encoder = GraphEncoder(short.observation_space, hidden=8, rounds=2)
    rng, seen = np.random.default_rng(3), []
    observation, _ = short.reset()
    for step in range(6):
        dataset.store.add(step, observation)
        seen.append(observation)
        observation, *_ = short.step(short.unwrapped.sample_valid(rng))
    batch = {key: torch.from_numpy(np.stack([o[key] for o in seen])) for key in seen[0]}
    torch.testing.assert_close(encoder(dataset.store.batch(range(6))), encoder(batch), rtol=1e-5, atol=1e-5)


def test_equal_keys_are_stored_once(short: gym.Env) -> None:
    store = empty_dataset(short).store
    observation, _ = short.reset()
    assert store.add("a", observation) == store.add("a", observation) == 0
    assert store.add("b", observation) == 1


def test_records_fit_together(dataset: Dataset) -> None:
    for episode in dataset.episodes:
        steps = len(episode.actions)
        assert len(episode.rewards) == steps and len(episode.graphs) == len(episode.counts) == steps + 1
    assert dataset.steps >= 36
    assert dataset.depth_histogram()[0] == len(dataset.episodes)


def test_noop_probability_is_the_dissertation_s(short: gym.Env) -> None:
    found = empty_dataset(short)
    collect(short, random_actor(0.2), 150, np.random.default_rng(0), found)
    last = [e.actions[-1][0] for e in found.episodes]
    noop = short.unwrapped.layout.xfers
    assert 0.1 < last.count(noop) / found.steps < 0.3


def test_noisy_greed_saves_more_than_chance(short: gym.Env) -> None:
    def saved(actor) -> float:
        found = empty_dataset(short)
        collect(short, actor, 40, np.random.default_rng(0), found)
        return float(np.mean([sum(e.rewards) for e in found.episodes]))

    assert saved(greedy_actor(0.3)) > saved(random_actor(0.0)) + 1


def test_saved_and_loaded_is_the_same(tmp_path: Path, dataset: Dataset) -> None:
    dataset.save(tmp_path / "episodes.npz")
    loaded = load_dataset(tmp_path / "episodes.npz")
    for found, expected in zip(loaded.episodes, dataset.episodes, strict=True):
        assert (found.graphs, found.actions, found.exhausted) == (expected.graphs, expected.actions, expected.exhausted)
        np.testing.assert_array_equal(np.stack(found.counts), np.stack(expected.counts))
        np.testing.assert_allclose(found.rewards, expected.rewards, rtol=1e-6)
    numbers = range(len(dataset.store.graphs))
    for key, tensor in dataset.store.batch(numbers).items():
        assert torch.equal(loaded.store.batch(numbers)[key], tensor)


@pytest.mark.parametrize("content", [b"", b"no episodes", b"PK\x03\x04 half"])
def test_a_damaged_file_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "episodes.npz").write_bytes(content)
    with pytest.raises(CheckpointError, match="expected episodes in"):
        load_dataset(tmp_path / "episodes.npz")


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "episodes.npz", format=np.array([print], object))
    with pytest.raises(CheckpointError, match="expected episodes in"):
        load_dataset(tmp_path / "episodes.npz")
