"""Settings of a session that pay: chosen by measuring, written as JSON and as code that runs."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from cost_graphs import write_chain
from onnx import TensorProto, helper, numpy_helper

from taso_gym.cost import session_settings
from taso_gym.cost.measure import SessionSettings, outputs_with
from taso_gym.cost.measurement import THREAD_CPU, Measurement
from taso_gym.cost.session_settings import CANDIDATES, DEFAULT, best_settings, code, write_settings

pytest.importorskip("onnxruntime")


def timed_as(monkeypatch: pytest.MonkeyPatch, first: dict[SessionSettings, float], again: float) -> None:
    """Let measurements say that settings take so many ms (others 1), and the winner ``again`` ms at the second look."""

    looks = [len(CANDIDATES)]

    def measure(models: object, *, settings: dict[str, SessionSettings], **_: object) -> Measurement:
        assert len(settings) == 2  # no more models at once
        times = {n: 1.0 if s == DEFAULT else first.get(s, 1.0) if looks[0] else again for n, s in settings.items()}
        looks[0] -= 1
        return Measurement({n: np.full((2, 5), t) for n, t in times.items()}, 1, "cpu", THREAD_CPU)

    monkeypatch.setattr(session_settings, "measure", measure)


def test_the_fastest_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    timed_as(monkeypatch, {CANDIDATES[0]: 0.9, CANDIDATES[3]: 0.8}, again=0.8)
    assert best_settings("model.onnx") == CANDIDATES[3]


def test_a_gain_that_does_not_come_again_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    timed_as(monkeypatch, {CANDIDATES[0]: 0.5}, again=0.99)
    assert best_settings("model.onnx") == DEFAULT


def test_real_sessions_take_all_of_them(tmp_path: Path) -> None:
    assert best_settings(write_chain(tmp_path / "a.onnx", 1)) in (DEFAULT, *CANDIDATES)


def masked(path: Path, last: str) -> Path:
    """Write a model whose Softmax makes denormals of what is masked, and what it does with them.

    By -86.5 it makes them everywhere, also where exponentials are flushed to zero, as with
    AVX2: the sum of a row is 8.
    """
    float_, shape = TensorProto.FLOAT, [8, 16]
    mask = np.where(np.arange(16) < 8, 0.0, -86.5).astype(np.float32)
    nodes = [
        helper.make_node("Mul", ["x", "tiny"], ["small"]),
        helper.make_node("Add", ["small", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["shares"], axis=-1),
        helper.make_node(last, ["shares"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, float_, shape) for name in "xy")
    weights = [numpy_helper.from_array(mask, "mask"), numpy_helper.from_array(np.float32(1e-3), "tiny")]
    graph = helper.make_graph(nodes, "masked", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return path


@pytest.mark.parametrize(("last", "zeros", "chosen"), [("Neg", 64, True), ("Log", 0, False)])
def test_denormals_are_zero_where_outputs_stay(
    last: str, zeros: int, chosen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, without = masked(tmp_path / "a.onnx", last), SessionSettings(denormals_as_zero=True)
    [expected], [found] = outputs_with(DEFAULT, model), outputs_with(without, model)
    assert np.count_nonzero(expected == 0) == 0 and np.count_nonzero(found == 0) == zeros
    assert np.isinf(found).any() == (last == "Log")
    timed_as(monkeypatch, {without: 0.5, CANDIDATES[0]: 0.8}, again=0.7)
    assert best_settings(model) == (without if chosen else CANDIDATES[0])


def test_what_can_not_be_compared_keeps_denormals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timed_as(monkeypatch, {SessionSettings(denormals_as_zero=True): 0.5}, again=0.5)
    assert best_settings(tmp_path / "none.onnx") == DEFAULT


def test_code_and_json_say_the_same(tmp_path: Path) -> None:
    model, settings = (
        write_chain(tmp_path / "a.onnx", 1),
        SessionSettings("basic", ("GeluFusion",), denormals_as_zero=True),
    )
    write_settings(tmp_path / "a.session.json", settings, 2)
    on_gpu = code(model, settings, 2, "cuda")
    assert "CUDAExecutionProvider" in on_gpu and "preload_dlls" in on_gpu
    found = json.loads((tmp_path / "a.session.json").read_text())
    assert found["graph_optimization_level"] == "ORT_ENABLE_BASIC" and found["disabled_optimizers"] == ["GeluFusion"]
    assert found["session_config_entries"] == {"session.set_denormal_as_zero": "1"}
    assert found["providers"] == ["CPUExecutionProvider"]
    text = code(model, settings, 2)
    assert "ORT_ENABLE_BASIC" in text and "['GeluFusion']" in text and "preload_dlls" not in text
    names: dict[str, object] = {}
    exec(text, names)  # noqa: S102
    assert names["session"].get_providers()  # pyright: ignore[reportAttributeAccessIssue]


def test_outputs_of_other_shapes_differ() -> None:
    """Were they of one that another is broadcast to: how many there are may depend on values."""
    ones = np.ones((3, 4), np.float32)
    assert session_settings._alike(ones, ones)
    assert not session_settings._alike(ones, ones[:1]) and not session_settings._alike(ones, ones[:2])
