"""Graphs of observations, stored without their padding."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from taso_agents.data.collect import empty_dataset
from taso_agents.data.graph_store import RowTable
from taso_agents.environment.real_env import make_env, with_ids
from taso_agents.networks.encoder import GraphEncoder


@pytest.fixture(scope="module")
def short() -> gym.Env:
    return make_env("TasoGraph-SqueezeNet1.1-v0", max_steps=8)


def changes_of(env: gym.Env, observation: dict) -> np.ndarray:
    return env.unwrapped.view("cost_changes")[: int(observation["match_mask"].sum())]


def test_row_table_numbers_rows_as_they_come() -> None:
    table = RowTable(2)
    rows = np.array([[5, 5], [1, 2], [5, 5]], np.float32)
    first = table.number(rows)
    assert first[0] == first[2] != first[1]
    np.testing.assert_array_equal(table.rows()[first], rows)
    np.testing.assert_array_equal(table.number(rows), first)


def test_stored_graphs_are_embedded_like_their_observations(short: gym.Env) -> None:
    store = empty_dataset(short).store
    torch.manual_seed(0)
    encoder = GraphEncoder(short.observation_space, hidden=8, rounds=2)
    rng, seen, numbers = np.random.default_rng(3), [], []
    observation, _ = short.reset()
    for _ in range(6):
        numbers.append(store.add(with_ids(short, observation), changes_of(short, observation)))
        seen.append(observation)
        observation, *_ = short.step(short.unwrapped.sample_valid(rng))
    batch = {key: torch.from_numpy(np.stack([o[key] for o in seen])) for key in seen[0]}
    torch.testing.assert_close(encoder(store.batch(numbers)), encoder(batch), rtol=1e-5, atol=1e-5)


def test_equal_graphs_are_stored_once(short: gym.Env) -> None:
    store = empty_dataset(short).store
    observation, _ = short.reset()
    changes = changes_of(short, observation)
    observation = with_ids(short, observation)
    assert store.add(observation, changes) == store.add(observation, changes) == 0
    observation, *_ = short.step(short.unwrapped.sample_valid(np.random.default_rng(0)))
    assert store.add(with_ids(short, observation), changes_of(short, observation)) == 1


def test_candidates_point_to_the_nodes_they_matched(short: gym.Env) -> None:
    store = empty_dataset(short).store
    observation, _ = short.reset()
    for _ in range(4):
        observation, *_ = short.step(short.unwrapped.sample_valid(np.random.default_rng(1)))
    graph = store.graphs[store.add(with_ids(short, observation), changes_of(short, observation))]
    expected = observation["matches"][: len(graph.candidates), 2:]
    nodes = np.where(graph.candidates[:, 2:] < 0, -1, graph.places[graph.candidates[:, 2:]])
    np.testing.assert_array_equal(nodes, expected)
