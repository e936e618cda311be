"""Kernels that share a session, where several threads would disturb each other's."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from taso_gym.cost import joined
from taso_gym.cost.beside import Fed, Serialised, declared
from taso_gym.cost.copies import identity
from taso_gym.cost.joined import kernel_events, times_out_of_cache
from taso_gym.cost.runtime import Runtime
from taso_gym.cost.sessions import Sessions
from taso_gym.errors import KernelError

pytest.importorskip("onnxruntime")

ROWS, WIDTH = 512, 1024


def addition(runtime: Runtime, opset: int = 20) -> Fed:
    """A node that adds a weight of 2 MiB, which is beside its model, to its input."""
    x = np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH)
    types = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name in "xy"]
    node = helper.make_node("Add", ["x", "w"], ["y"], name="sum")
    graph = helper.make_graph([node], "sum", types[:1], types[1:], [declared("w", x)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return Serialised(model.SerializeToString(), {"w": runtime.place_weight(x)}), {"x": runtime.place(x)}


def copy(runtime: Runtime) -> Fed:
    return identity(TensorProto.FLOAT, [WIDTH]), {"x": runtime.place(np.ones(WIDTH, np.float32))}


def test_each_kernel_runs_twice_in_a_row_with_weights_of_its_own(tmp_path: Path) -> None:
    """Then the second finds its inputs in the cache, its weights not; all else is as it is alone."""
    runtime = Runtime("cpu", 2)
    model, feeds = joined.joined(runtime, [addition(runtime), addition(runtime)])
    assert isinstance(model, Serialised)
    assert set(feeds) == {"0 x", "1 x"} and set(model.weights) == {"0 0 w", "0 1 w", "1 0 w", "1 1 w"}
    assert len({weight.data_ptr() for weight in model.weights.values()}) == 4
    session = runtime.open(model, optimise=False, profile=tmp_path / "profile")
    outputs = [value.numpy() for value in runtime.bind(session, feeds)()]
    assert len(outputs) == 4 and all((2 * feeds["0 x"].numpy() == output).all() for output in outputs)
    ran = [event["name"] for event in kernel_events(session)]
    assert sorted(ran) == ["0 0", "0 1", "1 0", "1 1"]
    assert ran[0][0] == ran[1][0] != ran[2][0] == ran[3][0]


def test_what_reads_much_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "LARGE", ROWS * WIDTH)
    runtime = Runtime("cpu", 2)
    model, _ = joined.joined(runtime, [copy(runtime), addition(runtime)])
    assert isinstance(model, Serialised) and isinstance(model.content, bytes)
    assert [node.name for node in ModelProto.FromString(model.content).graph.node] == ["0 0", "0 1", "1 0"]


def test_the_cache_is_emptied_for_all_before_each_run_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "ENOUGH_S", 0.0)
    runtime, done, bind = Runtime("cpu", 2), list[str](), Sessions.bind

    def binding(of: Runtime, *given: Any) -> Any:
        run = bind(of, *given)
        return lambda: done.append("run") or run()

    monkeypatch.setattr(Runtime, "bind", binding)
    monkeypatch.setattr(runtime, "_evict", lambda whole: done.append(f"evict {whole}"), raising=False)
    found = runtime.times([copy(runtime), addition(runtime), copy(runtime)], cold=True)
    assert done == ["run", *["evict False", "run"] * joined.FEWEST]
    assert 0 <= max(found[0], found[2]) < found[1] < 10**12  # a thousandth is copied of what is added


@pytest.mark.parametrize(
    ("events", "expected_us"),
    [
        ([[("0 0", 90), ("0 1", 5), ("1 0", 9)], [("0 0", 50), ("0 1", 30), ("1 0", 9)]], [29, 8]),
        ([[("1 0", 2), ("0 1", 5), ("0 0", 9)], [("1 0", 0), ("0 1", 7), ("0 0", 11)]], [10, 0]),
    ],
)
def test_the_later_run_of_a_kernel_counts_but_not_the_first_of_all(
    events: list[list[tuple[str, int]]], expected_us: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joined, "FEWEST", 1)
    monkeypatch.setattr(joined, "ENOUGH_S", 0.0)
    monkeypatch.setattr(joined, "LARGE", ROWS * WIDTH)
    ran = [{"name": name, "dur": us} for of_run in events for name, us in of_run]
    monkeypatch.setattr(joined, "kernel_events", lambda _: ran)
    runtime = Runtime("cpu", 2)
    found = times_out_of_cache(runtime, [copy(runtime), addition(runtime)], lambda: None)
    assert found == [us * 10**6 for us in expected_us]


def test_kernels_of_other_opsets_are_in_another_session(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, opened = Runtime("cpu", 2), list[int]()
    open_ = runtime.open

    def noted(model: Serialised, *args: Any, **options: Any) -> Any:
        assert isinstance(model.content, bytes)
        proto = ModelProto.FromString(model.content)
        opened.append(len(proto.graph.node) * 100 + proto.opset_import[0].version)
        return open_(model, *args, **options)

    monkeypatch.setattr(runtime, "open", noted)
    models = [addition(runtime), addition(runtime, 13), addition(runtime)]
    assert min(times_out_of_cache(runtime, models, lambda: None)) > 0
    assert opened == [420, 213]


def test_a_kernel_that_runs_as_something_else_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator without a kernel is replaced by its function's nodes."""
    monkeypatch.setattr(joined, "kernel_events", lambda _: [{"name": "0 0", "dur": 1}, {"name": "inlined", "dur": 1}])
    runtime = Runtime("cpu", 2)
    with pytest.raises(KernelError, match="expected kernels that run as they are, found 0 0, inlined"):
        times_out_of_cache(runtime, [copy(runtime)], lambda: None)


def test_only_kernels_of_a_profile_count(tmp_path: Path) -> None:
    kernel = {"cat": "Node", "name": "0 0_kernel_time", "dur": 3}
    others = [{"cat": "Session", "name": "model_run_kernel_time"}, {"cat": "Node", "name": "0 0_fence_before"}]
    (tmp_path / "profile").write_text(json.dumps([*others, kernel]))
    session = SimpleNamespace(end_profiling=lambda: str(tmp_path / "profile"))
    assert kernel_events(session) == [{**kernel, "name": "0 0"}]
