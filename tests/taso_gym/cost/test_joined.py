"""Kernels that share a session, where several threads would disturb each other's."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import EncodeError
from onnx import ModelProto, TensorProto, helper, numpy_helper

from taso_gym.cost import joined
from taso_gym.cost.beside import Fed, Serialised, declared, parsed
from taso_gym.cost.copies import identity
from taso_gym.cost.joined import times_out_of_cache
from taso_gym.cost.runtime import Runtime
from taso_gym.cost.sessions import Sessions, kernel_events
from taso_gym.errors import CostError, KernelError

pytest.importorskip("onnxruntime")

ROWS, WIDTH = 512, 1024


def addition(runtime: Runtime, opset: int = 20, factor: float = 1.0) -> Fed:
    """A node that adds a weight of 2 MiB, which is beside its model, to its input."""
    x = np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH)
    types = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name in "xy"]
    node = helper.make_node("Add", ["x", "w"], ["y"], name="sum")
    graph = helper.make_graph([node], "sum", types[:1], types[1:], [declared("w", x)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    weights = {"w": runtime.place_weight(factor * x)}
    return Serialised(model.SerializeToString(), weights), {"x": runtime.place(10 * factor * x)}


def copy(runtime: Runtime) -> Fed:
    return identity(TensorProto.FLOAT, [WIDTH]), {"x": runtime.place(np.ones(WIDTH, np.float32))}


def joint_of(runtime: Runtime, *models: Fed) -> Fed:
    return joined.joined(runtime, [(*parsed(model), feeds) for model, feeds in models])


def test_each_kernel_runs_twice_in_a_row_with_weights_of_its_own(tmp_path: Path) -> None:
    """Then the second finds its inputs in the cache, its weights not; all else is as it is alone."""
    runtime = Runtime("cpu", 2)
    first, second = addition(runtime), addition(runtime, factor=-2.0)
    model, feeds = joint_of(runtime, first, second, first)  # which has the same weight
    assert isinstance(model, Serialised)
    assert len(model.weights) == len({weight.numpy().tobytes() for weight in model.weights.values()}) == 6
    session = runtime.open(model, optimise=False, profile=tmp_path / "profile")
    values = dict(zip((o.name for o in session.get_outputs()), runtime.bind(session, feeds)(), strict=True))
    for place, (_, given) in enumerate((first, second, first)):
        for name in (f"{place} 0 ", f"{place} 1 "):
            expected = given["x"].numpy() + model.weights[f"{name}w"].numpy()
            assert (values[f"{name}y"].numpy() == expected).all()
    ran = [event["name"].rpartition(" ")[0] for event in kernel_events(session)]
    assert sorted(ran) == sorted(["0", "1", "2", "nothing"] * 2) and ran[::2] == ran[1::2]


def test_no_two_weights_are_the_same() -> None:
    """Packed ones would be kept once; exponents, axes and whole numbers have to stay as they are."""
    runtime = Runtime("cpu", 2)
    weight, few = np.arange(64, dtype=np.float32).reshape(8, 8), np.arange(8, dtype=np.float32)
    whole = np.arange(16).reshape(2, 8)
    named = {"w": weight, "few": few, "whole": whole}
    weights = [numpy_helper.from_array(value, name) for name, value in named.items()]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8]) for name in "xy")
    node = helper.make_node("Anything", ["x", *named], ["y"])
    graph = helper.make_graph([node], "anything", [x], [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10).SerializeToString()
    fed = model, {"x": runtime.place(np.ones((1, 8), np.float32))}
    joint, _ = joint_of(runtime, fed, fed)
    assert isinstance(joint, Serialised) and isinstance(joint.content, bytes)
    proto = ModelProto.FromString(joint.content)
    found = {w.name: numpy_helper.to_array(w) for w in proto.graph.initializer}
    for i, place in enumerate(("0 0", "0 1", "1 0", "1 1")):
        assert (found[f"{place} w"].reshape(-1) == np.roll(np.arange(64), i)).all()
        assert (found[f"{place} few"] == few).all() and (found[f"{place} whole"] == whole).all()


def test_what_reads_much_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether its constants are within the model or beside it."""
    monkeypatch.setattr(joined, "LARGE", ROWS * WIDTH)
    runtime = Runtime("cpu", 2)
    beside, feeds = addition(runtime)
    assert isinstance(beside, Serialised) and isinstance(beside.content, bytes)
    proto = ModelProto.FromString(beside.content)
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(beside.weights["w"].numpy(), "w"))
    few = {"x": runtime.place(np.ones(WIDTH, np.float32))}
    model, _ = joint_of(runtime, copy(runtime), (beside, feeds), (proto.SerializeToString(), few))
    assert isinstance(model, Serialised) and isinstance(model.content, bytes)
    names = [node.name for node in ModelProto.FromString(model.content).graph.node]
    assert names == ["0 0", "0 1", "1 0", "2 0", "nothing 0", "nothing 1"]


@pytest.mark.parametrize(("run_s", "runs"), [(0.0, 16), (0.02, 13), (0.1, 4), (0.3, 4), (0.4, 3), (0.6, 2), (5.0, 2)])
def test_the_cache_is_emptied_for_all_before_each_run_that_counts(
    run_s: float, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime, done, bind, now = Runtime("cpu", 2), list[str](), Sessions.bind, [0.0]

    def binding(of: Runtime, *given: Any) -> Any:
        run = bind(of, *given)

        def timed() -> Any:
            now[0] += run_s
            done.append("run")
            return run()

        return timed

    monkeypatch.setattr(Runtime, "bind", binding)
    monkeypatch.setattr(joined, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(runtime, "_overhead", lambda cold: (99, 7))
    monkeypatch.setattr(runtime, "_evict", lambda whole: done.append(f"evict {whole}"), raising=False)
    found = runtime.times([copy(runtime), addition(runtime), copy(runtime)], cold=True)
    assert done == ["run", *["evict False", "run"] * runs]
    assert max(found[0], found[2]) < found[1] < 10**12  # a thousandth is copied of what is added
    assert all(time_ps % 10**6 == 7 for time_ps in found)  # what running a node takes is a part of each


@pytest.mark.parametrize(
    ("events", "expected_us"),
    [
        ([[("0 0", 90), ("0 1", 5), ("1 0", 9)], [("0 0", 50), ("0 1", 30), ("1 0", 9)]], [28, 7]),
        ([[("1 0", 2), ("0 1", 5), ("0 0", 9)], [("1 0", 0), ("0 1", 7), ("0 0", 11)]], [9, 0]),
        ([[("1 0", 2), ("0 0", 5), ("within a loop", 1)], [("1 0", 5), ("0 0", 6), ("within a loop", 1)]], [4, 3]),
    ],
)
def test_the_later_run_of_a_kernel_counts_but_not_the_first_of_all(
    events: list[list[tuple[str, int]]], expected_us: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Less what the profile says of a node that does nothing."""
    monkeypatch.setattr(joined, "RUNS", {1: 0.0})
    nothing = [[("nothing 1", 9), ("nothing 0", 1)], [("nothing 1", 7), ("nothing 0", 2)]]
    ran = [{"name": name, "dur": us} for both in zip(nothing, events, strict=True) for e in both for name, us in e]
    monkeypatch.setattr(joined, "kernel_events", lambda _: ran)
    runtime = Runtime("cpu", 2)
    found = times_out_of_cache(runtime, [copy(runtime), addition(runtime)], lambda: None)
    assert found == [us * 10**6 for us in expected_us]


def test_kernels_of_other_opsets_are_in_another_session(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, opened = Runtime("cpu", 2), list[tuple[int, int]]()
    open_ = runtime.open

    def noted(model: Serialised, *args: Any, **options: Any) -> Any:
        assert isinstance(model.content, bytes)
        proto = ModelProto.FromString(model.content)
        opened.append((proto.opset_import[0].version, len(proto.graph.node) - 2))
        return open_(model, *args, **options)

    monkeypatch.setattr(runtime, "open", noted)
    models = [addition(runtime), addition(runtime, 13), addition(runtime)]
    assert min(times_out_of_cache(runtime, models, lambda: None)) > 0
    assert opened == [(20, 4), (13, 2)]


def test_a_kernel_that_runs_as_something_else_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator without a kernel is replaced by its function's nodes."""
    ran = [{"name": name, "dur": 1} for name in ["nothing 0", "0 0_inlined", "Mul_12"] * 17]
    monkeypatch.setattr(joined, "kernel_events", lambda _: ran)
    runtime = Runtime("cpu", 2)
    with pytest.raises(KernelError, match="expected kernels that run as they are, found others in place of 1"):
        times_out_of_cache(runtime, [copy(runtime)], lambda: None)


def test_constants_that_do_not_fit_into_a_model_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> bytes:
        raise EncodeError("Failed to serialize proto")

    runtime, whole = Runtime("cpu", 2), ModelProto()
    models = [copy(runtime)]
    monkeypatch.setattr(joined, "_empty", lambda _: SimpleNamespace(graph=whole.graph, SerializeToString=refuse))
    with pytest.raises(KernelError, match="expected kernels whose constants fit into a model, found Failed"):
        joint_of(runtime, *models)


def test_a_disk_that_is_full_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> None:
        raise json.JSONDecodeError("No space left", "", 0)

    monkeypatch.setattr("taso_gym.cost.sessions.json.loads", full)
    runtime = Runtime("cpu", 2)
    with pytest.raises(CostError, match=r"expected room for a model in .*, found .*No space left"):
        times_out_of_cache(runtime, [copy(runtime)], lambda: None)
