"""What is learned from real episodes, and dreams of the same."""

import random
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import onnx
import pytest
import torch
from agent_batches import collected
from dream_graphs import graph
from model_texts import parsed

from taso_agents.data.collect import random_actor
from taso_agents.data.episodes import Dataset
from taso_agents.environment.real_env import make_env
from taso_agents.world_models.graph.analogy import matched_of
from taso_agents.world_models.graph.dream_graph import PORTS, DreamNode, Nodes, addresses_of, with_codes
from taso_agents.world_models.graph.dream_patch import Patch, apply_patch
from taso_agents.world_models.graph.dream_state import DreamState, Imagination, spot_of
from taso_agents.world_models.graph.lesson_file import read_lessons, write_lessons
from taso_agents.world_models.graph.lessons import Lessons, keys_of
from taso_agents.world_models.graph.seen_graph import Kinds, SeenGraph, Spot, inherit
from taso_gym.errors import CheckpointError
from taso_gym.observation import EDGE_FEATURES, NODE_FEATURES


@pytest.fixture(scope="module")
def real() -> gym.Env:
    return make_env("TasoGraph-SqueezeNet1.1-v0", max_steps=12)


@pytest.fixture(scope="module")
def dataset(real: gym.Env) -> Dataset:
    return collected(real, (random_actor(0.0), 240))


def learned(dataset: Dataset) -> Lessons:
    store = dataset.store
    lessons = Lessons(Kinds(store.node_rows.width, store.edge_rows.width))
    for episode in dataset.episodes:
        lessons.learn(store, episode)
    lessons.settle()
    return lessons


@pytest.fixture(scope="module")
def lessons(dataset: Dataset) -> Lessons:
    return learned(dataset)


def state_of(lessons: Lessons, dataset: Dataset, number: int) -> DreamState:
    seen = lessons.seen(dataset.store, dataset.store.graphs[number])
    nodes = seen.wired()
    inherit(nodes, None)
    return Imagination(lessons).see(nodes, seen.spots())


def place_of(state: DreamState, xfer: int, location: int) -> int:
    return [i for i, c in enumerate(state.candidates) if c.rule == xfer][location]


def test_candidates_stand_in_the_order_of_their_nodes(lessons: Lessons, dataset: Dataset) -> None:
    for number in dataset.episodes[1].graphs:
        spots = [spot_of(c) for c in state_of(lessons, dataset, number).candidates]
        assert spots == sorted(spots)


def test_rewards_of_known_graphs_are_remembered(lessons: Lessons, dataset: Dataset) -> None:
    for number in dataset.episodes[2].graphs:
        state = state_of(lessons, dataset, number)
        expected = -dataset.store.graphs[number].changes
        np.testing.assert_allclose([c.reward for c in state.candidates], expected, atol=1e-4)


def test_steps_that_were_learned_are_dreamt_as_they_were(lessons: Lessons, dataset: Dataset) -> None:
    imagination, exact, steps = Imagination(lessons), 0, 0
    for episode in dataset.episodes:
        for before, after, action in zip(episode.graphs, episode.graphs[1:], episode.actions, strict=False):
            state = state_of(lessons, dataset, before)
            dreamt = imagination.step(state, place_of(state, *action), 0.0, random.Random(0))
            expected = state_of(lessons, dataset, after)
            steps += 1
            exact += [c.rule for c in dreamt.candidates] == [c.rule for c in expected.candidates]
            real = {x: node[:3] for x, node in expected.nodes.items()}
            renamed = dict(zip(sorted(dreamt.nodes), sorted(real), strict=True))
            assert {renamed[x]: node.label for x, node in dreamt.nodes.items()} == {x: n[0] for x, n in real.items()}
    assert exact >= 0.98 * steps


def test_what_was_taken_at_one_place_is_known_at_others(lessons: Lessons, dataset: Dataset) -> None:
    """Each rewrite is dreamt by what was learned of it at nodes of other kinds alone, and what it saves, too."""
    right, saved, steps = 0, 0, 0
    for episode in dataset.episodes:
        for before, after, action in zip(episode.graphs, episode.graphs[1:], episode.actions, strict=False):
            state = state_of(lessons, dataset, before)
            chosen = state.candidates[place_of(state, *action)]
            assert chosen.addresses is not None
            shape = chosen.rule, chosen.addresses, chosen.number
            own = matched_of(state.nodes, chosen.nodes)
            others = {matched: patch for matched, patch in lessons.rewrites.of[shape].items() if matched != own}
            if not others:
                continue
            ignorant = Lessons(lessons.kinds)
            ignorant.rewrites.of = {shape: others}
            moved = ignorant.patches_at(state.nodes, spot_of(chosen), chosen.addresses)
            if moved is None:
                continue
            steps += 1
            found = apply_patch(state.nodes, chosen.nodes, next(iter(moved)), state.next_id)
            expected = sorted(node.label for node in state_of(lessons, dataset, after).nodes.values())
            right += found is not None and sorted(node.label for node in found[0].values()) == expected
            rewards = ignorant.rewards_at(state.nodes, spot_of(chosen), chosen.addresses)
            saved += rewards is not None and abs(next(iter(rewards)) - chosen.reward) < 1e-3
    assert steps > 10 and right >= 0.8 * steps and saved >= 0.8 * steps


def test_a_likeness_to_one_match_is_none_to_another_whose_inputs_differ() -> None:
    """Though the nodes themselves are alike, and that one was asked for first."""

    def relus(carried: int) -> Nodes:
        kind = PORTS * carried
        nodes = {0: DreamNode(0, (), ((1, kind),)), 1: DreamNode(0, ((0, kind),), ())}
        with_codes(nodes, nodes)
        return nodes

    lessons = Lessons(Kinds(len(NODE_FEATURES), len(EDGE_FEATURES)))
    lessons.kinds.label(np.zeros((1, len(NODE_FEATURES)), np.float32))
    types = np.zeros((3, len(EDGE_FEATURES)), np.float32)
    types[:, -1] = 0, 1, 2
    assert [kind // PORTS for kind in lessons.kinds.edge(types)] == [0, 1, 2]
    spot, addresses = Spot(7, (1,), 0), ((0,),)
    doubled = Patch((), (), (0,), (), ((~0, 0, ((0, 0),)),))
    lessons.rewrites.learn((7, addresses, 0), matched_of(relus(0), spot.nodes), doubled)
    lessons.settle()
    for carried in (1, 2):
        found = lessons.patches_at(relus(carried), spot, addresses)
        assert found == {doubled._replace(wired=((~0, 0, ((0, PORTS * carried),)),)): 1}


def test_a_candidate_of_which_nothing_is_known_only_vanishes(lessons: Lessons, dataset: Dataset) -> None:
    state = state_of(lessons, dataset, 0)
    empty = Imagination(Lessons(lessons.kinds)).step(state, 3, 0.0, random.Random(0))
    assert empty.nodes is state.nodes
    assert empty.candidates == state.candidates[:3] + state.candidates[4:]


def test_lessons_survive_their_file(lessons: Lessons, dataset: Dataset) -> None:
    start = lessons.seen(dataset.store, dataset.store.graphs[0])
    kinds = Kinds(dataset.store.node_rows.width, dataset.store.edge_rows.width)
    again, count, begun = read_lessons(write_lessons(lessons, {"one": 2}, start), kinds)
    assert count == {"one": 2} and begun is not None and begun.digest() == start.digest()
    assert again.found == lessons.found and again.rules_at == lessons.rules_at
    for name in ("patches", "rewards", "matches", "holds"):
        assert getattr(again, name).cells == getattr(lessons, name).cells
    assert again.places == lessons.places and again.rewrites.of == lessons.rewrites.of


def test_what_differs_in_which_consumer_it_matches_is_told_apart(lessons: Lessons) -> None:
    """The first and the second of two that are alike: Python hashes -1 as it does -2."""
    nodes = graph({0: 1, 1: 2, 2: 2}, [(0, 1), (0, 2)])
    keys, held = [], []
    for matched in ((0, 1, 2), (0, 2, 1)):
        addresses = addresses_of(nodes, matched)
        assert addresses is not None
        keys.append(keys_of(nodes, Spot(7, matched, 0), addresses)[0])
        held.append(lessons.held_keys(nodes, matched, (addresses, 0))[1])
    assert keys[0] != keys[1] and held[0] != held[1]


def test_damaged_lessons_are_refused(lessons: Lessons) -> None:
    with pytest.raises(CheckpointError, match="expected the lessons of a graph world model"):
        read_lessons(write_lessons(lessons, {}, None)[:-20], Kinds(1, 1))


def test_lessons_of_another_format_are_refused(lessons: Lessons, monkeypatch: pytest.MonkeyPatch) -> None:
    written = write_lessons(lessons, {}, None)
    monkeypatch.setattr("taso_agents.world_models.graph.lesson_file.FORMAT", 5)
    with pytest.raises(CheckpointError, match="expected lessons of format 5, found 4: another version's"):
        read_lessons(written, Kinds(1, 1))


def test_lessons_of_a_python_that_hashes_otherwise_are_refused(
    lessons: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = write_lessons(lessons, {}, None)
    monkeypatch.setattr("taso_agents.world_models.graph.lesson_file.PROBE", (1, 2))
    with pytest.raises(CheckpointError, match="expected lessons of a Python that hashes"):
        read_lessons(written, Kinds(1, 1))


def test_same_episodes_same_lessons(lessons: Lessons, dataset: Dataset) -> None:
    assert torch.equal(write_lessons(learned(dataset), {}, None), write_lessons(lessons, {}, None))


def test_without_cost_changes_only_taken_steps_teach_rewards(dataset: Dataset) -> None:
    def blind(graphs: list) -> Lessons:
        store = dataset.store
        lessons = Lessons(Kinds(store.node_rows.width, store.edge_rows.width))
        before, store.graphs = store.graphs, graphs
        for episode in dataset.episodes:
            lessons.learn(store, episode, see_costs=False)
        store.graphs = before
        return lessons

    graphs = dataset.store.graphs
    lessons = blind(graphs)
    without = blind([graph._replace(changes=np.full_like(graph.changes, np.nan)) for graph in graphs])
    assert list(lessons.rewards.rows()) == list(without.rewards.rows())
    assert 0 < sum(count for *_, count in lessons.rewards.rows()) <= dataset.steps


def test_what_has_nothing_left_to_substitute_is_learned_from(tmp_path: Path) -> None:
    """The last graph of an episode that ends by itself, with the one rule that there is."""
    rules, model = tmp_path / "one.rules", tmp_path / "model.onnx"
    rules.write_text("relu-relu: Relu(Relu(x)) => Relu(x)\n")
    onnx.save(parsed("g (float[3] x) => (y) { a = Relu(x)\n b = Relu(a)\n y = Exp(b) }"), model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nobody vouches for the rule
        found = collected(make_env(str(model), rules=str(rules)), (random_actor(0.0), 2))
    assert found.episodes[0].exhausted
    lessons = learned(found)
    assert not lessons.seen(found.store, found.store.graphs[found.episodes[0].graphs[-1]]).spots()
    assert SeenGraph.of([1], [0], [], [], []).candidates.shape == (0, 2)
    assert SeenGraph.of([1], [0], [], [], np.empty((0, 5))).candidates.shape == (0, 5)
