"""Rewards as distributions over fixed numbers."""

import numpy as np
import pytest
import torch

from taso_agents.data import Dataset, EpisodeRecord
from taso_agents.graph_store import GraphStore, StoredGraph
from taso_agents.token_rewards import bins_of, check_rewards, two_hot
from taso_gym.errors import OptionError

BINS = torch.tensor([-2.0, 0.0, 0.5, 1.0])


def test_two_hot_has_the_value_as_its_mean() -> None:
    values = torch.tensor([-2.0, -0.5, 0.0, 0.7, 1.0])
    found = two_hot(values, BINS)
    torch.testing.assert_close(found @ BINS, values)
    torch.testing.assert_close(found.sum(1), torch.ones(5))
    assert (found > 0).sum(1).max() == 2


def test_values_beyond_the_ends_are_the_ends() -> None:
    torch.testing.assert_close(two_hot(torch.tensor([-9.0, 9.0]), BINS) @ BINS, torch.tensor([-2.0, 1.0]))


def test_frequent_rewards_are_bins() -> None:
    bins = bins_of(np.array([1.5, 1.5, -0.25, 0.0], np.float32), 16)
    assert len(bins) == 16 and (bins.diff() > 0).all()
    assert all(torch.isclose(bins, torch.tensor(x)).any() for x in (-1.5, 0.25, 0.0))
    assert bins[0] < -1.5 and bins[-1] > 1.5


def test_other_rewards_than_the_cost_change_are_refused() -> None:
    candidates = np.array([[3, 0, 0]], np.int16)
    empty = np.zeros(0, np.int32)
    graph = StoredGraph(empty, empty, empty, empty.reshape(0, 2), np.zeros(1), candidates, np.array([-0.5], np.float32))
    store = GraphStore(1, 1)
    store.graphs.append(graph)
    good = EpisodeRecord([0, 0], [], [(3, 0)], [0.5])
    check_rewards(Dataset(store, [good]))
    with pytest.raises(OptionError, match=r"saves in %, 0\.5000, found 2\.0000"):
        check_rewards(Dataset(store, [EpisodeRecord([0, 0], [], [(3, 0)], [2.0])]))
