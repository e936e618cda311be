"""Random legal walks: every invariant holds after each step, and the last graph computes what the first one did."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from network_runs import small

from taso_gym import cost, models
from taso_gym.equivalence import validate
from taso_gym.graph import Graph
from taso_gym.rules.files import generated_sets, package_sets
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState, check

FIVE = ("BERT", "InceptionV3", "ResNet18", "ResNet50", "SqueezeNet1.1")
STEPS = 300


TASO = Path(__file__).parents[1] / "data" / "taso" / "graph_subst.pb"
RULE_SETS: tuple[str | Path, ...] = ("default", *package_sets(), *generated_sets(), TASO)
"""The hand-written sets, those of taso-gen-subst, and TASO's file."""


def walk(graph: Graph, seed: int, numerics="reassociate", rules: str | Path = "default", steps=STEPS) -> RewriteState:
    """Apply random matches, rules first and then locations, from the start again when none is left."""
    start = RewriteState(graph, RuleSet.load(rules, numerics=numerics), cost.load("roofline"))
    rng, state = np.random.default_rng(seed), start
    last = start
    check(start)
    for _ in range(steps if any(start.matches) else 0):
        offered = [matches for matches in state.matches if matches]
        if not offered or len(state.graph) > 2 * len(graph):
            state, offered = start, [matches for matches in start.matches if matches]
        matches = offered[rng.integers(len(offered))]
        state = last = state.apply(matches[rng.integers(len(matches))])
        check(state)
    return last


@pytest.mark.parametrize("name", FIVE)
def test_small_network(name):
    graph = small(name)
    report = validate(graph, walk(graph, seed=0).graph)
    assert report.ok, str(report)


def name_of(rules: str | Path) -> str:
    """Return the name of a rule set for people."""
    return rules.name if isinstance(rules, Path) else rules


@pytest.mark.parametrize(
    ("name", "rules"), [*zip(sorted(models.NETWORKS), cycle(RULE_SETS), strict=False)], ids=name_of
)
def test_matches_equal_a_full_match_on_every_network_with_some_rule_set(name, rules):
    walk(small(name), seed=3, numerics="fast", rules=rules, steps=12)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("rules", RULE_SETS, ids=name_of)
@pytest.mark.parametrize("name", sorted(models.NETWORKS))
def test_matches_equal_a_full_match_on_every_network_with_every_rule_set(name, rules):
    walk(small(name), seed=4, numerics="fast", rules=rules, steps=40)


@pytest.mark.slow
@pytest.mark.parametrize("numerics", ["reassociate", "fast"])
@pytest.mark.parametrize("name", sorted(models.NETWORKS))
def test_every_small_network(name, numerics):
    graph = small(name)
    report = validate(graph, walk(graph, seed=1, numerics=numerics).graph)
    assert report.ok, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIVE)
def test_network_at_its_real_size(name):
    graph = models.build(name)
    report = validate(graph, walk(graph, seed=2).graph)
    assert report.ok, str(report)
