"""Rewrites are checked one site at a time."""

from types import ModuleType

import pytest

from taso_gym import cost, models
from taso_gym.equivalence import draw, walk
from taso_gym.equivalence.report import Report
from taso_gym.equivalence.walk import SiteChecks, WalkChecker
from taso_gym.errors import EquivalenceError
from taso_gym.optimizer import optimize
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.search import Budget

BERT = {"layers": 2, "hidden": 48, "heads": 4, "sequence": 16}


def test_optimize_checks_every_site_it_rewrote():
    result = optimize(models.build("BERT", **BERT), "greedy", budget=Budget(steps=2000))
    assert result.sites.applied == len(result.applied) > 0
    assert result.sites.computed == result.sites.applied
    assert result.sites.error < 1e-6
    assert not result.sites.unknown


def test_equal_sites_are_computed_once(monkeypatch: pytest.MonkeyPatch):
    calls: list[int] = []
    genuine = walk.check_site

    def counted(*args: object, **kwargs: object) -> Report:
        calls.append(1)
        return genuine(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(walk, "check_site", counted)
    state = RewriteState(models.build("BERT", **BERT), RuleSet.load("default"), cost.load("roofline"))
    rule = state.rules.index("layer-norm-of-sum")
    checker = WalkChecker()
    for match in state.matches[rule]:
        checker.check(state, match, state.child_graph(match))
    assert checker.result().computed == len(state.matches[rule]) > len(calls)


def test_a_site_that_computes_something_else_is_refused():
    false = parse_rules("swapped: LayerNormalization(Add(x, y), g, b, **k) => LayerNormalization(Sub(x, y), g, b, **k)")
    state = RewriteState(models.build("BERT", **BERT), RuleSet(false), cost.load("roofline"))
    match = state.matches[0][0]
    with pytest.raises(EquivalenceError, match="expected swapped to change nothing, found at one of its sites"):
        WalkChecker().check(state, match, state.child_graph(match))


def test_a_rule_is_not_known_by_its_place():
    """Another set has another one there."""
    lines = "true: Add(Add(x, y), z) => Add(x, Add(y, z))", "a-lie: Add(Add(x, y), z) => Add(x, y)"
    graph, checker = models.build("BERT", **BERT), WalkChecker()
    good, bad = (RewriteState(graph, RuleSet(parse_rules(line)), cost.load("roofline")) for line in lines)
    same = set(good.matches[0]) & set(bad.matches[0])
    for match in sorted(same)[:1]:
        checker.check(good, match, good.child_graph(match))
        with pytest.raises(EquivalenceError, match="expected a-lie"):
            checker.check(bad, match, bad.child_graph(match))
    assert same


def test_a_rule_that_computes_something_else_is_left_out_of_a_result():
    false = parse_rules("a-lie: Add(Add(x, y), z) => Add(x, y)")
    rules = RuleSet([*false, *RuleSet.load("default")])
    graph = models.build("BERT", **BERT)
    with pytest.warns(UserWarning, match="expected a-lie to change nothing.*; the rule is left out"):
        result = optimize(graph, "greedy", rules, budget=Budget(steps=2000))
    assert result.applied and "a-lie" not in result.rule_counts()
    assert result.validate().ok and result.after.time_ps < result.before.time_ps


@pytest.mark.parametrize(("module", "limit"), [(walk, "MAX_FLOPS"), (draw, "MOST_ELEMENTS")])
def test_too_much_work_and_too_large_values_are_said(module: ModuleType, limit: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, limit, 0)
    state = RewriteState(models.build("BERT", **BERT), RuleSet.load("default"), cost.load("roofline"))
    match = state.matches[state.rules.index("layer-norm-of-sum")][0]
    checker = WalkChecker()
    checker.check(state, match, state.child_graph(match))
    assert checker.result() == SiteChecks(1, 0, 0.0, ("layer-norm-of-sum",))
    assert "not computed: layer-norm-of-sum" in str(checker.result())
