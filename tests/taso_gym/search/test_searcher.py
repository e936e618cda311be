"""Gains within the noise of measured costs are none."""

import numpy as np
import pytest

from taso_gym import cost, models
from taso_gym.cost.roofline import RooflineCost
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.search import Budget, run, searcher
from taso_gym.search.greedy import Greedy


class Measured(RooflineCost):
    """Costs that are the same each time, but don't say so."""

    deterministic = False


def start(model: RooflineCost) -> RewriteState:
    """A block of BERT."""
    graph = models.build("BERT", layers=1, hidden=48, heads=4, sequence=16)
    return RewriteState(graph, RuleSet.load("default"), model)


def test_gains_within_the_noise_are_none_but_smaller_graphs_stay_better(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searcher, "NOISE", 2.0)
    before = start(Measured())
    search = Greedy(before, np.random.default_rng(0))
    gains = [m for found in before.matches for m in found if before.delta(m).time_ps < 0]
    assert gains
    assert [search.change(before, m) for m in gains] == [before.growth(m).nodes for m in gains]


def test_gains_within_the_noise_are_none_to_a_ranked_search_either(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(start(Measured()), "ranked", Budget(steps=20), order="roofline").path
    monkeypatch.setattr(searcher, "NOISE", 2.0)
    assert not run(start(Measured()), "ranked", Budget(steps=20), order="roofline").path


def test_the_value_of_a_state_is_the_sum_of_what_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searcher, "NOISE", 0.3)
    before = start(Measured())
    search = Greedy(before, np.random.default_rng(0))
    first = search.values[0]
    while search.step():
        pass
    expected, state = first, before
    for match in search.path(search.best):
        expected += search.change(state, match)
        state = state.apply(match)
    assert search.best_value == search.values[search.best] == expected


def test_gains_beyond_the_noise_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searcher, "NOISE", 0.01)
    before = start(Measured())
    assert run(before, "greedy", Budget(steps=3000)).state.cost.time_ps < before.cost.time_ps


def test_deterministic_costs_have_no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searcher, "NOISE", 2.0)
    model = cost.load("roofline")
    assert isinstance(model, RooflineCost)
    before = start(model)
    assert run(before, "greedy", Budget(steps=3000)).state.cost.time_ps < before.cost.time_ps
