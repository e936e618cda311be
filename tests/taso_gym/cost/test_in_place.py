"""What the kernels of a model take within it, and what that says of the cache."""

from __future__ import annotations

import json
import pickle
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from cost_graphs import mlp
from model_texts import parsed

from taso_gym.builder import GraphBuilder
from taso_gym.cost import in_place, load
from taso_gym.cost.dims import Dims
from taso_gym.cost.in_place import SHARES, USUAL, kernel_times, share_outside, slower_in_place
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.runtime import Runtime
from taso_gym.cost.small_model import draw_inputs
from taso_gym.errors import CostError, KernelError, OutOfMemoryError
from taso_gym.graph import Graph
from taso_gym.onnx_io import from_model
from taso_gym.symbolic import symbol
from taso_gym.tensor import TensorType

pytest.importorskip("onnxruntime")

SUM, PRODUCT = "Add-14[](float[4, 8], float[8])", "com.microsoft.FusedMatMul[alpha=2.0](float[4, 8], const float[8, 8])"
"""A kernel without weights, and one that reads more of them than of anything else."""
LONG, SMALL = "Relu-14[](float[64, 64])", "Relu-14[](float[8])"


def softmaxes(rows: object = 64) -> Graph:
    """Three operators of two kinds without weights."""
    b = GraphBuilder({"": 20})
    value = b.input("x", TensorType("float", (rows, 32)))
    for op in ("Softmax", "Exp", "Softmax"):
        value = b.add(op, value)
    b.output("y", value)
    return b.build()


def share(in_situ: dict[str, tuple[int, float]], **executed: int) -> float:
    """Return the share of kernels that take 100 ps in the cache and 200 out of it; small ones from a half on."""
    names = {"sum": SUM, "product": PRODUCT, "long": LONG, "small": SMALL}
    keys = {names[name]: count for name, count in executed.items()}

    def time_of(key: str, outside: float) -> int:
        return round(100 * (1 + (max(2 * outside - 1, 0.0) if key == SMALL else outside)))

    return share_outside(keys, time_of, in_situ)


@pytest.mark.parametrize(("seconds", "runs"), [(0.0, 2), (2.0, 21)])
def test_kernels_are_timed_within_the_model(seconds: float, runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One run counts of a model that takes as long as there is time for, and one more does not."""
    monkeypatch.setattr(in_place, "SECONDS", seconds)
    bind, counted = Runtime.bind, list[int]()

    def binding(runtime: Runtime, *given: Any) -> Callable[[], list[Any]]:
        run = bind(runtime, *given)
        return lambda: counted.append(1) or run()

    runtime = Runtime("cpu", 1)
    monkeypatch.setattr(Runtime, "bind", binding)
    graph, began = softmaxes(), time.perf_counter_ns()
    found = kernel_times(graph, draw_inputs(graph, Dims()), runtime)
    taken_ps = (time.perf_counter_ns() - began) * 1000
    assert {name: count for name, (count, _) in found.items()} == {"Softmax [[64, 32]]": 2, "Exp [[64, 32]]": 1}
    times = [time_ps for _, time_ps in found.values()]
    assert min(times) >= 0 and sum(times) < taken_ps / runs and len(counted) == runs


def test_the_first_runs_do_not_count_and_of_the_others_the_quartile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_place, "WARM", 1)

    def event(node: str, dur: int) -> dict[str, Any]:
        said = {"op_name": "Add", "node_index": node, "input_type_shape": [{"float": [4, 8]}, {"float": [8]}]}
        return {"name": f"n{node}", "dur": dur, "args": said}

    events = [event("1", dur) for dur in (99, 9, 3, 5, 7)] + [event("2", 11) for _ in range(5)]
    events += [event("3", 50)]  # of a branch that wasn't taken each time
    assert in_place._by_kind(events, 5) == {"Add [[4, 8], [8]]": (2, (5 - 1 + 11 - 1) * 1e6)}


@pytest.mark.parametrize(
    ("time_ps", "expected"), [(100.0, 0.0), (125.0, 0.25), (200.0, 1.0), (90.0, 0.0), (250.0, 1.0)]
)
def test_the_share_is_where_kernels_are_between_both(
    time_ps: float, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_place, "PRIOR", 0.0)
    assert share({"Add [[4, 8], [8]]": (1, time_ps)}, sum=1) == pytest.approx(expected)
    mixed = {"Add [[4, 8], [8]]": (3, 3 * time_ps), "FusedMatMul [[4, 8], [8, 8]]": (1, 900.0)}
    assert share(mixed, sum=3, product=1) == pytest.approx(expected)  # weights are out of the cache anyway


@pytest.mark.parametrize(("time_ps", "expected"), [(110.0, 0.55), (150.0, 0.75), (200.0, 1.0)])
def test_a_share_is_the_one_by_which_costs_are_what_was_found(
    time_ps: float, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_place, "PRIOR", 0.0)
    assert share({"Relu [[8]]": (1, time_ps)}, small=1) == expected
    both = {"Relu [[8]]": (3, 3 * time_ps), "Add [[4, 8], [8]]": (1, 100.0 * (1 + expected))}
    assert share(both, small=3, sum=1) == expected


def test_kernels_that_are_predicted_otherwise_say_nothing() -> None:
    assert share({"Add [[4, 8], [8]]": (2, 400.0)}, sum=1) == USUAL
    assert share({}, sum=1, long=1) == share({}) == USUAL
    assert share({"Add [[4, 8], [8]]": (1, 200.0), "Relu [[64, 64]]": (5, 9.0)}, sum=1, long=1) > USUAL


def test_what_has_no_part_in_the_time_says_little() -> None:
    found = {"Add [[4, 8], [8]]": (1, 200.0)}
    assert USUAL < share(found, sum=1, product=1000) < share(found, sum=1, product=10) < 1.0


def test_a_model_knows_the_share_of_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taso_gym.cost.placed.cache_bytes", lambda: 1)
    asked = list[Counter[str]]()

    def known(executed: Counter[str], *_: object) -> float:
        asked.append(executed)
        return 0.8

    monkeypatch.setattr("taso_gym.cost.placed.share_outside", known)
    graph, said = mlp(), list[str]()
    model = OnnxRuntimeCost(cache=tmp_path / "c", start=graph, progress=said.append)
    assert model.outside == model.outside == 0.8 and "a whole graph" in said
    assert len(asked) == 1 and asked[0].total() > 0
    assert pickle.loads(pickle.dumps(model)).outside == model.in_turns([graph], 0.0).outside == 0.8  # noqa: S301
    assert model.with_outside(0.3).outside == 0.3 and model.outside == 0.8
    said.clear()
    assert OnnxRuntimeCost(cache=tmp_path / "c", start=graph, progress=said.append).outside == 0.8 and not said


def test_operators_that_their_values_make_slow_are_found() -> None:
    """More than twice as slow, by a part of the whole; not those that aren't executed as often as predicted."""
    executed = {SUM: 2, PRODUCT: 3, LONG: 1, SMALL: 1, "Exp-13[](float[8])": 1}
    there = {
        "Add [[4, 8], [8]]": (2, 399.0),
        "FusedMatMul [[4, 8], [8, 8]]": (3, 1800.0),
        "Relu [[64, 64]]": (2, 9000.0),
        "Relu [[8]]": (1, 1500.0),
        "Exp [[8]]": (1, 590.0),
    }

    def time_of(_: str, outside: float) -> int:
        return round(100 * (1 + outside))

    assert slower_in_place(executed, time_of, there) == {"FusedMatMul": (1800.0, 600.0), "Relu": (1500.0, 200.0)}
    assert not slower_in_place(executed, time_of, {})


def test_what_is_slower_in_a_graph_is_known_of_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, slow = softmaxes(), {"Softmax [[64, 32]]": (2, 10.0**12), "Exp [[64, 32]]": (1, 1.0)}
    monkeypatch.setattr("taso_gym.cost.placed.kernel_times", lambda *_: slow)
    assert not OnnxRuntimeCost(cache=tmp_path / "c", start=graph).slower_in_place(graph)
    monkeypatch.setattr("taso_gym.cost.placed.cache_bytes", lambda: 1)
    found = OnnxRuntimeCost(cache=tmp_path / "c", start=graph).slower_in_place(graph)
    assert found.keys() == {"Softmax"} and found["Softmax"][0] == 10**12 > 100 * found["Softmax"][1]


def test_a_copy_of_a_model_that_was_not_asked_yet_knows_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taso_gym.cost.placed.cache_bytes", lambda: 1)
    monkeypatch.setattr("taso_gym.cost.placed.share_outside", lambda *_: 0.25)
    assert pickle.loads(pickle.dumps(OnnxRuntimeCost(cache=tmp_path / "c", start=mlp()))).outside == 0.25  # noqa: S301


def test_a_model_that_is_given_learns_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taso_gym.cost.placed.cache_bytes", lambda: 1)
    monkeypatch.setattr("taso_gym.cost.placed.share_outside", lambda *_: 0.25)
    given = OnnxRuntimeCost(cache=tmp_path / "c", threads=2)
    assert given.outside == USUAL and not given.depends_on_cache
    found = load(given, start=mlp())
    assert isinstance(found, OnnxRuntimeCost) and found.depends_on_cache and found.outside == 0.25
    assert found.key == given.key and found.options == given.options
    fixed = load(OnnxRuntimeCost(cache=tmp_path / "c", outside=0.5), start=mlp())
    assert isinstance(fixed, OnnxRuntimeCost) and fixed.outside == 0.5


def test_a_model_of_another_start_learns_from_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shares = iter([0.25, 0.75])
    monkeypatch.setattr("taso_gym.cost.placed.cache_bytes", lambda: 1)
    monkeypatch.setattr("taso_gym.cost.placed.share_outside", lambda *_: next(shares))
    first = OnnxRuntimeCost(cache=tmp_path / "c", start=mlp())
    second = load(first, start=mlp(8))
    assert isinstance(second, OnnxRuntimeCost) and (first.outside, second.outside) == (0.25, 0.75)


def test_a_model_can_be_fitted_to_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shares = iter([0.25, 0.75])
    monkeypatch.setattr("taso_gym.cost.placed.share_outside", lambda *_: next(shares))
    held = OnnxRuntimeCost(cache=tmp_path / "c", start=mlp())
    assert held.fitted_to(mlp(8)) is held and not held.depends_on_cache
    monkeypatch.setattr("taso_gym.cost.placed.cache_bytes", lambda: 1)
    model = OnnxRuntimeCost(cache=tmp_path / "c", start=mlp())
    assert model.outside == 0.25 and model.fitted_to(mlp(8)).outside == 0.75 and model.outside == 0.25
    given = OnnxRuntimeCost(cache=tmp_path / "c", start=mlp(), outside=0.5)
    assert given.depends_on_cache and given.fitted_to(mlp(8)) is given


def test_the_share_is_of_the_sizes_that_are_costed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taso_gym.cost.placed.cache_bytes", lambda: 1)
    shapes = list[str]()

    def known(*given: Any) -> float:
        shapes.extend(given[-1])
        return USUAL

    monkeypatch.setattr("taso_gym.cost.placed.share_outside", known)
    graph = softmaxes(symbol("batch"))
    for batch in (2, 3):
        assert OnnxRuntimeCost(dims={"batch": batch}, cache=tmp_path / "c", start=graph).outside == USUAL
    assert {"Exp [[2, 32]]", "Exp [[3, 32]]"} <= set(shapes)


def test_a_start_that_does_not_run_or_fits_into_the_cache_has_the_usual_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KernelError("expected a model that runs, found none")

    monkeypatch.setattr("taso_gym.cost.placed.kernel_times", fail)
    assert OnnxRuntimeCost(cache=tmp_path / "c", start=mlp()).outside == USUAL
    monkeypatch.setattr("taso_gym.cost.placed.cache_bytes", lambda: 1)
    assert OnnxRuntimeCost(cache=tmp_path / "d", start=mlp()).outside == USUAL


def test_inputs_that_cannot_be_drawn_are_named() -> None:
    text = "g (seq(float[2]) xs, float[2] x) => (float[2] z) { y = SequenceAt(xs, i)\n z = Add(y, x) }"
    graph = from_model(parsed(text, i=np.int64(0)))
    with pytest.raises(KernelError, match="expected inputs that are tensors of a known rank, found xs"):
        draw_inputs(graph, Dims())


def test_a_start_whose_inputs_cannot_be_drawn_has_the_usual_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taso_gym.cost.placed.cache_bytes", lambda: 1)
    text = "g (seq(float[2]) xs, float[2] x) => (float[2] z) { y = SequenceAt(xs, i)\n z = Add(y, x) }"
    start = from_model(parsed(text, i=np.int64(0)))
    model = OnnxRuntimeCost(cache=tmp_path / "cache", start=start)
    assert model.depends_on_cache and model.outside == USUAL


@pytest.fixture(params=["taso_gym.atomic._move", "taso_gym.cost.sessions.json.loads"])
def full_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full when a model is written, or what onnxruntime says of its run."""
    is_model = request.param.endswith("_move")
    error = OSError(28, "No space left") if is_model else json.JSONDecodeError("No space left", "", 0)
    monkeypatch.setattr(request.param, Mock(side_effect=error))


@pytest.mark.usefixtures("full_disk")
def test_a_disk_that_is_full_is_one_line() -> None:
    graph = mlp()
    with pytest.raises(CostError, match=r"expected room for a model in .*, found .*No space left"):
        kernel_times(graph, draw_inputs(graph, Dims()), Runtime("cpu", 1))


def test_a_start_that_a_full_disk_does_not_take_has_the_usual_share_for_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taso_gym.cost.placed.cache_bytes", lambda: 1)
    with monkeypatch.context() as patched:
        patched.setattr("taso_gym.atomic._move", Mock(side_effect=OSError(28, "No space left")))
        assert OnnxRuntimeCost(cache=tmp_path / "cache", start=mlp()).outside == USUAL
    runs: list[str] = []
    assert OnnxRuntimeCost(cache=tmp_path / "cache", start=mlp(), progress=runs.append).outside in SHARES
    assert "a whole graph" in runs


def test_a_graph_that_memory_is_too_short_for_is_not_run() -> None:
    graph = from_model(parsed("g (int64[batch, 4] x) => (y) { y = Abs(x) }"))
    with pytest.raises(OutOfMemoryError, match=r"expected \d+ bytes of memory to run the graph, found \d+$"):
        draw_inputs(graph, Dims({"batch": 10**17}))
