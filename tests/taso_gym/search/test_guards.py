"""Softmaxes that write no denormal floats where those slow a model down."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from masked import TOKENS, WIDTH, masked_attention
from numpy.typing import NDArray
from onnx.parser import parse_model
from priced_costs import Priced

from taso_gym import optimize
from taso_gym.builder import GraphBuilder
from taso_gym.cost.measurement import THREAD_CPU, Measurement
from taso_gym.equivalence.walk import SiteError, WalkChecker
from taso_gym.errors import CostError, OptionError
from taso_gym.graph import Graph
from taso_gym.onnx_io import from_model, to_model
from taso_gym.onnx_io.reference import run_graph
from taso_gym.ops.floating import FLOAT64
from taso_gym.result import Result
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search import contested, guards, racing
from taso_gym.search.contest import Contest
from taso_gym.search.guards import GUARD, NAMED, guarded
from taso_gym.tensor import TensorType

pytest.importorskip("onnxruntime")

[RULE] = [rule.name for rule in GUARD]
PRICES = dict.fromkeys(("MatMul", "Add", "Softmax", "Max", "Sub", "ReduceMax", "Neg", "Transpose"), 1)
SLOW = {"MatMul": (28e9, 4e9)}
RULES = RuleSet(parse_rules("neg-twice [exact]: Neg(Neg(x)) => x"))


def softmax_of(values: NDArray[np.float64], axis: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Softmax as it is and guarded, computed in float64."""
    b = GraphBuilder({"": 20})
    b.output("y", b.add("Softmax", b.input("x", TensorType("float", values.shape)), axis=axis))
    state = RewriteState(b.build(), GUARD)
    graphs = state.graph, state.apply(state.matches[0][0]).graph
    [[x], [y]] = [run_graph(g, {g.info.inputs[0]: values}, g.outputs, FLOAT64) for g in graphs]
    return x, y


@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("spread", [1.0, 40.0, 90.0, 300.0, math.inf])
def test_weights_differ_by_less_than_can_be_told_from_what_a_row_is_in_all(axis: int, spread: float) -> None:
    values = np.random.default_rng(0).normal(size=(7, 9))
    values[::2, 1::2] -= spread
    as_it_is, found = softmax_of(values, axis)
    assert np.abs(found - as_it_is).max() <= 9 * math.exp(-50)
    assert (found.min() >= math.exp(-50) / 9) and np.allclose(found.sum(axis), 1.0, rtol=1e-15)
    if spread <= 40:
        assert np.array_equal(found, as_it_is)


def test_rows_that_are_masked_as_a_whole_are_none_of_its_business() -> None:
    as_it_is, found = softmax_of(np.array([[-math.inf] * 3, [-100.0] * 3]), 1)
    assert np.array_equal(np.isnan(as_it_is), np.isnan(found)) and np.allclose(found[1], 1 / 3)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Priced:
    """Costs by which values slow a model down."""
    monkeypatch.setattr(Priced, "slower_in_place", lambda *_: SLOW)
    return Priced(tmp_path / "c", PRICES)


@pytest.mark.parametrize("masked", [1, 3])
def test_only_softmaxes_that_write_denormals_are_guarded(masked: int, slow: Priced) -> None:
    start = RewriteState(masked_attention(masked=masked), RULES, slow)
    held = guarded(start)
    assert held and held.start.graph is start.graph and held.gains.keys() == {RULE}
    assert len(held.found.path) == masked
    assert guarded(RewriteState(held.graph, RULES, slow)) is None


def test_weights_that_are_a_result_stay(slow: Priced) -> None:
    """Their logarithms are compared, which differ."""
    held = guarded(RewriteState(masked_attention(masked=2, told=True), RULES, slow))
    assert held and len(held.found.path) == 1
    assert guarded(RewriteState(masked_attention(told=True), RULES, slow)) is None


def test_a_site_that_differs_stays_as_it_is(slow: Priced, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel may give something else where a rule says that it doesn't."""
    check, asked = WalkChecker.check, list[Match]()

    def checked(self: WalkChecker, state: RewriteState, match: Match, child: Graph) -> None:
        asked.append(match)
        if len(asked) == 2:
            raise SiteError(RULE, "an output differs")
        check(self, state, match, child)

    monkeypatch.setattr(WalkChecker, "check", checked)
    start = RewriteState(masked_attention(masked=3), RULES, slow)
    with pytest.warns(UserWarning, match=f"expected {RULE} to change nothing, found .* an output differs; it stays"):
        held = guarded(start)
    assert held and held.found.path == (asked[0], asked[2])


def test_what_is_not_slow_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "writing_denormals", None)
    assert guarded(RewriteState(masked_attention(), RULES, Priced(tmp_path / "c", PRICES))) is None


def test_softmaxes_of_other_types_stay(slow: Priced) -> None:
    """Float64 has smaller numbers, and float16 none as small."""
    assert guarded(RewriteState(masked_attention("double"), RULES, slow)) is None


def test_a_softmax_of_two_dimensions_has_none(slow: Priced, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below opset 13 it is over all axes from one on: an operator that isn't rewritten, and the model isn't run."""
    monkeypatch.setattr(guards, "writing_denormals", None)
    text = '<ir_version: 7, opset_import: ["" : 12]> g (float[2, 3] x) => (float[2, 3] y) {s = Softmax(x) y = Neg(s)}'
    monkeypatch.setattr(Priced, "opaque_time", lambda *_: (1, 1))
    assert guarded(RewriteState(from_model(parse_model(text)), RULES, slow)) is None


Optimised = Callable[..., Result]


@pytest.fixture
def optimised(slow: Priced, monkeypatch: pytest.MonkeyPatch) -> Optimised:
    """Optimise where a guarded model takes half the time, or twice."""

    def pretend(*, faster: bool, batch: int = 1, also: str = NAMED, **options: Any) -> Result:
        def measure(graphs: dict[str, Graph], *, rounds: int, **_: Any) -> Measurement:
            times = {n: np.full((1, rounds), 1.0 if (n in (NAMED, also)) == faster else 2.0) for n in graphs}
            return Measurement(times, 1, "cpu", THREAD_CPU)

        monkeypatch.setattr(racing, "measure", measure)
        monkeypatch.setattr(Contest, "_take_apart", lambda _: ())
        monkeypatch.setattr(Contest, "_doubtful", lambda _: ())
        return optimize(masked_attention(batch=batch), rules=RULES, cost=slow, budget=12.0, **options)

    return pretend


def test_searches_begin_with_what_is_faster(optimised: Optimised, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, started = list[Graph](), Priced.started
    monkeypatch.setattr(Priced, "started", lambda model, graph: begun.append(graph) or started(model, graph))
    result = optimised(faster=True)
    assert any(graph is result.start for graph in begun)  # costs are those of a search that begins there
    assert [a.rule for a in result.applied] == [RULE, "neg-twice"] and result.sites.computed == 2
    assert result.guards and result.start is not result.original and not result.is_loop
    assert result.rewriting == (result.original, result.graph) and result.rewriting[0] is result.original
    assert result.validate().ok and result.bouts[0].name == NAMED
    assert result.before.time_ms - result.after.time_ms == 2 - 3  # two operators fewer, and three more
    monkeypatch.setattr(racing, "race", None)  # the cache knows how it ended
    monkeypatch.setattr(guards, "expected_seconds", lambda *_: math.inf)
    assert optimised(faster=False).graph == result.graph


def test_a_loop_is_over_a_network_with_guards(
    slow: Priced, optimised: Optimised, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contested, "HOPELESS", math.inf)
    result = optimised(faster=True, batch=2, also=contested.LOOP)
    assert result.is_loop and [a.rule for a in result.applied] == [RULE, "neg-twice"]
    [x], [y] = (g.info.inputs for g in result.rewriting)
    assert result.rewriting[0].type_of(x) == result.rewriting[1].type_of(y) == TensorType("float", (1, TOKENS, WIDTH))
    assert result.before.time_ms == slow.graph(result.original).time_ms == 10 and result.validate().ok


def test_what_is_slower_stays(optimised: Optimised) -> None:
    result = optimised(faster=False)
    assert [a.rule for a in result.applied] == ["neg-twice"] and result.start is result.original and not result.guards


def test_what_was_slower_once_is_tried_again(optimised: Optimised) -> None:
    assert not optimised(faster=False).guards and not optimised(faster=False).guards
    assert optimised(faster=True).guards


def test_without_time_for_a_race_there_is_none(optimised: Optimised, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "expected_seconds", lambda *_: math.inf)
    assert not optimised(faster=True).guards


def test_the_race_has_time_to_be_decided(optimised: Optimised, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than others, as all that is found afterwards depends on it."""
    seconds, run_race = list[float](), racing.race

    def timed(*given: Any) -> Any:
        seconds.append(given[-1] - time.monotonic())
        return run_race(*given)

    monkeypatch.setattr(racing, "race", timed)
    assert optimised(faster=True).guards
    assert contested.LAST * 12.0 < seconds[0] <= guards.RACED * 12.0


@pytest.mark.parametrize("faster", [True, False])
def test_a_checkpoint_goes_on_as_it_began(
    faster: bool, optimised: Optimised, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a race would say by now."""
    begun = optimised(faster=faster, checkpoint=tmp_path / "search.json")
    (tmp_path / "c").unlink()
    monkeypatch.setattr(racing, "race", None)
    result = optimised(faster=not faster, checkpoint=tmp_path / "search.json")
    assert result.graph == begun.graph and bool(result.guards) == faster


def test_a_damaged_checkpoint_is_told_of(optimised: Optimised, tmp_path: Path) -> None:
    (tmp_path / "search.json").write_text("[]")
    with pytest.raises(OptionError, match="damaged"):
        optimised(faster=True, checkpoint=tmp_path / "search.json")


def test_where_every_bit_has_to_stay_denormals_stay(optimised: Optimised) -> None:
    assert not optimised(faster=True, numerics="exact").guards


def test_a_guard_that_fails_costs_a_warning(optimised: Optimised, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise CostError("expected room, found none")

    monkeypatch.setattr(contested, "guarded", fails)
    with pytest.warns(UserWarning, match="not tried without denormals: expected room"):
        assert not optimised(faster=True).guards


@pytest.mark.parametrize("where", ["race", "RewriteState"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), CostError("expected room, found none")])
def test_what_is_cut_short_begins_as_given(
    where: str, error: BaseException, optimised: Optimised, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the race and after it; and there is no checkpoint of what may begin elsewhere the next time."""
    module = racing if where == "race" else contested
    original, broken = getattr(module, where), [where]

    def breaks(*args: Any, **options: Any) -> Any:
        if broken:
            broken.pop()
            raise error
        return original(*args, **options)

    sampled: list[Graph] = []
    monkeypatch.setattr(module, where, breaks)
    monkeypatch.setattr(contested, "for_one_sample", sampled.append)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = optimised(faster=True, batch=2, checkpoint=tmp_path / "search.json")
    stopped = isinstance(error, KeyboardInterrupt)
    assert bool(sampled) != stopped
    assert not result.guards and result.start is result.original and result.search.interrupted == stopped
    assert stopped or [a.rule for a in result.applied] == ["neg-twice"]
    monkeypatch.undo()
    assert (tmp_path / "search.json").exists() != stopped


def test_what_computes_something_else_is_not_run(optimised: Optimised, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards.Baseline, "differs", lambda *_: True)
    monkeypatch.setattr(Contest, "_keep_equal", lambda _: None)
    assert not optimised(faster=True).guards


def test_the_file_that_is_written_has_the_guard(optimised: Optimised) -> None:
    ops = [node.op_type for node in to_model(optimised(faster=True).graph).graph.node]
    assert ops.count("ReduceMax") == 1 and ops.count("Softmax") == 2
