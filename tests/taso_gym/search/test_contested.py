"""A search for a batch at once and for one sample, whose results run against each other."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cost_graphs import weight
from priced_costs import Priced

from taso_gym import optimize
from taso_gym.batch import batch_size
from taso_gym.builder import GraphBuilder
from taso_gym.cost.measurement import THREAD_CPU, Measurement
from taso_gym.errors import CostError, ModelError, OptionError
from taso_gym.graph import Graph
from taso_gym.result import Result
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.search import Budget, SearchResult, contested, racing, run
from taso_gym.search.contest import Contest
from taso_gym.search.finalist import Finalist
from taso_gym.search.race import Race
from taso_gym.signature import Signature
from taso_gym.tensor import TensorType

pytest.importorskip("onnxruntime")

BATCH, WIDTH = 4, 64
RULES = """
relu-twice [exact]: Relu(Relu(x)) => Relu(x)
neg-twice [exact]: Neg(Neg(x)) => x
"""


def network() -> Graph:
    """A product, and two pairs of operators too many."""
    b = GraphBuilder({"": 20})
    value = b.add("MatMul", b.input("x", TensorType("float", (BATCH, WIDTH))), weight(b, "w", WIDTH, WIDTH))
    for op in ("Relu", "Relu", "Neg", "Neg"):
        value = b.add(op, value)
    b.output("y", value)
    return b.build()


def is_loop(graph: Graph) -> bool:
    """Whether something runs in a loop."""
    return any(node.sig.op.name == "Scan" for _, node in graph.operators())


def nothing(_: Contest) -> tuple[()]:
    """Take no part in a contest."""
    return ()


class OfRows(Priced):
    """Operators cost 10 ms, those of one row another price."""

    def __init__(self, cache: Path, of_one: float) -> None:
        super().__init__(cache, {})
        self._of_one, self._of_many = of_one, 10

    def time(self, sig: Signature, context: object, load: object) -> tuple[int, int]:
        """Return the price."""
        operand = sig.inputs[0]
        assert isinstance(operand, TensorType) and operand.shape
        return round((self._of_one if operand.shape[0] == 1 else self._of_many) * 10**9), 1


Optimised = Callable[..., Result]


@pytest.fixture
def optimised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Optimised:
    """Optimise the network where loops take half the time, or twice."""

    def pretend(
        *, loops_are_fast: bool = True, of_one: float = 1.0, hopeless: float = math.inf, **options: Any
    ) -> Result:
        def measure(graphs: dict[str, Graph], *, rounds: int, **_: Any) -> Measurement:
            times = {n: np.full((1, rounds), 1.0 if is_loop(g) == loops_are_fast else 2.0) for n, g in graphs.items()}
            return Measurement(times, 1, "cpu", THREAD_CPU)

        monkeypatch.setattr(contested, "HOPELESS", hopeless)
        monkeypatch.setattr(racing, "measure", measure)
        monkeypatch.setattr(Contest, "_take_apart", nothing)
        monkeypatch.setattr(Contest, "_doubtful", nothing)
        cost = OfRows(tmp_path / "c", of_one)
        return optimize(network(), rules=RuleSet(parse_rules(RULES)), cost=cost, budget=4.0, **options)

    return pretend


@pytest.mark.parametrize("cheap", [True, False])
@pytest.mark.parametrize("fast", [True, False])
def test_the_faster_of_batch_and_loop_is_the_result(fast: bool, cheap: bool, optimised: Optimised) -> None:
    """Whichever costs less."""
    result = optimised(loops_are_fast=fast, of_one=1.0 if cheap else 10.0)
    assert result.is_loop == is_loop(result.graph) == fast
    assert any(bout.name == contested.LOOP for bout in result.bouts)
    assert {a.rule for a in result.applied} == {"relu-twice", "neg-twice"}
    assert result.start.type_of(result.start.outputs[0]) == TensorType("float", (1 if fast else BATCH, WIDTH))
    assert result.validate().ok
    assert result.before.flops - result.after.flops == 3 * BATCH * WIDTH  # of the whole batch


def test_a_loop_that_was_not_run_is_not_the_result(optimised: Optimised, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it costs: a loop takes time by itself, which costs don't know."""

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(racing, "race", interrupted)
    result = optimised()
    assert result.search.interrupted and not result.is_loop


def test_where_measuring_takes_most_of_the_time_there_is_no_loop(
    optimised: Optimised, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contested, "COSTING", 0.0)
    assert not optimised().is_loop


def test_where_every_bit_has_to_stay_there_is_no_loop(optimised: Optimised) -> None:
    """A product of one row may add up in another order than one of several."""
    assert not optimised(numerics="exact").is_loop


@pytest.mark.parametrize("loops", [True, False])
def test_the_batch_is_searched_from_what_was_found_for_one_sample(
    loops: bool, optimised: Optimised, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where that takes the whole time; and where no loop may be the result, too."""
    searched, known = run, list[int]()

    def begun(start: RewriteState, search: str, budget: Budget, seed: int, **options: Any) -> SearchResult:
        if begins := options.get("known"):
            known.append(len(begins))
            budget = Budget(steps=len(begins))
        return searched(start, search, budget, seed, **options)

    monkeypatch.setattr(contested, "run", begun)
    monkeypatch.setattr(Contest, "_search_by_costs", nothing)
    monkeypatch.setattr(Contest, "_leave_out", lambda *_: None)
    if not loops:
        monkeypatch.setattr("taso_gym.search.loops.MOST_BYTES", 0)
    result = optimised(loops_are_fast=False, of_one=10.0)
    assert not result.is_loop and known == [2]
    assert {a.rule for a in result.applied} == {"relu-twice", "neg-twice"}


def test_a_checkpoint_of_another_search_is_refused_at_once(
    optimised: Optimised, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not after denormal floats were looked for and one sample was searched for."""
    path = tmp_path / "search.json"
    optimised(checkpoint=path, seed=1)
    monkeypatch.setattr(contested.ContestedSearch, "_guard", None)
    with pytest.raises(OptionError, match=r"search.json: expected seed 2, the checkpoint has 1"):
        optimised(checkpoint=path, seed=2)


def test_a_checkpoint_of_another_model_is_refused_before_a_search(
    optimised: Optimised, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "search.json"
    optimised(checkpoint=path)
    text = json.loads(path.read_text())
    text["identity"]["graph"] = "another"
    path.write_text(json.dumps(text))
    monkeypatch.setattr(contested, "run", None)
    with pytest.raises(OptionError, match=r"search.json: expected graph '.*', the checkpoint has 'another'"):
        optimised(checkpoint=path)


def test_an_interrupted_search_that_is_taken_up_has_time_for_what_is_known(
    optimised: Optimised, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the time that it had before, which counts as spent."""
    path, budgets = tmp_path / "search.json", list[Budget]()
    optimised(checkpoint=path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "seconds": 900.0}))

    def interrupted(start: RewriteState, _: str, budget: Budget, *__: Any, **___: Any) -> SearchResult:
        budgets.append(budget)
        return SearchResult(start, (), 1, 0.0, exhausted=False, interrupted=len(budgets) == 1)

    monkeypatch.setattr(contested, "run", interrupted)
    optimised(checkpoint=path)
    assert [budget.seconds > 900 for budget in budgets] == [False, True]


@pytest.mark.parametrize("checkpoint", [False, True])
def test_what_differs_for_one_sample_is_not_searched_for_in_the_batch(
    checkpoint: bool, optimised: Optimised, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is the batch compared to know that. But a search with a checkpoint is taken up with the same rules."""
    searched, asked, sets = run, list[int](), list[set[str]]()

    def differs(baseline: contested.Baseline, graph: Graph) -> bool:
        asked.append(batch_size(graph))
        return batch_size(graph) == 1 and sum(node.sig.op.name == "Neg" for _, node in graph.operators()) < 2

    def noted(start: RewriteState, *given: Any, **options: Any) -> SearchResult:
        sets.append({rule.name for rule in start.rules})
        return searched(start, *given, **options)

    monkeypatch.setattr(contested.Baseline, "differs", differs)
    monkeypatch.setattr(contested, "run", noted)
    monkeypatch.setattr(Contest, "_keep_equal", nothing)
    with pytest.warns(UserWarning, match="neg-twice left out"):
        result = optimised(checkpoint=tmp_path / "search.json" if checkpoint else None)
    both = {"relu-twice", "neg-twice"}
    assert sets == [both, both if checkpoint else {"relu-twice"}] and set(asked) == {1}
    assert {a.rule for a in result.applied} == {"relu-twice"} and result.is_loop


def test_a_network_that_mostly_reads_weights_is_no_loop(optimised: Optimised, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taso_gym.search.loops.MOST_BYTES", 4 * WIDTH * WIDTH - 1)
    assert not optimised().is_loop


def test_what_is_left_of_a_loop_without_a_rule_is_a_loop(optimised: Optimised) -> None:
    asked: list[Graph] = []

    def differs(graph: Graph) -> bool:
        asked.append(graph)
        return len(asked) == 1  # what was found, and nothing that is left of it

    result = optimised()
    for for_one in (False, True):
        asked.clear()
        rest = result.equal_part(differs, for_one=for_one)
        assert rest
        left, culprits = rest
        assert culprits and left.is_loop and left.validate().ok
        assert {is_loop(graph) for graph in asked} == {not for_one}


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("contested.RewriteState", CostError("a kernel failed")),
        ("loops.in_a_loop", ModelError("too large")),
        ("racing.race", CostError("it doesn't run")),
    ],
)
@pytest.mark.filterwarnings("ignore:sample by sample wasn't compared")
def test_where_a_loop_fails_the_batch_is_the_result(
    where: str, error: Exception, optimised: Optimised, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(f"taso_gym.search.{where}", failing)
    result = optimised()
    assert not result.is_loop and {a.rule for a in result.applied} == {"relu-twice", "neg-twice"}


@pytest.mark.parametrize("when", [1, 2])
def test_an_interrupted_search_ends_all(when: int, optimised: Optimised, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is that for one sample; what was found by then is the result, and nothing is measured."""
    asked: list[RewriteState] = []

    def interrupted(start: RewriteState, *_: Any, **__: Any) -> SearchResult:
        asked.append(start)
        return SearchResult(start, (), 1, 0.0, exhausted=False, interrupted=len(asked) == when)

    monkeypatch.setattr(contested, "run", interrupted)
    result = optimised()
    assert result.search.interrupted and not result.bouts and not result.is_loop and len(asked) == 2
    assert result.search.explored == 2


@pytest.mark.parametrize(("of_one", "is_run"), [(2.6, True), (2.9, False)])
def test_a_loop_that_is_hopeless_by_the_costs_is_not_run(of_one: float, is_run: bool, optimised: Optimised) -> None:
    """Of four samples the loop costs 4 % more, or 16 %."""
    result = optimised(of_one=of_one, hopeless=1.1)
    assert result.is_loop == is_run == any(bout.name == contested.LOOP for bout in result.bouts)


@pytest.mark.parametrize("fast", [True, False])
def test_the_faster_of_batch_and_loop_has_the_contest(
    fast: bool, optimised: Optimised, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the one that costs less; and where neither is surely faster it is the batch."""
    begun: list[Finalist] = []

    def noted(contest: Contest, _: float) -> Finalist:
        begun.append(contest.best)
        contest.exhausted = False
        return contest.best

    monkeypatch.setattr(Contest, "run", noted)
    assert optimised(loops_are_fast=fast, of_one=10.0 if fast else 1.0).is_loop == fast
    monkeypatch.setattr(racing, "race", lambda *_: Race({}, [], None, 1.0))
    assert not optimised(of_one=1.0).is_loop
    rows = [finalist.graph.type_of(finalist.graph.outputs[0]) for finalist in begun]
    assert rows == [TensorType("float", (size, WIDTH)) for size in (1 if fast else BATCH, BATCH)]


@pytest.mark.parametrize("fast", [True, False])
def test_what_is_known_of_one_sample_is_not_compared_again(
    fast: bool, optimised: Optimised, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared, baseline = list[int | None](), contested.Baseline

    def begun(graph: Graph) -> contested.Baseline:
        compared.append(batch_size(graph))
        return baseline(graph)

    monkeypatch.setattr(contested, "Baseline", begun)
    assert optimised(loops_are_fast=fast).is_loop == fast
    assert compared == ([1] if fast else [1, BATCH])


def test_where_what_a_contest_found_is_no_loop_what_was_found_before_is(
    optimised: Optimised, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rewrite may have made its weights too many."""

    def grown(contest: Contest, _: float) -> Finalist:
        monkeypatch.setattr("taso_gym.search.loops.MOST_BYTES", 2 * WIDTH * WIDTH - 1)
        return replace(contest.best, name="grown")

    monkeypatch.setattr(Contest, "run", grown)
    with pytest.warns(UserWarning, match="what was found sample by sample isn't the result: expected weights of at"):
        result = optimised()
    assert result.is_loop and result.validate().ok


def test_the_search_for_one_sample_ends_where_it_is_idle(optimised: Optimised, monkeypatch: pytest.MonkeyPatch) -> None:
    searched, idle = contested.run, list[float]()

    def noted(start: RewriteState, search: str, spend: Budget, *given: Any, **options: Any) -> SearchResult:
        idle.append(spend.idle)
        return searched(start, search, spend, *given, **options)

    monkeypatch.setattr(contested, "run", noted)
    optimised()
    assert idle == [contested.IDLE * 4.0] * 2


@pytest.mark.parametrize("loops", [True, False])
def test_a_first_search_that_was_cut_short_is_told_of(
    loops: bool, optimised: Optimised, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of what has the contest: for one sample where the result is a loop, else of the batch."""
    searched = run

    def cut(start: RewriteState, *given: Any, **options: Any) -> SearchResult:
        return replace(searched(start, *given, **options), cut_short=(batch_size(start.graph) == 1) == loops)

    monkeypatch.setattr(contested, "run", cut)
    assert optimised(loops_are_fast=loops).search.cut_short and not optimised(loops_are_fast=not loops).search.cut_short


@pytest.mark.parametrize("loops", [True, False])
def test_what_was_found_for_one_sample_is_done_for_the_batch_where_it_was_interrupted(
    loops: bool, optimised: Optimised, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = run

    def interrupted(start: RewriteState, *given: Any, **options: Any) -> SearchResult:
        monkeypatch.setattr(contested, "run", searched)
        return replace(searched(start, *given, **options), interrupted=True)

    monkeypatch.setattr(contested, "run", interrupted)
    if not loops:
        monkeypatch.setattr("taso_gym.search.loops.MOST_BYTES", 0)
    result = optimised()
    assert result.search.interrupted and not result.is_loop
    assert {a.rule for a in result.applied} == {"relu-twice", "neg-twice"}


@pytest.mark.parametrize(
    ("race_s", "loops", "part"),
    [
        (0.1, True, contested.FIRST),
        (0.1, False, contested.FIRST),
        (1.5, True, 1 - contested.LAST),
        (1.5, False, contested.FIRST),
        (math.inf, True, 1 - contested.LAST),
        (math.inf, False, 1.0),
    ],
)
def test_where_there_is_no_room_for_a_race_the_first_search_has_its_time(
    race_s: float, loops: bool, part: float, optimised: Optimised, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for what is kept for a race of loop and batch, which leaves less room for others."""
    searched, given = run, list[float]()

    def noted(start: RewriteState, search: str, spend: Budget, *others: Any, **options: Any) -> SearchResult:
        given.append(spend.seconds)
        return searched(start, search, spend, *others, **options)

    monkeypatch.setattr(contested, "run", noted)
    monkeypatch.setattr(contested, "expected_seconds", lambda *_: race_s)
    monkeypatch.setattr(Contest, "_search_by_costs", nothing)
    monkeypatch.setattr(Contest, "_leave_out", lambda *_: None)
    if not loops:
        monkeypatch.setattr("taso_gym.search.loops.MOST_BYTES", 0)
    optimised()
    left = 4.0 * part
    assert left - 1.0 < given[1] <= left


def test_what_was_found_for_one_sample_is_kept_where_it_was_interrupted(
    optimised: Optimised, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = contested.run

    def interrupted(start: RewriteState, *given: Any, **options: Any) -> SearchResult:
        assert start.graph.type_of(start.graph.info.inputs[0]) == TensorType("float", (1, WIDTH))
        monkeypatch.setattr(contested, "run", lambda start, *_, **__: SearchResult(start, (), 0, 0.0, False, True))
        return replace(searched(start, *given, **options), interrupted=True)

    monkeypatch.setattr(contested, "run", interrupted)
    result = optimised()
    assert result.search.interrupted and result.is_loop and result.applied
