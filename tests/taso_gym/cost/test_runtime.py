"""Times of runs: what is measured where several threads, and other processes, share the machine."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cost_graphs import product
from onnx import ModelProto, TensorProto, helper

from taso_gym.cost.beside import Serialised, declared
from taso_gym.cost.copies import identity
from taso_gym.cost.runtime import SLOW_NS, WINDOWS, Runtime
from taso_gym.errors import OutOfMemoryError

pytest.importorskip("onnxruntime")


@pytest.mark.parametrize(
    ("threads", "windows_us", "expected_us", "used"),
    [
        (2, [50, 10, 10.5], 10, 3),  # the first was disturbed
        (2, [10, 10.9], 10, 2),
        (2, [80, 50, 30, 10], 10, WINDOWS),  # no two agree
        (2, [40_000], 40_000, 1),  # long
        (1, [50, 10], 50, 1),  # thread-CPU time isn't disturbed
    ],
)
def test_wall_time_is_measured_until_two_windows_agree(
    threads: int, windows_us: list[float], expected_us: float, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime, taken = Runtime("cpu", threads), list[float]()

    def window(*_: object) -> int:
        taken.append(windows_us[len(taken)])
        return int(taken[-1] * 1e6)

    monkeypatch.setattr(runtime, "_time", window)
    monkeypatch.setattr(runtime, "_overhead", lambda cold: (0, 0))
    assert runtime.time(b"", {}) == expected_us * 1e6 and len(taken) == used


@pytest.mark.parametrize(("run_ms", "measured"), [(0.01, 51), (1, 8), (3, 7), (20, 4), (100, 2)])
def test_what_takes_longer_is_run_less_often(run_ms: float, measured: int, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, now = Runtime("cpu", 1), [0]

    def run() -> list[Any]:
        now[0] += int(run_ms * 1e6)
        return []

    monkeypatch.setattr(runtime, "open", lambda *_, **__: None)
    monkeypatch.setattr(runtime, "bind", lambda *_: run)
    monkeypatch.setattr("taso_gym.cost.runtime.time", SimpleNamespace(thread_time_ns=lambda: now[0]))
    monkeypatch.setattr(runtime, "_overhead", lambda cold: (0, 0))
    assert runtime.time(b"", {}) == run_ms * 1e9
    before = 2 if run_ms * 1e6 < SLOW_NS else 1
    assert now[0] == (before + measured) * run_ms * 1e6


@pytest.mark.parametrize(
    ("takes_ms", "rounds"),
    [
        ({"a": 0.5}, [["twin", *[""] * 6, "a twin", *["a"] * 6]]),
        ({"a": 2}, [["twin", *[""] * 6, "a twin", *["a"] * 3], ["a twin", *["a"] * 3]]),
        ({"a": 20}, [["twin", *[""] * 6, "a"], *[["a"]] * 3]),
        ({"a": 100}, [["twin", *[""] * 6, "a"], ["a"]]),
        ({"a": 1, "b": 2, "c": 20}, [*[["twin", "", "", "a twin", "a", "a", "b twin", "b", "b", "c"]] * 3, ["c"]]),
    ],
)
def test_all_is_out_of_the_cache_but_what_another_session_brings_back(
    takes_ms: dict[str, float], rounds: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No session runs twice each time that the cache is emptied: it would find its weights."""
    runtime, now, done, opened = Runtime("cpu", 1), [0], list[str](), Counter[str]()

    def open_(model: bytes | Serialised, **_: object) -> tuple[str, int]:
        name = "" if isinstance(model, Serialised) else model.decode()
        opened[name] += 1
        return name, opened[name]

    def bind(session: tuple[str, int], _: object) -> Callable[[], list[Any]]:
        name, number = session

        def run() -> list[Any]:
            now[0] += int(takes_ms.get(name, 0.01) * 1e6)
            done.append(f"{name} twin".strip() if number == 2 else name)
            return []

        return run

    monkeypatch.setattr(runtime, "open", open_)
    monkeypatch.setattr(runtime, "bind", bind)
    monkeypatch.setattr("taso_gym.cost.runtime.time", SimpleNamespace(thread_time_ns=lambda: now[0]))
    monkeypatch.setattr(runtime, "_overhead", lambda cold: (0, 0))

    def evict(whole: bool) -> None:
        done.append(f"evict {whole}")

    monkeypatch.setattr(runtime, "_evict", evict, raising=False)
    found = runtime.times([(name.encode(), {}) for name in takes_ms], cold=True)
    assert found == [takes * 1e9 for takes in takes_ms.values()]
    emptied = f"evict {len(takes_ms) == 1}"
    assert done[done.index(emptied) :] == [step for steps in rounds for step in (emptied, *steps)]


def test_sessions_that_run_one_after_the_other_have_large_weights_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the second finds in the cache what the first has read: onnxruntime copies only what it packs."""
    runtime = Runtime("cpu", 1)
    opened, open_ = list[int](), runtime.open

    def noted(model: bytes | str | Serialised, *args: Any, **kwargs: Any) -> Any:
        assert isinstance(model, Serialised)
        opened.append(model.weights["w"].data_ptr())
        return open_(model, *args, **kwargs)

    x = np.ones((512, 1024), np.float32)
    types = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name in "xy"]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])], "sum", types[:1], types[1:], [declared("w", x)]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    monkeypatch.setattr(runtime, "open", noted)
    monkeypatch.setattr("taso_gym.cost.runtime.SLOW_NS", 10**12)  # whatever the load
    monkeypatch.setattr("taso_gym.cost.runtime.COLD_SESSIONS", {10**12: 3})
    alone = Serialised(model.SerializeToString(), {"w": runtime.place_weight(x)})
    runtime._time(alone, {"x": runtime.place(x)}, cold=True)  # pyright: ignore[reportPrivateUsage]
    assert len(opened) == 4 and len(set(opened)) == 3  # and one that brings the code


@pytest.mark.parametrize(("begins_us", "identity_us", "product_us"), [(3, 0.15, 0.45), (12, 0.6, 7), (3, 0.15, 0)])
def test_a_node_costs_what_it_adds_to_a_run(
    begins_us: float, identity_us: float, product_us: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The overhead is a run of no node, which can't be measured as such; a copy within a node is no node."""
    runtime, takes = Runtime("cpu", 1), {"Identity": identity_us, "MatMul": product_us}

    def window(model: bytes | Serialised, *_: object) -> int:
        content = model.content if isinstance(model, Serialised) else model
        assert isinstance(content, bytes)
        return round((begins_us + sum(takes[node.op_type] for node in ModelProto.FromString(content).graph.node)) * 1e6)

    monkeypatch.setattr(runtime, "_time", window)
    assert runtime.time(product(), {}) == pytest.approx(product_us * 1e6)
    assert runtime.times_of_copies([runtime.place(np.ones(1, np.float32))]) == [0]


@pytest.mark.parametrize(("threads", "expected"), [(1, [60, 0]), (2, [95, 5])])
def test_a_copy_is_less_than_a_node_by_what_a_node_takes(
    threads: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of the cache, or as in it where several threads are timed by a profile."""
    runtime = Runtime("cpu", threads)
    monkeypatch.setattr(runtime, "_overhead", lambda cold: (9, 40 if cold else 5))
    monkeypatch.setattr(runtime, "times", lambda models, cold: [100, 10])
    values = [runtime.place(np.ones(size, np.float32)) for size in (8, 1)]
    assert runtime.times_of_copies(values, cold=True) == expected


@pytest.mark.parametrize(("one_us", "more_us", "expected_us"), [(20, 84, 8), (20, 19, 0), (150, 950, 135)])
def test_a_gpu_runs_copies_of_what_is_short(
    one_us: float, more_us: float, expected_us: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of one is mostly its beginning and end, which a network has once."""
    runtime = Runtime("cpu", 1)
    runtime.provider = "cuda"

    def window(model: bytes | Serialised, *_: object) -> int:
        content = model.content if isinstance(model, Serialised) else model
        assert isinstance(content, bytes)
        return int((one_us if len(ModelProto.FromString(content).graph.node) == 1 else more_us) * 1e6)

    monkeypatch.setattr(runtime, "_time", window)
    monkeypatch.setattr(runtime, "_overhead", lambda cold: (15 * 10**6, 0))
    assert runtime.time(product(), {}) == expected_us * 1e6


def test_memory_that_is_short_is_told_from_a_refusal() -> None:
    shape = helper.make_tensor("shape", TensorProto.INT64, [3], [1 << 20, 1 << 20, 4])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name, size in (("x", [1]), ("y", None)))
    graph = helper.make_graph([helper.make_node("Expand", ["x", "shape"], ["y"])], "large", [x], [y], [shape])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    runtime = Runtime("cpu", 1)
    with pytest.raises(OutOfMemoryError, match="expected a model that runs, found"):
        runtime.time(model.SerializeToString(), {"x": runtime.place(np.ones(1, np.float32))})


def test_a_pickled_runtime_brings_nothing_that_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """On another machine that is wrong, and what empties the cache is twice as large as this."""
    runtime, feeds = Runtime("cpu", 1), {"x": np.ones(4, np.float32)}
    placed = {name: runtime.place(value) for name, value in feeds.items()}
    model = identity(TensorProto.FLOAT, [4])
    assert runtime.time(model, placed, cold=True) < 10**9 > runtime.time(model, placed)
    assert len(pickle.dumps(runtime)) < 1000
    monkeypatch.setattr(Runtime, "_time", lambda *_: 10**12)
    other = pickle.loads(pickle.dumps(runtime))  # noqa: S301
    assert other.time(model, placed) == 0 and runtime.time(model, placed) > 10**11
