"""Rewards as distributions over fixed numbers."""

import numpy as np
import pytest
import torch

from taso_agents.data.episodes import Dataset, EpisodeRecord
from taso_agents.data.graph_store import GraphStore, StoredGraph
from taso_agents.world_models.token_rewards import bins_of, check_rewards, two_hot_loss
from taso_gym.errors import OptionError

BINS = torch.tensor([-2.0, 0.0, 0.5, 1.0])


VALUES = torch.tensor([-2.0, -0.5, 0.0, 0.7, 1.0])


def test_what_has_the_values_as_its_means_has_the_least_loss() -> None:
    logits = torch.zeros(5, 4, requires_grad=True)
    optimizer = torch.optim.Adam([logits], 0.3)
    for _ in range(120):
        optimizer.zero_grad()
        two_hot_loss(logits, VALUES, BINS).backward()
        optimizer.step()
    torch.testing.assert_close(logits.detach().softmax(1) @ BINS, VALUES, atol=0.02, rtol=0)


def test_a_value_of_a_bin_is_a_class() -> None:
    logits = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    expected = torch.nn.functional.cross_entropy(logits, torch.arange(4))
    torch.testing.assert_close(two_hot_loss(logits, BINS, BINS), expected)


def test_values_beyond_the_ends_are_the_ends() -> None:
    logits = torch.randn(2, 4, generator=torch.Generator().manual_seed(0))
    beyond, ends = torch.tensor([-9.0, 9.0]), torch.tensor([-2.0, 1.0])
    torch.testing.assert_close(two_hot_loss(logits, beyond, BINS), two_hot_loss(logits, ends, BINS))


def test_frequent_rewards_are_bins() -> None:
    bins = bins_of(np.array([1.5, 1.5, -0.25, 0.0], np.float32), 16)
    assert len(bins) == 16 and (bins.diff() > 0).all()
    assert all(torch.isclose(bins, torch.tensor(x)).any() for x in (-1.5, 0.25, 0.0))
    assert bins[0] < -1.5 and bins[-1] > 1.5


def test_other_rewards_than_the_cost_change_are_refused() -> None:
    candidates = np.array([[3, 0, 0]], np.int16)
    empty = np.zeros(0, np.int32)
    pairs = empty.reshape(0, 2)
    graph = StoredGraph(empty, empty, empty, empty, pairs, np.zeros(1), candidates, np.array([-0.5], np.float32))
    store = GraphStore(1, 1)
    store.graphs.append(graph)
    good = EpisodeRecord([0, 0], [], [(3, 0)], [0.5])
    check_rewards(Dataset(store, [good]))
    with pytest.raises(OptionError, match=r"saves in %, 0\.5000, found 2\.0000"):
        check_rewards(Dataset(store, [EpisodeRecord([0, 0], [], [(3, 0)], [2.0])]))


def test_a_reward_beyond_what_changes_show_is_what_they_show() -> None:
    """A kernel that becomes five may cost more than twice a small start."""
    candidates, empty = np.array([[3, 0, 0]], np.int16), np.zeros(0, np.int32)
    pairs, most = empty.reshape(0, 2), np.array([100.0], np.float32)
    store = GraphStore(1, 1)
    store.graphs.append(StoredGraph(empty, empty, empty, empty, pairs, np.zeros(1), candidates, most))
    check_rewards(Dataset(store, [EpisodeRecord([0, 0], [], [(3, 0)], [-200.0])]))
    with pytest.raises(OptionError, match="saves in %"):
        check_rewards(Dataset(store, [EpisodeRecord([0, 0], [], [(3, 0)], [200.0])]))
