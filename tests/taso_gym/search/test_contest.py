"""The contest of finalists: what is measured, what wins, and what the measurements teach."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest
from cost_graphs import weight
from priced_costs import Priced

from taso_gym import optimize
from taso_gym.builder import GraphBuilder
from taso_gym.cost import node_times
from taso_gym.cost.measurement import THREAD_CPU, Measurement
from taso_gym.cost.node_keys import COLD
from taso_gym.cost.node_times import NodeTimes, Turn
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost_model import Cost
from taso_gym.errors import CheckpointError, CostError, OptionError
from taso_gym.graph import Graph
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.search import Budget, SearchResult, bouts, contested, evidence, run
from taso_gym.search import contest as contest_module
from taso_gym.search.contest import Contest
from taso_gym.search.equal import Screen
from taso_gym.search.evidence import START, Evidence
from taso_gym.search.finalist import Finalist
from taso_gym.search.race import HEATS, race_seconds
from taso_gym.search.rivals import Rivals
from taso_gym.symbolic import symbol
from taso_gym.tensor import TensorType

pytest.importorskip("onnxruntime")

WIDTH = 400
"""Of weights that make an operator heavy."""
RULES = """
matmul-assoc: MatMul(MatMul(x, y), z) => MatMul(x, MatMul(y, z)) if const(y) and const(z)
relu-twice: Relu(Relu(x)) => Relu(x)
"""


def layers(rows: int = 1) -> Graph:
    """Two products that can be one, and a Relu too many; of a single row they take as long as reading weights does."""
    b = GraphBuilder({"": 20})
    value = b.input("x", TensorType("float", (rows, WIDTH)))
    for name in "ab":
        value = b.add("MatMul", value, weight(b, name, WIDTH, WIDTH))
    b.output("y", b.add("Relu", b.add("Relu", value)))
    return b.build()


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Finalist:
    """The result of a search whose costs depend on what is in the cache."""
    monkeypatch.setattr("taso_gym.cost.placed.cache_bytes", lambda: 1)
    monkeypatch.setattr(node_times, "LARGE", 1)
    monkeypatch.setattr(bouts, "HOPELESS", 3.0)
    graph = layers()
    start = RewriteState(graph, RuleSet(parse_rules(RULES)), OnnxRuntimeCost(cache=tmp_path / "c", start=graph))
    return Finalist("first", start, run(start, "taso", Budget(steps=100)))


@pytest.fixture
def taking(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Graph], float]], list[list[str]]]:
    """Let graphs take so long; return the names of those that were measured together."""

    def pretend(time_ms: Callable[[Graph], float]) -> list[list[str]]:
        asked: list[list[str]] = []

        def measure(graphs: dict[str, Graph], *, rounds: int, **_: Any) -> Measurement:
            asked.append(list(graphs))
            times = {name: np.full((1, rounds), time_ms(graph)) for name, graph in graphs.items()}
            return Measurement(times, 1, "cpu", THREAD_CPU)

        monkeypatch.setattr(evidence, "measure", measure)
        return asked

    return pretend


def count(graph: Graph, op: str) -> int:
    """How often an operator runs."""
    return sum(node.sig.op.name == op and not node.sig.const for _, node in graph.operators())


def test_a_rule_that_costs_overrate_is_left_out(first: Finalist, taking: Any) -> None:
    taking(lambda graph: 3.0 - count(graph, "MatMul"))  # two products take less than one
    assert count(first.graph, "MatMul") == 1
    contest = Contest(first)
    best = contest.run(60.0)
    assert count(best.graph, "MatMul") == 2 and best.name == "first, without matmul-assoc"
    assert [bout.speedup.ratio for bout in contest.bouts if bout.name == best.name] == [2.0]


@pytest.mark.parametrize("seconds", [60.0, 0.0])
def test_what_computes_something_else_is_left_out_before_anything_is_measured(
    seconds: float, tmp_path: Path, taking: Any
) -> None:
    """The cheapest rule is, and what is searched for again does without it; not without time, when nothing is run."""
    b = GraphBuilder({"": 20})
    b.output("y", b.add("Relu", b.input("x", TensorType("float", (4,)))))
    rules = RuleSet(parse_rules("off: Relu(x) => Abs(x)\nright: Relu(x) => Sqrt(x)"))
    start = RewriteState(b.build(), rules, Priced(tmp_path / "c", PRICES))
    first = Finalist("first", start, run(start, "taso", Budget(steps=9)))
    asked = taking(lambda _: 1.0)
    screen = Screen(lambda graph: bool(asked.append([]) or count(graph, "Abs")), lambda _: None)
    contest = Contest(first, screen=screen)
    if not seconds:
        assert contest.run(seconds) is first and not asked
        return
    with pytest.warns(UserWarning, match="^off left out: with it outputs differ"):
        best = contest.run(seconds)
    assert [best.start.rules[match.rule].name for match in best.found.path] == ["right"]
    assert asked[:3] == [[]] * 3 and "off" not in best.rules


def test_what_computes_something_else_doesnt_win(tmp_path: Path, taking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is equal; what is found without the rule that rounds differently takes less time and is not."""
    monkeypatch.setattr(bouts, "HOPELESS", 3.0)
    b = GraphBuilder({"": 20})
    b.output("y", b.add("Neg", b.input("x", TensorType("float", (4,)))))
    rules = RuleSet(parse_rules("cheap [fast]: Neg(x) => Abs(x)\noff: Neg(x) => Sqrt(x)"))
    start = RewriteState(b.build(), rules, Priced(tmp_path / "c", PRICES))
    first = Finalist("first", start, run(start, "taso", Budget(steps=9)))
    assert count(first.graph, "Abs") == 1
    taking(lambda graph: 1.0 - 0.3 * count(graph, "Abs") - 0.5 * count(graph, "Sqrt"))
    assert count(Contest(first).run(60.0).graph, "Sqrt") == 1
    with pytest.warns(UserWarning, match="^off left out"):
        best = Contest(first, screen=Screen(lambda graph: bool(count(graph, "Sqrt")), lambda _: None)).run(60.0)
    assert count(best.graph, "Abs") == 1


@pytest.mark.parametrize(
    "error", [OptionError("expected room on the disk"), MemoryError("no room"), OSError("no file")]
)
def test_what_fails_leaves_what_was_found(first: Finalist, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(evidence, "measure", fail)
    with pytest.warns(UserWarning, match="the contest of finalists ended early: (expected|no) (room|file)"):
        assert Contest(first).run(60.0).found.path


def test_a_search_that_knows_no_other_rules_is_done_without(
    first: Finalist, taking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a policy's: what it found is still taken apart and measured."""

    def strict(start: RewriteState, *args: Any, **kwargs: Any) -> SearchResult:
        if start.rules.digest != first.start.rules.digest:
            raise CheckpointError("expected other rules")
        return run(start, *args, **kwargs)

    monkeypatch.setattr(contest_module, "run", strict)
    taking(lambda graph: 3.0 - count(graph, "MatMul"))
    best = Contest(first).run(60.0)
    assert count(best.graph, "MatMul") == 2 and best.name == "first, without matmul-assoc"


def test_a_rule_that_gives_the_same_as_another_is_no_obstacle(tmp_path: Path, taking: Any) -> None:
    """What was found without the one that rounds differently isn't there with both: the first of them counts."""
    b = GraphBuilder({"": 20})
    b.output("y", b.add("Neg", b.input("x", TensorType("float", (4,)))))
    rules = RuleSet(parse_rules("quick [fast]: Neg(x) => Abs(x)\nplain: Neg(x) => Abs(x)"))
    start = RewriteState(b.build(), rules, Priced(tmp_path / "c", PRICES))
    taking(lambda _: 1.0)
    best = Contest(Finalist("first", start, run(start, "taso", Budget(steps=9)))).run(60.0)
    assert count(best.graph, "Abs") == 1


PRICES = {"Relu": 10, "Neg": 10, "Abs": 5, "Sqrt": 8, "Exp": 1}


class Repriced(Priced):
    """Prices that turn out otherwise when what is decided by them is measured in turns."""

    def in_turns(self, graphs: Iterable[Graph], *_: object) -> Self:
        """Return a model with the true prices of what graphs execute."""
        other = copy(self)
        used = {node.sig.op.name for graph in graphs for _, node in graph.operators()}
        other._prices = {**self._prices, **{name: TRUE[name] for name in used & TRUE.keys()}}
        return other


TRUE = {"Abs": 20, "Exp": 9, "Sqrt": 8}
"""Prices of what was underrated."""


@pytest.mark.parametrize(
    ("left", "ranked"),
    [(60.0, {"first, without lucky": 18, "as given": 20, "first": 28}), (0.0, {"as given": 20, "first": 28})],
)
def test_rules_that_turn_out_to_lose_time_are_left_out(left: float, ranked: dict[str, int], tmp_path: Path) -> None:
    """Without a search for what is better; and where there is no time for that, all are."""
    b = GraphBuilder({"": 20})
    b.output("y", b.add("Neg", b.add("Relu", b.input("x", TensorType("float", (4,))))))
    rules = RuleSet(parse_rules("lucky: Relu(x) => Abs(x)\ngood: Neg(x) => Sqrt(x)"))
    start = RewriteState(b.build(), rules, Repriced(tmp_path / "c", PRICES))
    first = Finalist("first", start, run(start, "taso", Budget(steps=9)))

    def again(name: str, start: RewriteState) -> Finalist:
        return Finalist(name, start, SearchResult(start, (), 0, 0.0, exhausted=True, interrupted=False))

    rivals = Rivals(first, again, lambda: left, 60.0, lambda _: None)
    rivals.gather()
    assert {rival.name: rival.found.state.cost.time_ms for rival in rivals.ranked} == ranked
    assert [rival.name for rival in rivals.ranked] == list(ranked)
    assert all("good" in rival.rules for rival in rivals.ranked)


def test_what_looked_cheap_by_chance_is_not_kept(tmp_path: Path, taking: Any) -> None:
    text = "lucky: Relu(x) => Abs(x)\nless: Relu(x) => Exp(x)\nbest: Relu(x) => Sqrt(x)"
    b = GraphBuilder({"": 20})
    b.output("y", b.add("Relu", b.input("x", TensorType("float", (4,)))))
    model = Repriced(tmp_path / "c", {"Relu": 10, "Abs": 5, "Exp": 6, "Sqrt": 8})
    start = RewriteState(b.build(), RuleSet(parse_rules(text)), model)
    first = Finalist("first", start, run(start, "taso", Budget(steps=9)))
    assert count(first.graph, "Abs") == 1
    asked = taking(lambda _: 1.0)
    best = Contest(first).run(60.0)
    assert (count(best.graph, "Sqrt"), best.found.state.cost.time_ms) == (1, 8)
    assert best.name == "measured in turns, search 2"
    assert not any("lucky" in name for names in asked for name in names)


def test_what_only_costs_are_against_is_measured(tmp_path: Path, taking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs that were measured again prefer another finalist than the first, which is the faster one."""
    monkeypatch.setitem(TRUE, "Sqrt", 19)
    b = GraphBuilder({"": 20})
    b.output("y", b.add("Relu", b.input("x", TensorType("float", (4,)))))
    rules = RuleSet(parse_rules("lucky: Relu(x) => Abs(x)\nbest: Relu(x) => Sqrt(x)"))
    model = Repriced(tmp_path / "c", {"Relu": 30, "Abs": 5, "Sqrt": 19.8})
    start = RewriteState(b.build(), rules, model)
    first = Finalist("first", start, run(start, "taso", Budget(steps=9)))
    taking(lambda graph: 1.0 - 0.5 * count(graph, "Abs"))
    contest = Contest(first)
    assert contest.run(60.0).name == "first" and contest.bouts[0].name == "first"
    assert contest.bouts[0].speedup.ratio == 2.0


@pytest.mark.parametrize(("gained", "left"), [(0.15, ["Abs", "Exp"]), (0.5, [])])
def test_rules_that_gain_little_are_measured_together(
    gained: float, left: list[str], tmp_path: Path, taking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of two gains a hair by the costs; they make it slower, which is seen without both only."""
    monkeypatch.setattr(Contest, "_search_by_costs", lambda _: None)
    monkeypatch.setattr(Contest, "_leave_out", lambda *_: None)
    monkeypatch.setattr(Contest, "_doubtful", lambda _: iter(()))
    b = GraphBuilder({"": 20})
    value = b.input("x", TensorType("float", (4,)))
    for op in ("Abs", "Exp", "Sin"):
        value = b.add(op, value)
    b.output("y", value)
    rules = RuleSet(parse_rules("a: Abs(x) => Neg(x)\nb: Exp(x) => Sqrt(x)\nc: Sin(x) => Cos(x)"))
    prices = {"Abs": 10, "Exp": 10, "Sin": 100, "Neg": 10 - gained, "Sqrt": 10 - gained, "Cos": 92}
    start = RewriteState(b.build(), rules, Priced(tmp_path / "c", prices))
    asked = taking(
        lambda graph: 1.5 - 0.2 * count(graph, "Cos") - 0.5 * (not count(graph, "Neg") + count(graph, "Sqrt"))
    )
    best = Contest(Finalist("first", start, run(start, "taso", Budget(steps=20)))).run(60.0)
    assert [op for op in ("Abs", "Exp") if count(best.graph, op)] == left and count(best.graph, "Cos") == 1
    assert any("first, without a, b" in names for names in asked) == bool(left)


def test_a_finalist_that_does_not_run_is_left_out_with_a_warning(
    first: Finalist, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise CostError("expected first, without matmul-assoc to run, found nothing")

    monkeypatch.setattr(evidence, "measure", fail)
    contest = Contest(first)
    with pytest.warns(UserWarning, match="not compared with .*: expected first, without matmul-assoc"):
        assert contest.run(60.0).found.path
    assert not contest.bouts


def test_a_finalist_that_does_not_run_takes_no_other_with_it(
    first: Finalist, taking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    taking(lambda graph: 3.0 - count(graph, "MatMul"))
    measure, fails = evidence.measure, "first, without relu-twice"

    def measured(graphs: dict[str, Graph], **how: Any) -> Measurement:
        if fails in graphs:
            raise CostError(f"expected {fails} to run, found nothing")
        return measure(graphs, **how)

    monkeypatch.setattr(evidence, "measure", measured)
    held, parts = bouts.Bouts(first, lambda _: None), [first.without([name]) for name in ("relu-twice", "matmul-assoc")]
    with pytest.warns(UserWarning, match=f"not compared with first, without matmul-assoc: {fails}: expected {fails}"):
        best, faster = held.meet(first, reversed(parts), first.model, math.inf)
    assert [best] == faster == parts[1:]


def test_costs_that_fail_end_the_contest_with_a_warning(first: Finalist, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise CostError("expected a cache, found none")

    monkeypatch.setattr(OnnxRuntimeCost, "in_turns", fail)
    with pytest.warns(UserWarning, match="the contest of finalists ended early: expected a cache, found none"):
        assert Contest(first).run(60.0) is first


def test_an_interruption_ends_the_contest_and_keeps_the_best(first: Finalist, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(evidence, "measure", interrupt)
    said: list[str] = []
    assert Contest(first, progress=said.append).run(60.0).found.path
    assert said[-1] == "interrupted"


def test_an_interrupted_search_is_the_last_one(first: Finalist, taking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = taking(lambda _: 1.0)
    monkeypatch.setattr(
        contest_module, "run", lambda *args, **_: replace(run(*args[:2], Budget(steps=0)), interrupted=True)
    )
    said: list[str] = []
    Contest(first, progress=said.append).run(60.0)
    assert sum(text.startswith("searching again") for text in said) == 1 and not asked


@pytest.mark.parametrize("number", range(1, 7))
def test_nothing_is_measured_after_an_interrupted_search(
    number: int, first: Finalist, taking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, searches, until = taking(lambda graph: 3.0 - count(graph, "MatMul")), list[int](), list[int]()

    def interrupted(*arguments: Any, **options: Any) -> Any:
        searches.append(1)
        found = run(*arguments, **options)
        if len(searches) == number:
            until.append(len(asked))
            return replace(found, interrupted=True)
        return found

    monkeypatch.setattr(contest_module, "run", interrupted)
    contest = Contest(first)
    contest.run(60.0)
    assert contest.interrupted == (len(searches) >= number) and not (contest.interrupted and contest.exhausted)
    assert len(searches) <= number and until in ([], [len(asked)])


def test_finalists_are_measured_at_the_sizes_that_are_costed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    b = GraphBuilder({"": 20})
    b.output("y", b.add("Relu", b.input("x", TensorType("float", (symbol("batch"), 4)))))
    graph, given = b.build(), list[dict[str, int]]()
    model = OnnxRuntimeCost(dims={"batch": 8}, cache=tmp_path / "c", start=graph)

    def measure(graphs: dict[str, Graph], *, dims: dict[str, int], rounds: int, **_: Any) -> Measurement:
        given.append(dims)
        return Measurement({name: np.ones((1, rounds)) for name in graphs}, 1, "cpu", THREAD_CPU)

    monkeypatch.setattr(evidence, "measure", measure)
    Evidence(graph).measure({START: graph}, model, 2, 0)
    assert given == [{"batch": 8}]


def test_a_rule_that_is_in_the_way_of_others_is_left_out(tmp_path: Path, taking: Any) -> None:
    text = "trap: Neg(x) => Abs(x)\nfirst: Neg(x) => Sqrt(x)\nthen: Relu(Sqrt(x)) => Exp(x)"
    b = GraphBuilder({"": 20})
    b.output("y", b.add("Relu", b.add("Neg", b.input("x", TensorType("float", (4,))))))
    start = RewriteState(b.build(), RuleSet(parse_rules(text)), Priced(tmp_path / "c", PRICES))
    first = Finalist("first", start, run(start, "taso", Budget(steps=3), alpha=1.0))
    assert first.found.state.cost.time_ms == 15
    asked = taking(lambda _: 1.0)
    assert Contest(first, options={"alpha": 1.0}).run(60.0).found.state.cost.time_ms == 1
    assert not asked


@pytest.mark.parametrize(("then", "path"), [("", "without what rounds differently"), (" [fast]", "after all else")])
def test_what_rounds_alike_is_searched_for_and_gone_on_from(
    then: str, path: str, tmp_path: Path, taking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule that rounds differently gains the most, and is in the way of two others that gain more."""
    monkeypatch.setattr(contest_module, "COSTED", 0.0)
    text = f"trap [fast]: Neg(x) => Abs(x)\nfirst: Neg(x) => Sqrt(x)\nthen{then}: Relu(Sqrt(x)) => Exp(x)"
    b = GraphBuilder({"": 20})
    b.output("y", b.add("Relu", b.add("Neg", b.input("x", TensorType("float", (4,))))))
    start = RewriteState(b.build(), RuleSet(parse_rules(text)), Priced(tmp_path / "c", PRICES))
    first = Finalist("first", start, run(start, "taso", Budget(steps=3), alpha=1.0))
    assert first.found.state.cost.time_ms == 15
    taking(lambda _: 1.0)
    best = Contest(first, options={"alpha": 1.0}).run(60.0)
    assert best.found.state.cost.time_ms == 1 and best.name.endswith(path)
    assert [best.start.rules[match.rule].name for match in best.found.path] == ["first", "then"]
    state = best.start
    for match in best.found.path:
        state = state.apply(match)
    assert state.graph == best.graph


def test_what_rounds_alike_is_measured_though_costs_are_against_it(tmp_path: Path, taking: Any) -> None:
    b = GraphBuilder({"": 20})
    b.output("y", b.add("Neg", b.input("x", TensorType("float", (4,)))))
    rules = RuleSet(parse_rules("overrated [fast]: Neg(x) => Abs(x)\nfair: Neg(x) => Sqrt(x)"))
    start = RewriteState(b.build(), rules, Priced(tmp_path / "c", PRICES | {"Sqrt": 5.2}))
    first = Finalist("first", start, run(start, "taso", Budget(steps=9)))
    taking(lambda graph: 1.0 + count(graph, "Abs"))
    assert Contest(first).run(60.0).name == "without what rounds differently"


def test_searching_without_single_rules_ends_in_its_time(
    first: Finalist, taking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that begins shortly before the end of the time for it takes no longer than that."""
    given, until = list[float](), time.monotonic() + 5.0
    monkeypatch.setattr(
        contest_module, "run", lambda start, _, budget, *__, **___: given.append(budget.seconds) or run(start)
    )
    taking(lambda _: 1.0)
    contest = Contest(first)
    contest._seconds, contest._ends = 1000.0, math.inf
    contest._leave_out(until)
    assert given and all(seconds <= 5.0 for seconds in given)


def test_rules_that_are_overrated_are_left_out_together(
    tmp_path: Path, taking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bouts, "HOPELESS", 3.0)
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (4,)))
    b.output("y", b.add("Relu", b.add("Neg", b.add("Sqrt", x))))
    rules = RuleSet(parse_rules("one: Neg(x) => Abs(x)\nother: Relu(x) => Abs(x)\ngood: Sqrt(x) => Exp(x)"))
    start = RewriteState(b.build(), rules, Priced(tmp_path / "c", PRICES))
    first = Finalist("first", start, run(start, "taso", Budget(steps=9)))
    taking(lambda graph: 5.0 - count(graph, "Neg") - count(graph, "Relu") - count(graph, "Exp"))
    best = Contest(first).run(60.0)
    assert best.name == "first, without one, other" and len(best.found.path) == count(best.graph, "Exp") == 1


def test_the_first_stays_where_nothing_is_faster(first: Finalist, taking: Any) -> None:
    asked = taking(lambda graph: 1.0 + count(graph, "MatMul"))
    assert Contest(first).run(60.0).found.state.hash == first.found.state.hash
    assert START in asked[0] and all(START not in names for names in asked[1:])


def test_no_graph_is_measured_twice_as_another(first: Finalist, taking: Any) -> None:
    asked = taking(lambda _: 1.0)
    Contest(first).run(60.0)
    assert all(len(names) > 1 for names in asked)
    new = [name for names in asked for name in names if name not in ("first", START)]
    assert len(new) == len(set(new))


def test_a_graph_that_is_predicted_far_slower_is_not_measured(
    first: Finalist, taking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bouts, "HOPELESS", 1.1)
    asked = taking(lambda graph: count(graph, "MatMul"))  # as costs say, or less
    assert count(Contest(first).run(60.0).graph, "MatMul") == 1
    assert asked and not any("matmul-assoc" in name for names in asked for name in names)


def test_it_is_measured_where_the_best_takes_longer_than_predicted(
    first: Finalist, taking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Costs are wrong by as much, and may be of what the best was preferred to as well."""
    monkeypatch.setattr(bouts, "HOPELESS", 1.1)
    asked = taking(lambda graph: 3.0 - count(graph, "MatMul"))
    held = bouts.Bouts(first, lambda _: None)
    dear, cheap = (first.without([name]) for name in ("matmul-assoc", "relu-twice"))
    assert held.meet(first, [dear], first.model, math.inf) == (first, []) and not asked
    assert not held.reconsidered(first, first.model)
    held.meet(first, [cheap], first.model, math.inf)
    assert held.reconsidered(first, first.model) == [dear]
    assert held.meet(first, [], first.model, math.inf) == (dear, [dear])
    assert not held.reconsidered(dear, first.model)
    assert count(Contest(first).run(60.0).graph, "MatMul") == 2


@pytest.mark.parametrize(("run_ms", "times"), [(20.0, 2.0), (2000.0, 1.2)])
def test_graphs_that_run_for_seconds_are_not_expected_to_be_loaded_for_longer(
    run_ms: float, times: float, first: Finalist
) -> None:
    held = bouts.Bouts(first, lambda _: None)
    held._run_ms = run_ms
    assert 0.95 * times <= held.seconds(1) / race_seconds(run_ms, 1) <= times


def test_only_so_many_are_measured_as_have_time_for_every_heat(first: Finalist) -> None:
    held = bouts.Bouts(first, lambda _: None)
    held._run_ms, every = 100.0, len(HEATS)
    for count in range(2, HEATS[0][1] + 1):
        seconds = held.seconds(count, every)
        assert seconds > held.seconds(count)
        assert (held.room(seconds), held.room(0.99 * seconds)) == (count, count - 1)
    assert held.room(0.0) == 1


def test_searches_that_take_all_their_time_leave_some_to_measure(
    first: Finalist, taking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)

    def gather(rivals: Rivals) -> None:
        given.append(rivals._left())
        clock.now += given[0]
        given.append(rivals._again("late", first.start).found.explored)

    monkeypatch.setattr(contest_module, "RIVALS", 0.01)
    monkeypatch.setattr(contest_module, "time", clock)
    monkeypatch.setattr(Rivals, "gather", gather)
    asked = taking(lambda graph: 1.0)
    Contest(first).run(60.0)
    assert 0 < given[0] <= 0.6
    assert given[1] == 0
    assert asked


def test_further_searches_do_without_what_made_outputs_differ(first: Finalist, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever of those that write the kernel the best so far could have used."""
    begun, (culprit, other, *_) = list[set[str]](), sorted(first.rules)

    def noted(_contest: Contest, name: str, start: RewriteState, *_: float) -> Finalist:
        begun.append({rule.name for rule in start.rules})
        return Finalist(name, start, first.found)

    def search(contest: Contest) -> None:
        contest._screen.culprits = (culprit,)
        contest._shares = [0.0]  # and not the measured one, which may be the next
        contest._searched_without(other)
        contest._by_share(0.75)

    monkeypatch.setattr(Contest, "_again", noted)
    monkeypatch.setattr(Contest, "_go_on", search)
    Contest(first).run(60.0)
    assert begun == [first.rules - {culprit, other}, first.rules - {culprit}]


def test_no_search_begins_when_the_time_is_over(first: Finalist, taking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are costs fitted, which costs all that was measured anew."""
    monkeypatch.setattr(Evidence, "share_outside", None)
    asked = taking(lambda _: 1.0)
    assert Contest(first).run(0.0) is first
    assert not asked


@pytest.mark.parametrize(("room", "measured"), [(1, 1), (3, 2)])
def test_no_more_of_those_that_only_costs_are_against_are_measured_than_there_is_room_for(
    room: int, measured: int, first: Finalist, taking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(contest: Contest) -> None:
        contest._beaten = [replace(first.without([rule]), name=rule) for rule in sorted(first.rules)]

    monkeypatch.setattr(Contest, "_search_by_costs", search)
    monkeypatch.setattr(Contest, "_leave_out", lambda *_: None)
    monkeypatch.setattr(bouts.Bouts, "room", lambda *_: room)
    asked = taking(lambda _: 1.0)
    Contest(first).run(60.0)
    assert len(first.rules.intersection(asked[0])) == measured


def test_the_time_may_be_over_while_a_search_is_prepared(
    first: Finalist, taking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    taking(lambda _: 1.0)
    over = iter([False, False, True])
    monkeypatch.setattr(Contest, "_over", lambda _: next(over, True))
    monkeypatch.setattr(Contest, "_left", lambda *_: -0.001)
    assert Contest(first).run(60.0).found.state.hash == first.found.state.hash


def test_the_share_of_the_cache_is_that_which_explains_the_times(first: Finalist, taking: Any) -> None:
    model = first.start.cost_model
    assert isinstance(model, OnnxRuntimeCost) and model.depends_on_cache
    true = model.with_outside(0.3)
    taking(lambda graph: true.graph(graph).time_ms)
    found = Evidence(first.start.graph)
    assert found.start == {START: first.start.graph} and found.share_outside(model) is None
    found.measure({"first": first.graph, "other": layers(rows=64), START: first.start.graph}, model, 3, 0)
    assert found.start == {} and found.share_outside(model) == 0.3


def test_costs_between_in_and_out_of_the_cache_are_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(_: NodeTimes, turns: Sequence[Turn]) -> list[tuple[int, int]]:
        return [(2 * 10**9 if turn.key.startswith(COLD) else 10**9, 0) for turn in turns]

    monkeypatch.setattr(NodeTimes, "_measure", measured)
    monkeypatch.setattr("taso_gym.cost.placed.cache_bytes", lambda: 1)
    b = GraphBuilder({"": 20})
    b.output("y", b.add("Relu", b.input("x", TensorType("float", (1024, 1024)))))
    graph = b.build()
    model = OnnxRuntimeCost(cache=tmp_path / "c", start=graph)
    inside, half, outside = (model.with_outside(share).graph(graph).time_ps for share in (0.0, 0.5, 1.0))
    assert (half - inside, outside - half) == (5 * 10**8, 5 * 10**8)


def test_it_is_part_of_optimising_by_measured_costs(first: Finalist, taking: Any) -> None:
    taking(lambda graph: 3.0 - count(graph, "MatMul"))
    asked: list[str] = []
    given = {"rules": first.start.rules, "cost": first.start.cost_model}
    result = optimize(layers(), budget=20.0, on_contest=asked.append, **given)  # pyright: ignore[reportArgumentType]
    assert count(result.graph, "MatMul") == 2 and result.bouts
    assert result.search.explored > first.found.explored and result.search.seconds > 0
    assert any(text.startswith("measuring") for text in asked)
    assert not optimize(layers(), budget=5.0, finalists=False, **given).bouts  # pyright: ignore[reportArgumentType]


def test_a_budget_of_steps_leaves_none_for_a_contest(first: Finalist) -> None:
    given = {"rules": first.start.rules, "cost": first.start.cost_model}
    result = optimize(layers(), budget=Budget(seconds=60.0, steps=2), **given)  # pyright: ignore[reportArgumentType]
    assert result.search.explored == 2 + len(result.applied) and not result.bouts


def test_the_first_search_ends_where_it_is_idle_for_as_long_as_the_budget_says(
    first: Finalist, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Budget] = []

    def search(start: RewriteState, _search: str, budget: Budget, *_: Any, **__: Any) -> SearchResult:
        asked.append(budget)
        return SearchResult(start, (), 0, 0.0, exhausted=True, interrupted=True)

    monkeypatch.setattr(contested, "run", search)
    given = {"rules": first.start.rules, "cost": first.start.cost_model}
    for idle in (1.0, 60.0):
        optimize(layers(), budget=Budget(20.0, idle=idle), **given)  # pyright: ignore[reportArgumentType]
    assert [budget.idle for budget in asked] == [1.0, 2.0]


@pytest.mark.parametrize("has_contest", [True, False])
def test_measuring_the_start_is_part_of_the_budget(has_contest: bool, first: Finalist, monkeypatch: Any) -> None:
    """It takes 4 of 20 seconds: the first search gets half of what is left, or all where nothing comes after it."""
    now, graph_cost, asked = [0.0], OnnxRuntimeCost.graph, list[float]()

    def cost(model: OnnxRuntimeCost, graph: Graph) -> Cost:
        now[0] = 4.0
        return graph_cost(model, graph)

    def search(start: RewriteState, _search: str, budget: Budget, *_: Any, **__: Any) -> SearchResult:
        asked.append(budget.seconds)
        return SearchResult(start, (), 0, 0.0, exhausted=True, interrupted=True)

    monkeypatch.setattr(OnnxRuntimeCost, "graph", cost)
    for module in (sys.modules[optimize.__module__], contested):
        monkeypatch.setattr(module, "run", search)
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    model = first.start.cost_model
    assert model
    optimize(first.start.graph, rules=first.start.rules, cost=model, budget=20.0, finalists=has_contest)
    assert asked == [8.0 if has_contest else 16.0]
