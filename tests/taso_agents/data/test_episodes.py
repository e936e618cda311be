"""Stored episodes."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch

from taso_agents.data.collect import collect, empty_dataset, greedy_actor, play_record, random_actor, replaying
from taso_agents.data.episodes import Dataset, load_dataset
from taso_agents.environment.real_env import make_env
from taso_gym.errors import CheckpointError, OptionError


@pytest.fixture(scope="module")
def short() -> gym.Env:
    return make_env("TasoGraph-SqueezeNet1.1-v0", max_steps=8)


@pytest.fixture(scope="module")
def dataset(short: gym.Env) -> Dataset:
    found = empty_dataset(short)
    collect(short, random_actor(0.2), 20, np.random.default_rng(0), found)
    collect(short, greedy_actor(0.3), 16, np.random.default_rng(1), found)
    return found


def test_records_fit_together(dataset: Dataset) -> None:
    for episode in dataset.episodes:
        steps = len(episode.actions)
        assert len(episode.rewards) == len(episode.origins) == steps
        assert len(episode.graphs) == len(episode.counts) == steps + 1
    assert dataset.steps >= 36
    assert dataset.depth_histogram()[0] == len(dataset.episodes)


def test_a_reward_is_what_its_candidate_was_said_to_save(dataset: Dataset) -> None:
    for episode in dataset.episodes:
        for number, action, reward in zip(episode.graphs, episode.actions, episode.rewards, strict=False):
            graph = dataset.store.graphs[number]
            which = (graph.candidates[:, :2] == action).all(1)
            assert reward == pytest.approx(-graph.changes[which].sum(), abs=1e-4)


def test_the_cheapest_graph_is_that_of_the_largest_sum_of_rewards(dataset: Dataset) -> None:
    saved = {
        tuple(episode.actions[: t + 1]): float(np.sum(episode.rewards[: t + 1]))
        for episode in dataset.episodes
        for t in range(len(episode.actions))
    }
    found = tuple(dataset.cheapest())
    assert saved[found] == pytest.approx(max(saved.values()), abs=1e-3) and saved[found[:-1]] < saved[found] - 1e-3
    assert Dataset(dataset.store).cheapest() == []


def test_equal_episodes_are_known_in_any_store(short: gym.Env, dataset: Dataset) -> None:
    other, order = empty_dataset(short), dataset.episodes[::-1]
    for episode in order:
        other.episodes.append(play_record(short, replaying(episode.actions), np.random.default_rng(0), other.store))
    assert other.digests() == Dataset(dataset.store, order).digests()
    assert len(set(other.digests())) == len({tuple(episode.actions) for episode in order})


def test_origins_say_which_candidates_stay(dataset: Dataset) -> None:
    """A candidate keeps its substitution, and those that stay keep their order."""
    for episode in dataset.episodes:
        graphs = [dataset.store.graphs[i].candidates for i in episode.graphs]
        for before, origin, after in zip(graphs, episode.origins, graphs[1:], strict=False):
            kept = origin[origin >= 0]
            assert len(origin) == len(after)
            np.testing.assert_array_equal(before[kept, 0], after[origin >= 0, 0])
            assert (np.diff(kept) > 0).all()


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


def test_known_graphs_are_recognised_after_loading(tmp_path: Path, dataset: Dataset) -> None:
    dataset.save(tmp_path / "episodes.npz")
    store = load_dataset(tmp_path / "episodes.npz").store
    assert [store.take(graph) for graph in dataset.store.graphs] == list(range(len(dataset.store.graphs)))


@pytest.mark.parametrize("content", [b"", b"no episodes", b"PK\x03\x04 half"])
def test_a_damaged_file_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "episodes.npz").write_bytes(content)
    with pytest.raises(CheckpointError, match="expected episodes in"):
        load_dataset(tmp_path / "episodes.npz")


def test_what_is_no_path_is_named() -> None:
    with pytest.raises(OptionError, match="expected the path of episodes, found 5"):
        load_dataset(5)


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "episodes.npz", format=np.array([print], object))
    with pytest.raises(CheckpointError, match="expected episodes in"):
        load_dataset(tmp_path / "episodes.npz")
