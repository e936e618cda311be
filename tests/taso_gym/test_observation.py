"""Observations: what each array says, and that patching equals laying out anew."""

import numpy as np
import pytest
from games import pickled, rule_set, same, tiny_env, tiny_graph, walk

from taso_gym.builder import GraphBuilder
from taso_gym.env import TasoGraphEnv
from taso_gym.errors import OptionError
from taso_gym.graph import SINK, producer_of
from taso_gym.models import NETWORKS
from taso_gym.observation import (
    EDGE_FEATURES,
    GLOBAL_FEATURES,
    NODE_FEATURES,
    OPERATOR_NUMBERS,
    Observer,
    count_rows,
    size_bytes,
)
from taso_gym.observation.features import FAMILIES, FeatureTable
from taso_gym.ops import OPERATORS
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.symbolic import symbol
from taso_gym.tensor import TensorType

COLUMN = {feature.name: i for i, feature in enumerate(NODE_FEATURES)}


def described(env):
    """The observed graph without row numbers: (features of producer, of consumer, of edge), sorted, and the nodes'."""
    o = env.observe()
    nodes = o["nodes"]
    edges = [
        (nodes[a].tobytes(), nodes[b].tobytes(), f.tobytes())
        for (a, b), f, used in zip(o["edges"], o["edge_features"], o["edge_mask"], strict=True)
        if used
    ]
    return sorted(nodes[o["node_mask"] == 1].tolist()), sorted(edges)


def test_there_are_at_most_32_node_features_with_different_names():
    assert len(NODE_FEATURES) <= 32
    for features in (NODE_FEATURES, EDGE_FEATURES, GLOBAL_FEATURES):
        assert len({f.name for f in features}) == len(features)


def test_every_operator_has_a_number_and_a_family():
    assert sorted(OPERATOR_NUMBERS.values()) == list(range(2, len(OPERATORS) + 2))
    named = {name for names in FAMILIES.values() for name in names.split()}
    assert {name for _, name in OPERATORS} <= named


def test_rows_are_the_operators_and_inputs():
    env = tiny_env()
    observation, _ = env.reset(seed=0)
    graph = env.state.graph
    assert observation["node_mask"].sum() == len(graph) + 1
    for node_id, node in graph.operators():
        row = observation["nodes"][env.episode.observer.row_of(node_id)]
        assert row[COLUMN["operator"]] == OPERATOR_NUMBERS[node.sig.op.domain, node.sig.op.name]
        assert row[COLUMN["is_output"]] == any(producer_of(v) == node_id for v in graph.outputs)


def test_edges_join_producers_and_consumers():
    env = tiny_env()
    observation, _ = env.reset(seed=0)
    graph, row_of = env.state.graph, env.episode.observer.row_of
    weights = {v for v, leaf in graph.leaves.items() if leaf.weight is not None}
    expected = sorted(
        (row_of(producer_of(value)), row_of(producer_of(use)))
        for value, uses in graph.uses.items()
        for use in uses
        if value not in weights and producer_of(use) != SINK
    )
    assert sorted(map(tuple, observation["edges"][observation["edge_mask"] == 1].tolist())) == expected


def test_matches_are_the_masks():
    env = tiny_env()
    observation, _ = env.reset(seed=0)
    rows = observation["matches"][observation["match_mask"] == 1]
    assert sorted(map(tuple, rows[:, :2].tolist())) == sorted(
        zip(*np.nonzero(observation["location_masks"][:-1]), strict=True)
    )
    for xfer, location, *nodes in rows.tolist():
        match = env.state.matches[xfer][location]
        assert [n for n in nodes if n >= 0] == [env.episode.observer.row_of(i) for i in match.nodes]
    assert (observation["matches"][observation["match_mask"] == 0] == -1).all()


def test_noop_is_legal_at_location_0_of_the_masks():
    masks = tiny_env().reset()[0]["location_masks"]
    assert masks[-1].tolist() == [1] + [0] * (masks.shape[1] - 1)


def check_patching(env, steps, seed):
    """Assert that each patched observation says what one laid out anew says."""
    env.reset()
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(env.sample_valid(rng))
        patched, episode = described(env), env.episode
        episode.observer = Observer(env.layout, episode.start.observer._features, env.state)
        assert described(env) == patched
        if terminated or truncated:
            env.reset()


@pytest.mark.parametrize("seed", range(3))
def test_patching_equals_laying_out_anew(seed):
    check_patching(tiny_env(), 60, seed)


@pytest.mark.parametrize("network", ["SqueezeNet1.1", *(pytest.param(n, marks=pytest.mark.slow) for n in NETWORKS)])
def test_patching_equals_laying_out_anew_on_networks(network):
    check_patching(TasoGraphEnv(network), 60, 0)


@pytest.mark.parametrize("name", ["SqueezeNet1.1", "ResNet18"])
def test_patching_equals_laying_out_anew_with_costs_by_region(name):
    check_patching(TasoGraphEnv(name, cost="recorded:epyc-zen4-1t"), 25, 0)


@pytest.mark.parametrize("copied", [pickled, lambda env: env], ids=["pickled", "itself"])
def test_shares_of_time_are_those_of_the_regions(copied):
    env = TasoGraphEnv("SqueezeNet1.1", cost="recorded:epyc-zen4-1t")
    env.reset()
    rng, env = np.random.default_rng(0), copied(env)
    for _ in range(6):
        shares = env.observe()["nodes"][:, COLUMN["time_share"]]
        assert 0 < shares.max() < 1
        assert shares.sum() == pytest.approx(env.state.cost.time_ps / env.episode.start.state.cost.time_ps, rel=1e-5)
        legal = [m for row in env.state.matches for m in row if env.state.delta(m).time_ps < 10**9]
        match = legal[rng.integers(len(legal))]
        env.step((match.rule, env.state.matches[match.rule].index(match)))


def test_a_node_keeps_its_row_while_it_lives():
    env = tiny_env()
    env.reset()
    rng = np.random.default_rng(0)
    for _ in range(30):
        before = {i: env.episode.observer.row_of(i) for i, _ in env.state.graph.operators()}
        env.step(env.sample_valid(rng))
        after = {i: env.episode.observer.row_of(i) for i, _ in env.state.graph.operators()}
        assert all(after[i] == row for i, row in before.items() if i in after)


def test_constants_have_no_rows():
    env = tiny_env(rules=rule_set("matmul-assoc: MatMul(MatMul(x, y), z) => MatMul(x, MatMul(y, z))"))
    before = env.reset()[0]
    env.step((0, 0))
    folded = [i for i, node in env.state.graph.operators() if node.sig.const]
    assert len(folded) == 1 and env.episode.observer.row_of(folded[0]) == -1
    after = env.observe()
    assert after["node_mask"].sum() == before["node_mask"].sum() - 1
    assert after["edge_mask"].sum() == before["edge_mask"].sum() - 1


def test_observations_are_in_the_space_and_use_its_bounds():
    env = tiny_env(location_counts=True, extra_views=("cost_changes",))
    space = env.observation_space
    observations = [env.reset()[0], *(step[0] for step in walk(env, 40))]
    assert all(o in space for o in observations)
    assert all(box.is_bounded() for box in space.values())
    assert {key: a.nbytes for key, a in observations[0].items()} == {
        key: int(np.prod(box.shape)) * box.dtype.itemsize for key, box in space.items()
    }
    assert size_bytes(space) == sum(a.nbytes for a in observations[0].values())


def test_counts_replace_masks():
    masks, counts = tiny_env().reset()[0], tiny_env(location_counts=True).reset()[0]
    assert "location_counts" not in masks and "location_masks" not in counts
    assert (masks["location_masks"].sum(1) == counts["location_counts"]).all()


def test_candidates_beyond_the_limits_are_illegal_in_every_view():
    env = tiny_env(max_matches=5, max_locations=2)
    observation, _ = env.reset()
    free = tiny_env().reset()[0]
    assert free["match_mask"].sum() > 5
    assert observation["match_mask"].sum() == observation["location_masks"][:-1].sum() == 5
    assert env.legal_locations()[:-1].max() == 2
    counts = env.legal_locations()
    last = int(np.flatnonzero(counts[:-1])[-1])
    assert env.step((last, int(counts[last])))[4]["invalid_action"]


def test_globals_follow_cost_and_steps():
    env = tiny_env(max_steps=10)
    names = [f.name for f in GLOBAL_FEATURES]
    first = dict(zip(names, env.reset()[0]["globals"], strict=True))
    assert first["time"] == first["flops"] == 1 and first["step"] == 0
    env.step(env.sample_valid(np.random.default_rng(0)))
    second = dict(zip(names, env.observe()["globals"], strict=True))
    ratio = env.state.cost.time_ps / env.episode.start.state.cost.time_ps
    assert second["time"] == np.float32(ratio) and second["step"] == np.float32(0.1)


def test_cost_changes_are_what_the_candidates_bring():
    env = tiny_env(extra_views=("cost_changes",))
    observation, _ = env.reset()
    for candidate, change in enumerate(observation["cost_changes"][observation["match_mask"] == 1]):
        clone = env.clone()
        reward = clone.play(clone.candidate_action(candidate))[0]
        assert reward == pytest.approx(-change, rel=1e-6)
    assert (observation["cost_changes"][observation["match_mask"] == 0] == 0).all()


def test_symbolic_dimensions_are_bound():
    builder = GraphBuilder({"": 20})
    x = builder.input("x", TensorType("float", (symbol("batch"), 8)))
    builder.output("y", builder.add("Relu", builder.add("Relu", x)))
    env = tiny_env(model=builder.build(), dims={"batch": 7})
    row = env.reset()[0]["nodes"][1]
    assert row[COLUMN["dim_-2"]] == np.float32(3 / 24)


@pytest.mark.parametrize("limit", ["max_nodes", "max_edges"])
def test_a_graph_larger_than_the_limits_is_refused(limit):
    with pytest.raises(OptionError, match=f"expected {limit} of at least"):
        tiny_env(**{limit: 5})


def test_no_candidate_exceeds_the_rows():
    nodes, edges = count_rows(tiny_graph())
    env = tiny_env(max_nodes=nodes + 1, max_edges=edges + 1)
    env.reset()
    for observation, *_ in walk(env, 100):
        assert observation in env.observation_space


def test_rows_of_a_table_stay_when_it_grows():
    table = FeatureTable(GLOBAL_FEATURES)
    numbers = [table.add(i, [i / 100] * len(GLOBAL_FEATURES)) for i in range(100)]
    assert numbers == list(range(1, 101)) == [table.find(i) for i in range(100)]
    assert (table.take(np.array([0, 1, 100]))[:, 0] == np.float32([0, 0, 0.99])).all()


def test_without_any_match_only_noop_is_legal():
    observation = tiny_env(rules=rule_set("exp-log: Exp(Log(x)) => x")).reset()[0]
    assert observation["xfer_mask"].tolist() == [0, 1] and not observation["match_mask"].any()


def test_matches_of_one_rule_may_have_different_numbers_of_nodes():
    """In one order of operands both products are one node."""
    text = "twice: Add(Mul(x, y), Mul(y, x)) => Mul(Mul(x, y), 2)\nup: Relu(x) => Relu(Relu(x))"
    rules = RuleSet(parse_rules(text))
    b = GraphBuilder({"": 20})
    x, y, u, v = (b.input(name, TensorType("float", (4,))) for name in "xyuv")
    one = b.add("Mul", x, y)
    for name, value in (("p", b.add("Add", one, one)), ("q", b.add("Add", b.add("Mul", u, v), b.add("Mul", v, u)))):
        b.output(name, b.add("Relu", value))
    env = TasoGraphEnv(b.build(), rules=rules)
    observation, _ = env.reset()
    rows = [[n for n in row[2:] if n >= 0] for row in observation["matches"][observation["match_mask"] == 1]]
    wanted = [sorted(set(m.nodes)) for found in env.episode.state.matches for m in found]
    assert sorted(map(len, rows)) == sorted(map(len, wanted)) and {len(row) for row in rows} == {1, 2, 3}


def test_a_sum_of_tensors_is_arithmetic_and_one_along_axes_a_reduction():
    assert "Sum" in FAMILIES["arithmetic"].split() and "ReduceSum" in FAMILIES["reduction"].split()


def test_masks_for_many_locations_take_no_more_than_the_candidates_need():
    env = tiny_env(max_locations=5000, max_matches=8)
    observation, _ = env.reset(seed=0)
    assert env.layout.ladder.shape == (9, 5000)
    assert same(observation["location_masks"].sum(1), env.legal_locations())
