"""Sessions: what is measured where several threads, and other processes, share the machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from taso_gym.cost import sessions
from taso_gym.cost.sessions import WINDOWS, Runtime

pytest.importorskip("onnxruntime")

WIDTH = 256


def product() -> bytes:
    """A product that several threads share."""
    types = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [WIDTH, WIDTH]) for name in "xyz"]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "y"], ["z"])], "product", types[:2], types[2:])
    opset = helper.make_opsetid("", 20)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10).SerializeToString()


def test_only_the_workers_that_are_measured_spin(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, opened = Runtime("cpu", 2), list[str]()

    def spied(*args: Any, **options: Any) -> Any:
        session = Runtime.open(runtime, *args, **options)
        opened.append(session.get_session_options().get_session_config_entry("session.intra_op.allow_spinning"))
        return session

    monkeypatch.setattr(runtime, "open", spied)
    monkeypatch.setattr(sessions, "SLOW_NS", 10**12)  # whatever the load: a slow operator needs no other session
    monkeypatch.setattr(runtime, "_overhead_ps", lambda cold: 0)
    value = runtime.place(np.ones((WIDTH, WIDTH), np.float32))
    runtime.time(product(), {"x": value, "y": value}, cold=True)
    assert len(opened) >= 4 and opened == ["1", "0"] * (len(opened) // 2)  # two windows at least


@pytest.mark.parametrize(
    ("threads", "windows_us", "expected_us", "used"),
    [
        (2, [50, 10, 10.5], 10, 3),  # the first was disturbed
        (2, [10, 10.9], 10, 2),
        (2, [80, 50, 30, 10], 10, WINDOWS),  # no two agree
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
    monkeypatch.setattr(runtime, "_overhead_ps", lambda cold: 0)
    assert runtime.time(b"", {}) == expected_us * 1e6 and len(taken) == used
