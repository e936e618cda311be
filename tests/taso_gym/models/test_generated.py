"""Generated graphs: the planted optimum is known, reachable by the default rules, and their best by single steps."""

import random

import gymnasium as gym
import numpy as np
import pytest
from network_runs import random_inputs, session

from taso_gym import cost, models
from taso_gym.env import TasoGraphEnv
from taso_gym.errors import OptionError
from taso_gym.graph import check
from taso_gym.models.generated import MAX_EDGES, MAX_NODES, planted
from taso_gym.models.splits import FAMILIES, SPLITS, names
from taso_gym.registration import generated_ids
from taso_gym.rules.limits import size_of
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState

SOME = [f"generated/{family}/{seed}" for family in FAMILIES for seed in (0, 1, 2, 17)]


@pytest.fixture(scope="module")
def rules():
    return RuleSet.load()


@pytest.fixture(scope="module")
def roofline():
    return cost.load("roofline")


@pytest.mark.parametrize("name", SOME)
def test_the_way_back_reaches_the_planted_cost_by_default_rules(name, rules, roofline):
    made = planted(name)
    state = RewriteState(made.start, rules, roofline)
    start = state.cost.time_ps
    for rule, goal in zip(made.rules, made.graphs[1:], strict=True):
        row = state.matches[rules.index(rule)]
        others = (match for found in state.matches for match in found)  # of equal results only the first rule is listed
        state = state.apply(next(m for m in (*row, *others) if state.child_hash(m) == goal.hash))
    assert state.cost == roofline.graph(made.optimum)
    assert state.cost.time_ps < start


@pytest.mark.parametrize("name", SOME)
def test_no_rule_improves_the_optimum(name, rules, roofline):
    state = RewriteState(planted(name).optimum, rules, roofline)
    assert min(state.delta(match).time_ps for row in state.matches for match in row) >= 0


@pytest.mark.parametrize("name", SOME)
def test_graphs_are_sound_and_small(name):
    made = planted(name)
    check(made.start)
    nodes, edges = size_of(made.start)
    assert nodes <= MAX_NODES and edges <= MAX_EDGES
    assert len(made.graphs) == len(made.rules) + 1


@pytest.mark.parametrize("name", SOME[::4])
def test_start_and_optimum_compute_the_same(name):
    made = planted(name)
    inputs = random_inputs(made.start)
    (start,), (optimum,) = (session(graph).run(None, inputs) for graph in (made.start, made.optimum))
    assert np.isfinite(start).all()
    np.testing.assert_allclose(start, optimum, rtol=1e-3, atol=1e-4)  # float32 sums in another order


def test_a_name_is_one_graph():
    name = "generated/gated/5"
    first = models.build(name).canonical_digest()
    planted.cache_clear()
    assert models.build(name).canonical_digest() == first != models.build("generated/gated/6").canonical_digest()


@pytest.mark.parametrize("name", ["generated/linear", "generated/none/1", "generated/linear/x", "generated/linear/-1"])
def test_other_names_are_refused(name):
    with pytest.raises(OptionError, match="expected generated/FAMILY/SEED"):
        models.build(name)


def test_arguments_are_refused():
    with pytest.raises(OptionError, match="no arguments"):
        models.build("generated/linear/1", batch=2)


def test_splits_have_no_graph_in_common():
    drawn = [set(names(split, 200)) for split in SPLITS]
    assert all(len(own) == 200 for own in drawn) and len(set().union(*drawn)) == 800
    with pytest.raises(OptionError, match="expected a split among train"):
        names("all", 3)
    with pytest.raises(OptionError, match="expected 1 to"):
        names("test", 10**6)
    with pytest.raises(OptionError, match="expected a whole number as count, found '3'"):
        names("test", "3")


def test_splits_share_their_spaces():
    envs = [gym.make(env_id) for env_id in generated_ids()]
    assert len(envs) == len(SPLITS)
    assert all(env.observation_space == envs[0].observation_space for env in envs)
    assert all(env.action_space == envs[0].action_space for env in envs)


def test_an_environment_draws_among_them():
    env = TasoGraphEnv(models=names("train", 6))
    drawn = {int(env.reset(seed=seed)[1]["model"]) for seed in range(20)}
    assert len(drawn) > 2
    _, info = env.reset(options={"model": "generated/linear/1"})
    assert info["model"] == 4


def test_a_network_drawn_too_large_has_fewer_pieces():
    made = planted("generated/attention/62")  # 69 operators with all of them
    assert len(made.optimum.nodes) < MAX_NODES and len(made.rules) > 1


@pytest.mark.slow
@pytest.mark.parametrize("split", SPLITS)
def test_the_first_hundred_of_a_split_are_made(split, rules, roofline):
    for name in random.Random(0).sample(names(split, 500), 100):
        made = planted(name)
        assert roofline.graph(made.optimum).time_ps < roofline.graph(made.start).time_ps
