"""A model never comes out slower: what is written for what was measured."""

from __future__ import annotations

import sys
from inspect import signature

import numpy as np
import onnx
import pytest
from command_line import run
from onnx import TensorProto, helper, numpy_helper

from taso_gym.cost.measure import measure
from taso_gym.cost.measurement import THREAD_CPU, Measurement


@pytest.fixture
def model(tmp_path):
    """Two products that roofline costs make one of."""
    weights = [numpy_helper.from_array(np.eye(64, dtype=np.float32), name) for name in ("a", "b")]
    nodes = [helper.make_node("MatMul", ["x", "a"], ["y"]), helper.make_node("MatMul", ["y", "b"], ["z"])]
    x, z = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [64, 64]) for n in "xz")
    path = tmp_path / "model.onnx"
    graph = helper.make_graph(nodes, "g", [x], [z], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def timed(monkeypatch):
    """Let the result take so many ms in each session, where the file as given takes 1; keep how it was measured."""
    asked = {}

    def pretend(*sessions):
        def pretended(models, **options):
            asked.update(options)
            times = {name: np.ones((len(sessions), 5)) for name in models}
            times["optimised"] *= np.array(sessions)[:, None]
            return Measurement(times, options["threads"], "cpu", THREAD_CPU)

        monkeypatch.setattr(sys.modules["taso_gym.cli.deliver"], "measure", pretended)
        return asked

    return pretend


def optimised(model, *options):
    out = model.with_name("out.onnx")
    assert run("optimize", model, "-o", out, "--search", "greedy", *options) == 0
    return out


@pytest.mark.parametrize("sessions", [(1.0, 1.0), (1.2, 1.2), (0.985, 0.985), (0.9, 1.01)])
def test_the_input_comes_back_where_no_gain_is_sure(model, timed, capsys, sessions):
    timed(*sessions)
    assert optimised(model).read_bytes() == model.read_bytes()
    assert "unchanged: a gain below 2 % counts as none" in capsys.readouterr().out


def test_a_sure_gain_is_written(model, timed, capsys):
    timed(0.9, 0.95)
    assert optimised(model).read_bytes() != model.read_bytes()
    assert "written: 1.0" in capsys.readouterr().out


def test_it_is_measured_with_the_users_threads(model, timed):
    asked = timed(0.9, 0.9)
    optimised(model, "--threads", "2")
    assert asked["threads"] == 2 and asked["provider"] == "cpu"


@pytest.mark.parametrize(
    ("options", "wanted"), [((), True), (("--no-measure",), False), (("--no-measure", "--finalists"), True)]
)
def test_finalists_are_timed_unless_nothing_is(model, timed, monkeypatch, options, wanted):
    timed(0.9, 0.9)
    asked, module = {}, sys.modules["taso_gym.cli.optimize"]
    search = module.search_for
    monkeypatch.setattr(module, "search_for", lambda *given, **named: asked.update(named) or search(*given, **named))
    optimised(model, *options)
    assert asked["finalists"] is wanted


def test_where_time_is_not_the_objective_a_slower_result_is_written(model, timed):
    timed(1.5, 1.5)
    assert optimised(model, "--objective", "kernels").read_bytes() != model.read_bytes()


def test_a_measurement_takes_two_fresh_sessions():
    assert signature(measure).parameters["sessions"].default >= 2
