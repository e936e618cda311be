"""The graph world model's own ways; what it shares with the others is in test_world_models.py."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from agent_batches import collected

from taso_agents.data.collect import random_actor
from taso_agents.data.episodes import Dataset, dataset_of
from taso_agents.dreams.env import DreamSettings, DreamVectorEnv
from taso_agents.dreams.gap import horizons
from taso_agents.dreams.starts import starts_of
from taso_agents.environment.real_env import make_env
from taso_agents.world_models.fit import encode_all, fit
from taso_agents.world_models.graph import memory as graph_memory
from taso_agents.world_models.graph.model import GraphSettings, GraphWorldModel
from taso_gym.errors import OptionError


@pytest.fixture(scope="module")
def real() -> gym.Env:
    return make_env("TasoGraph-SqueezeNet1.1-v0", max_steps=12)


@pytest.fixture(scope="module")
def dataset(real: gym.Env) -> Dataset:
    return collected(real, (random_actor(0.0), 360))


@pytest.fixture
def model(real: gym.Env, dataset: Dataset) -> GraphWorldModel:
    found = GraphWorldModel(real.observation_space, real.action_space, GraphSettings(tokens=96))
    fit(found, dataset)
    return found


def test_the_same_graph_has_the_same_number(model: GraphWorldModel, dataset: Dataset) -> None:
    assert torch.equal(encode_all(model, dataset), encode_all(model, dataset))
    numbers = model.numbers_of(encode_all(model, dataset)).tolist()
    assert len(set(numbers)) == len(dataset.store.graphs)


def test_new_dreams_are_like_reality(model: GraphWorldModel, real: gym.Env) -> None:
    fresh = collected(real, (random_actor(0.0), 60), seed=1)
    one, five, _ = horizons(model, fresh, (1, 5))
    assert one.gap < 0.02 and five.gap < 0.1 and five.f1 > 0.97


def test_what_was_only_looked_at_changes_no_dream(real: gym.Env) -> None:
    """Neither other graphs nor those that a dream is compared with, in a model that was read from its file, too."""
    known, fresh, others = (
        collected(real, (random_actor(0.0), steps), seed=seed) for seed, steps in enumerate((24, 36, 96))
    )
    plain, looking, again = (
        GraphWorldModel(real.observation_space, real.action_space, GraphSettings(tokens=96)) for _ in range(3)
    )
    for model in (plain, looking):
        fit(model, known)
    encode_all(looking, others)
    again.load_state_dict(looking.state_dict())
    expected = horizons(plain, fresh, (1, 5))
    assert horizons(looking, fresh, (1, 5)) == expected
    assert horizons(again, fresh, (1, 5)) == expected


def test_equal_dreams_look_the_same(model: GraphWorldModel, dataset: Dataset) -> None:
    """Though each graph that is dreamt of has a new number."""
    starts = starts_of(model, dataset, encode_all(model, dataset), anywhere=False)
    dreams, seen = DreamVectorEnv(model, starts, 2), list[np.ndarray]()
    for _ in range(2):
        observation, _ = dreams.reset(seed=3)
        for _ in range(6):
            xfers = observation["xfer_mask"][:, :-1].argmax(1)
            observation, *_ = dreams.step(np.stack([xfers, np.zeros_like(xfers)], 1))
            seen.append(observation["latent"])
    np.testing.assert_array_equal(seen[:6], seen[6:])


def test_only_new_episodes_are_learned(model: GraphWorldModel, real: gym.Env, dataset: Dataset) -> None:
    half = GraphWorldModel(real.observation_space, real.action_space, GraphSettings(tokens=96))
    first = Dataset(dataset.store, dataset.episodes[:9])
    fit(half, first)
    fit(half, dataset)
    assert torch.equal(half.get_extra_state(), model.get_extra_state())


def test_other_episodes_are_learned_without_those_before(
    model: GraphWorldModel, real: gym.Env, dataset: Dataset
) -> None:
    halves = GraphWorldModel(real.observation_space, real.action_space, GraphSettings(tokens=96))
    for episodes in (dataset.episodes[:9], dataset.episodes[9:]):
        fit(halves, Dataset(dataset.store, episodes))
    assert torch.equal(halves.get_extra_state(), model.get_extra_state())
    fit(halves, dataset_of(dataset.arrays()))  # from another store, as after its file was read
    assert torch.equal(halves.get_extra_state(), model.get_extra_state())


def test_equal_episodes_are_learned_as_often_as_they_were_played(real: gym.Env, dataset: Dataset) -> None:
    model = GraphWorldModel(real.observation_space, real.action_space, GraphSettings(tokens=96))
    taught: list[float] = []
    for played, counted in ((2, 2), (1, 2), (3, 3)):
        fit(model, Dataset(dataset.store, dataset.episodes[:1] * played))
        assert list(model.learned.values()) == [counted]
        taught.append(sum(count for *_, count in model.graphs.lessons.patches.rows()) / counted)
    assert taught == taught[:1] * 3


def test_a_forgotten_dream_is_an_error(
    model: GraphWorldModel, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_memory, "LIVE", 2)
    start = int(model.numbers_of(encode_all(model, dataset)[:1]))
    numbers = [model.graphs.following(start, place) for place in range(4)]
    assert model.graphs.state(numbers[-1]).candidates
    with pytest.raises(OptionError, match="expected a graph of the last 2 that were dreamt"):
        model.graphs.state(numbers[0])
    assert model.graphs.state(start).candidates  # a real one is made again


def test_more_dreams_at_once_than_graphs_are_kept_go_on(
    model: GraphWorldModel, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_memory, "LIVE", 2)
    starts = starts_of(model, Dataset(dataset.store, dataset.episodes[:1]), None, anywhere=False)
    dreams = DreamVectorEnv(model, starts, 7, DreamSettings(max_steps=3))
    observation, _ = dreams.reset(seed=0)
    for _ in range(4):
        first = observation["xfer_mask"].argmax(1)
        observation, *_, info = dreams.step(np.stack([first, np.zeros(7, np.int64)], 1))
        assert not info["invalid_action"].any()
    assert len(model.graphs._live) <= 14


def test_an_illegal_action_changes_nothing(model: GraphWorldModel, dataset: Dataset) -> None:
    latent = encode_all(model, dataset)[:1, None]
    counts = torch.from_numpy(dataset.episodes[0].counts[0].astype(np.int64))[None, None]
    missing = int((counts[0, 0] == 0).nonzero()[0])
    prediction, *_ = model(latent, counts, torch.tensor([[missing]]), torch.tensor([[0]]))
    following, found = model.follow(prediction, counts, 0.0)
    assert prediction.reward.item() == 0.0 and torch.equal(following, latent) and torch.equal(found, counts)


def test_a_loaded_model_dreams_from_the_start_at_once(model: GraphWorldModel, real: gym.Env, dataset: Dataset) -> None:
    loaded = GraphWorldModel(real.observation_space, real.action_space, GraphSettings(tokens=96))
    loaded.load_state_dict(model.state_dict())
    start = int(model.numbers_of(encode_all(model, dataset)[:1]))
    for place in range(6):
        dreamt, again = (m.graphs.state(m.graphs.following(start, place)) for m in (model, loaded))
        assert dreamt.candidates == again.candidates


@pytest.mark.parametrize("see_costs", [True, False])
def test_where_costs_are_measured_what_is_unknown_is_hoped_for(real: gym.Env, see_costs: bool) -> None:
    settings = GraphSettings(tokens=96, see_costs=see_costs, hope=0.25)
    model = GraphWorldModel(real.observation_space, real.action_space, settings)
    again = GraphWorldModel(real.observation_space, real.action_space, settings)
    again.load_state_dict(model.state_dict())
    fresh = collected(real, (random_actor(0.0), 6))
    for ignorant in (model, again):
        number = int(ignorant.numbers_of(encode_all(ignorant, fresh))[0])
        rewards = {c.reward for c in ignorant.graphs.state(number).candidates}
        assert rewards == {0.0 if see_costs else 0.25}
