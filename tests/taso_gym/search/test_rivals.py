"""Searches by other costs and without some rules, all judged by the same costs in the end."""

from __future__ import annotations

from pathlib import Path

import pytest
from cost_graphs import mlp

from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.search import Budget, run
from taso_gym.search.finalist import Finalist
from taso_gym.search.rivals import Rivals

pytest.importorskip("onnxruntime")

RULES = """
relu-as-max: Relu(x) => Max(x, 0)
relu-twice [fast]: Relu(x) => Relu(Relu(x))
"""


@pytest.mark.parametrize(
    ("outside", "shares"), [(0.8, {"as if 0%": 0.0, "as if 50%": 0.5}), (0.5, {"as if 0%": 0.0}), (0.05, {})]
)
def test_less_out_of_the_cache_is_searched_by_and_all_is_judged_alike(
    outside: float, shares: dict[str, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taso_gym.cost.placed.cache_bytes", lambda: 1)
    graph, asked, said = mlp(), dict[str, RewriteState](), list[str]()
    model = OnnxRuntimeCost(cache=tmp_path / "c", start=graph, outside=outside)
    start = RewriteState(graph, RuleSet(parse_rules(RULES)), model)
    first = Finalist("first", start, run(start, "taso", Budget(steps=20)))

    def again(name: str, start: RewriteState) -> Finalist:
        asked[name] = start
        return Finalist(name, start, run(start, "taso", Budget(steps=20)))

    rivals = Rivals(first, again, lambda: 60.0, 60.0, said.append)
    rivals.gather()
    found = {name: state.cost_model.outside for name, state in asked.items() if name.startswith("as if")}
    assert found == {f"{name} were out of the cache": share for name, share in shares.items()}
    assert rivals.model.outside == outside and said
    costs = [rival.found.state.cost.time_ps for rival in rivals.ranked]
    assert costs == sorted(rivals.model.graph(rival.graph).time_ps for rival in rivals.ranked)
    without = asked["without what rounds differently"]
    assert [rule.name for rule in without.rules] == ["relu-as-max"] and rivals.alike


def test_nothing_is_searched_when_the_time_is_over(tmp_path: Path) -> None:
    start = RewriteState(mlp(), RuleSet(parse_rules(RULES)), OnnxRuntimeCost(cache=tmp_path / "c", start=mlp()))
    first = Finalist("first", start, run(start, "taso", Budget(steps=0)))

    def never(*_: object) -> Finalist:
        raise AssertionError

    rivals = Rivals(first, never, lambda: 0.0, 60.0, lambda _: None)
    rivals.gather()
    assert [rival.name for rival in rivals.ranked] == ["first"] and not rivals.alike


@pytest.mark.parametrize(("seconds", "share"), [(60.0, 0.9), (0.0, 0.4)])
def test_costs_are_fitted_to_what_was_found_if_there_is_time(
    seconds: float, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, shares = mlp(), iter([0.4, 0.9])
    monkeypatch.setattr("taso_gym.cost.placed.cache_bytes", lambda: 1)
    monkeypatch.setattr("taso_gym.cost.placed.share_outside", lambda *_: next(shares))
    model = OnnxRuntimeCost(cache=tmp_path / "c", start=graph)
    start = RewriteState(graph, RuleSet(parse_rules(RULES)), model)
    found = run(start, "taso", Budget(steps=20), seed=0)

    def again(name: str, start: RewriteState) -> Finalist:
        return Finalist(name, start, run(start, "taso", Budget(steps=0)))

    rivals = Rivals(Finalist("first", start, found), again, lambda: seconds, 60.0, lambda _: None)
    rivals.gather()
    assert rivals.model.outside == share
    assert all(rival.model.outside == share for rival in rivals.ranked)
