"""The learned change of cost that ranks candidates."""

import numpy as np
import pytest

from taso_gym import cost, models
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.search.ranking import LARGEST_PERCENT, ROOFLINE, ChangeModel, change_features


@pytest.fixture(scope="module")
def start() -> RewriteState:
    graph = models.build("BERT", layers=1, hidden=48, heads=4, sequence=16)
    return RewriteState(graph, RuleSet.load("default"), cost.load("roofline"))


def features_of(start: RewriteState) -> list[tuple[dict[str, float], float]]:
    """Features of all candidates, and their change in % by the roofline model."""
    model, whole = cost.load("roofline"), start.cost.time_ps
    found = []
    for match in (m for row in start.matches for m in row):
        rule = start.rules[match.rule].name
        features = change_features(start.graph, start.child_graph(match), rule, model, whole)
        found.append((features, 100 * start.delta(match).time_ps / whole))
    return found


def test_one_feature_is_the_roofline_model_s_change(start):
    for features, change in features_of(start):
        assert features[ROOFLINE] == pytest.approx(change, abs=1e-9)


def test_features_say_which_operators_come_and_go(start):
    model = cost.load("roofline")
    rule = next(i for i, row in enumerate(start.matches) if row and start.rules[i].name.startswith("matmul-"))
    match = start.matches[rule][0]
    child = start.apply(match)
    features = change_features(start.graph, child.graph, "r", model, start.cost.time_ps)
    assert features["rule r"] == 1.0

    def count(state: RewriteState, key: str) -> int:
        ran = (n.sig for _, n in state.graph.operators())
        return sum(sig.op.key == key for sig in ran if not sig.const and not sig.op.view)

    for name, value in features.items():
        if name != ROOFLINE and not name.startswith("rule ") and not name.endswith(" time"):
            assert value == count(child, name) - count(start, name)


def test_nothing_learnt_is_the_roofline_order(start):
    features = [f for f, _ in features_of(start)]
    expected = ChangeModel().expect(features)
    np.testing.assert_allclose(expected.mean, [f[ROOFLINE] for f in features])
    assert (expected.std > 0).all()


def test_what_was_measured_is_expected_and_surer():
    a, b = {ROOFLINE: -0.1, "Conv": 1.0}, {ROOFLINE: 0.1, "Relu": 1.0}
    model = ChangeModel()
    unsure = model.expect([a, b]).std
    for _ in range(3):
        model.learn(a, 0.3)
    after = model.expect([a, b])
    assert after.mean[0] == pytest.approx(0.3, abs=0.01)
    assert after.std[0] < 0.2 * unsure[0] and after.std[1] <= unsure[1]


def test_what_alike_rewrites_cost_is_foreseen():
    """Twenty changes that are 0.05 % a Relu removed, whatever the roofline model says."""
    rng, model = np.random.default_rng(0), ChangeModel()
    for _ in range(20):
        relus = float(rng.integers(-3, 4))
        model.learn({ROOFLINE: float(rng.normal()) * 0.01, "Relu": relus}, 0.05 * relus)
    found = model.expect([{ROOFLINE: 0.0, "Relu": float(n)} for n in (-3, 0, 3)])
    np.testing.assert_allclose(found.mean, [-0.15, 0.0, 0.15], atol=0.01)


def test_what_is_expected_depends_on_what_was_learnt_and_not_on_what_was_asked_before():
    """A search that was interrupted asks in another order, and has to rank to the last bit as if it hadn't been."""
    rng, names = np.random.default_rng(0), [f"op {i}" for i in range(12)]
    changes = [{ROOFLINE: float(rng.normal())} | dict(zip(names, rng.normal(size=12), strict=True)) for _ in range(6)]
    asking, fresh = ChangeModel(), ChangeModel()
    asking.expect([dict(reversed(changes[0].items())), {ROOFLINE: 0.0, "gone": 1.0}])
    for features in changes[:4]:
        asking.learn(features, 0.1)
        fresh.learn(dict(sorted(features.items())), 0.1)
    for before, after in zip(asking.expect(changes), fresh.expect(changes), strict=True):
        assert before.tolist() == after.tolist()


def test_an_operator_that_doesn_t_run_isn_t_all_that_is_learnt():
    model = ChangeModel()
    model.learn({ROOFLINE: 0.0, "rule r": 1.0}, 1e9)
    assert model.seen[0][1] == LARGEST_PERCENT
