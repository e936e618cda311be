"""The search that measures only the first of a learned ranking."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from taso_gym import cost, models, onnx_io, optimize
from taso_gym.cli import app
from taso_gym.cost.measurement import THREAD_CPU, Measurement
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost_model import Cost
from taso_gym.errors import CostError, OptionError
from taso_gym.graph import Graph
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import Match, RewriteState, check
from taso_gym.search import Budget, run
from taso_gym.search.ranked import ORDERS, LatencyJudge


@pytest.fixture
def start() -> RewriteState:
    graph = models.build("BERT", layers=1, hidden=48, heads=4, sequence=16)
    return RewriteState(graph, RuleSet.load("default"), cost.load("roofline"))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("top", [1, 5])
def test_every_measurement_is_counted_and_no_more_are_made(
    start: RewriteState, monkeypatch: pytest.MonkeyPatch, order: str, top: int
) -> None:
    asked: list[Match] = []
    delta = RewriteState.delta

    def counting(state: RewriteState, match: Match) -> Cost:
        asked.append(match)
        return delta(state, match)

    monkeypatch.setattr(RewriteState, "delta", counting)
    found = run(start, "ranked", Budget(steps=30), order=order, top=top)
    assert found.explored == len(asked) <= 30
    assert found.exhausted or found.explored == 30
    assert found.state.cost.time_ps <= start.cost.time_ps


def test_by_the_true_order_the_first_measurement_is_the_steepest_way_down(start: RewriteState) -> None:
    changes = {match: start.delta(match).time_ps for found in start.matches for match in found}
    found = run(start, "ranked", Budget(steps=1), order="roofline")
    assert changes[found.path[0]] == min(changes.values()) < 0
    check(found.state)


def test_it_ends_after_so_many_measurements_in_vain(start: RewriteState) -> None:
    none = run(start, "ranked", Budget(steps=10_000), patience=10_000)
    few = run(none.state, "ranked", Budget(steps=10_000), patience=7)
    assert few.exhausted and few.path == () and few.explored == 7


def test_what_was_measured_in_vain_isn_t_measured_again(start: RewriteState, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Match, int]] = []
    delta = RewriteState.delta

    def noting(state: RewriteState, match: Match) -> Cost:
        found = delta(state, match)
        asked.append((match, found.time_ps))
        return found

    monkeypatch.setattr(RewriteState, "delta", noting)
    run(start, "ranked", order="random", seed=1)
    in_vain = [match for match, change in asked if change >= 0]
    assert len(set(in_vain)) == len(in_vain) > 10


@pytest.mark.parametrize(
    "options",
    [
        {"order": "best"},
        {"path": "energy"},
        {"top": 0},
        {"top": "2"},
        {"patience": 0},
        {"rounds": 1.5},
        {"threads": 0},
        {"optimism": -1.0},
        {"optimism": "1"},
    ],
)
def test_options_out_of_range_are_refused(start: RewriteState, options: dict) -> None:
    with pytest.raises(OptionError, match="expected"):
        run(start, "ranked", **options)


@pytest.mark.slow
def test_latency_end_to_end_is_measured_and_counted(tmp_path: Path) -> None:
    """Three real measurements: the start's latency is the first best, and no more graphs than allowed are timed."""
    pytest.importorskip("onnxruntime")
    graph = models.build("BERT", layers=1, hidden=48, heads=4, sequence=16)
    result = optimize(graph, "ranked:latency", budget=Budget(steps=2), rounds=1)
    assert result.search.explored == 2
    assert len(result.search.path) <= 2
    result.save(tmp_path / "fast.onnx")


def test_the_best_by_latency_is_kept_whatever_the_cost_model_says(
    start: RewriteState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge by which larger graphs are faster leads to one that the cost model calls slower."""
    monkeypatch.setattr(LatencyJudge, "start", lambda _self, state: 10**9 - 10**6 * len(state.graph))
    monkeypatch.setattr(
        LatencyJudge, "child", lambda _self, state, match, _ps: 10**9 - 10**6 * len(state.child_graph(match))
    )
    monkeypatch.setattr(LatencyJudge, "noise", 0.0)
    found = run(start, "ranked:latency", Budget(steps=200))
    assert len(found.state.graph) > len(start.graph) and found.state.cost.time_ps > start.cost.time_ps


def test_the_best_by_latency_is_the_best_after_an_interruption_too(
    start: RewriteState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every measurement is faster than the one before, so that each is a new best; then none is fast enough."""
    times = iter(range(10**9, 0, -(10**8)))
    monkeypatch.setattr(LatencyJudge, "start", lambda _self, _state: 2 * 10**9)
    monkeypatch.setattr(LatencyJudge, "child", lambda *_: next(times))
    first = run(start, "ranked:latency", Budget(steps=5), checkpoint=tmp_path / "c")
    assert len(first.path) == 5
    monkeypatch.setattr(LatencyJudge, "child", lambda *_: 15 * 10**8)
    assert run(start, "ranked:latency", Budget(steps=9), checkpoint=tmp_path / "c").path == first.path


def test_what_latency_gains_is_shown_and_no_idling(start: RewriteState, monkeypatch: pytest.MonkeyPatch) -> None:
    times, seen = iter(range(10**9, 0, -(10**8))), list[int]()
    monkeypatch.setattr(LatencyJudge, "start", lambda _self, _state: 2 * 10**9)
    monkeypatch.setattr(LatencyJudge, "child", lambda *_: next(times))
    budget = Budget(steps=5, idle=0.0)
    run(start, "ranked:latency", budget, order="random", on_progress=lambda found: seen.append(found.best_value))
    assert seen == [10**9 - i * 10**8 for i in range(5)]


def test_what_cannot_be_timed_does_not_pay(start: RewriteState, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second child is killed; the third takes half the time."""
    measured = list[int]()

    def killed(graphs: dict[str, Graph], **_: object) -> Measurement:
        measured.append(len(measured))
        if measured[-1] == 2:
            raise CostError("expected child to run, found that it was killed")
        times = {name: np.full((1, 9), 0.5 if name == "child" and measured[-1] == 3 else 1.0) for name in graphs}
        return Measurement(times, 1, "cpu", THREAD_CPU)

    monkeypatch.setattr("taso_gym.search.ranked.measure", killed)
    with pytest.warns(UserWarning, match="wasn't timed: expected child to run"):
        found = run(start, "ranked:latency", Budget(steps=3))
    assert len(found.path) == 1 and found.explored == 3


def test_latency_is_measured_by_the_same_yardstick_after_an_interruption(
    start: RewriteState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that is ten times as fast another day makes nothing faster: no child is faster than the start."""
    day_ms = [10.0]

    def measured(graphs: dict[str, Graph], **_: object) -> Measurement:
        times = {name: np.full((1, 9), day_ms[0]) for name in graphs}
        return Measurement(times, 1, "cpu", THREAD_CPU)

    monkeypatch.setattr("taso_gym.search.ranked.measure", measured)
    assert run(start, "ranked:latency", Budget(steps=3), checkpoint=tmp_path / "c").path == ()
    day_ms[0] = 1.0
    assert run(start, "ranked:latency", Budget(steps=6), checkpoint=tmp_path / "c").path == ()


def test_what_is_loaded_later_and_so_is_faster_is_no_gain(start: RewriteState, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an odd seed models are loaded the other way round."""

    def measured(graphs: dict[str, Graph], seed: int = 0, **_: object) -> Measurement:
        order = list(graphs)[:: -1 if seed % 2 else 1]
        times = {name: np.full((1, 9), 10.0 - 0.1 * order.index(name)) for name in graphs}
        return Measurement(times, 1, "cpu", THREAD_CPU)

    monkeypatch.setattr("taso_gym.search.ranked.measure", measured)
    judge = LatencyJudge(12)
    before, match = judge.start(start), next(row[0] for row in start.matches if row)
    changes = [judge.child(start, match, before) / before - 1 for _ in range(8)]
    assert np.mean(changes) == pytest.approx(0, abs=1e-3)


def test_latency_is_measured_with_the_threads_of_the_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    asked: list[dict[str, object]] = []

    def measure(_: object, **how: object) -> None:
        asked.append(how)
        raise CostError("enough")

    monkeypatch.setattr("taso_gym.search.ranked.measure", measure)
    for model in (OnnxRuntimeCost(threads=2, cache=tmp_path / "c"), cost.load("roofline")):
        with pytest.raises(CostError, match="enough"):
            run(RewriteState(models.build("SqueezeNet1.1"), RuleSet([]), model), "ranked:latency", threads=3)
    assert [how["threads"] for how in asked] == [2, 3] and asked[0]["provider"] == "cpu"


def test_latency_is_measured_with_the_threads_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    found: list[object] = []
    monkeypatch.setattr(LatencyJudge, "__init__", lambda _self, *arguments: found.extend(arguments[2:]))
    monkeypatch.setattr(LatencyJudge, "start", lambda _self, _state: 10**9)
    monkeypatch.setattr(LatencyJudge, "child", lambda *_: 10**9)
    onnx_io.save(models.build("SqueezeNet1.1"), tmp_path / "m.onnx")
    arguments = ["-o", f"{tmp_path}/out.onnx", "--search", "ranked:latency", "--steps", "1", "--no-measure"]
    assert CliRunner().invoke(app, ["optimize", f"{tmp_path}/m.onnx", *arguments, "--threads", "2"]).exit_code == 0
    assert found == [2]
