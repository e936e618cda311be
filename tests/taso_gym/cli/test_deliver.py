"""A model never comes out slower: what is written for what was measured."""

from __future__ import annotations

import sys
from inspect import signature

import numpy as np
import onnx
import pytest
from command_line import run
from model_texts import parsed
from onnx import TensorProto, helper, numpy_helper

from taso_gym import cost, onnx_io
from taso_gym.cost.measure import SessionSettings, measure
from taso_gym.cost.measurement import THREAD_CPU, Measurement
from taso_gym.cost.session_settings import write_settings
from taso_gym.errors import CostError


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

        monkeypatch.setattr(sys.modules["taso_gym.cli.timing"], "measure", pretended)
        return asked

    return pretend


def optimised(model, *options):
    out = model.with_name("out.onnx")
    assert run("optimize", model, "-o", out, "--search", "greedy", *options) == 0
    return out


@pytest.mark.parametrize(
    ("sessions", "reason"),
    [
        ((1.0, 1.0), "below 2 % counts as none, and 1.000x [1.000, 1.000] was measured"),
        ((1.2, 1.2), "below 2 % counts as none, and 0.833x"),
        ((0.985, 0.985), "below 2 % counts as none, and 1.015x"),
        ((0.9, 1.01), "that not every session shows counts as none, and 1.051x"),
    ],
)
def test_the_input_comes_back_where_no_gain_is_sure(model, timed, capsys, sessions, reason):
    timed(*sessions)
    assert optimised(model).read_bytes() == model.read_bytes()
    assert f"unchanged: a gain {reason}" in " ".join(capsys.readouterr().out.split())


def test_a_sure_gain_is_written(model, timed, capsys):
    timed(0.9, 0.95)
    assert optimised(model).read_bytes() != model.read_bytes()
    assert "written: 1.0" in capsys.readouterr().out


def test_it_is_measured_with_the_users_threads(model, timed):
    asked = timed(0.9, 0.9)
    optimised(model, "--threads", "2")
    assert asked["threads"] == 2 and asked["provider"] == "cpu"


@pytest.fixture
def threads_tried(model, monkeypatch):
    """Let a result be faster on one thread and slower on the four cores of a machine; return what was tried."""
    tried = []

    def pretended(models, *, threads, **_):
        tried.append(threads)
        times = {name: np.ones((2, 5)) for name in models}
        times["optimised"] *= 0.8 if threads == 1 else 1.25
        return Measurement(times, threads, "cpu", THREAD_CPU)

    monkeypatch.setattr(sys.modules["taso_gym.cli.timing"], "measure", pretended)
    monkeypatch.setattr(sys.modules["taso_gym.cli.optimize"], "physical_cores", lambda: 4)
    return tried


def test_a_result_that_is_slower_on_all_cores_is_said_to_be(model, threads_tried, capsys):
    optimised(model)
    assert threads_tried[-2:] == [1, 4]
    said = " ".join(capsys.readouterr().out.split())
    assert "with 4 threads, one on each core: 0.800x" in said and "--threads 4 looks for what is faster there" in said


@pytest.mark.parametrize("options", [("--threads", "1"), ("--no-measure",)])
def test_other_threads_than_those_given_are_not_tried(model, threads_tried, options):
    optimised(model, *options)
    assert 4 not in threads_tried


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


@pytest.mark.parametrize(("objective", "kept"), [("time+0.01*memory", True), ("0.01*time+memory", False)])
def test_a_sum_with_time_has_to_be_lower_as_measured(model, timed, capsys, objective, kept):
    """The result, one product less, needs a third less memory."""
    timed(1.5, 1.5)
    assert (optimised(model, "--objective", objective).read_bytes() == model.read_bytes()) is kept
    assert (f"unchanged: as measured it doesn't lower the {objective}" in capsys.readouterr().out) is kept


@pytest.mark.parametrize(("ms", "kept"), [(0.985, True), (0.9, False)])
def test_a_gain_of_time_that_counts_as_none_lowers_no_sum(tmp_path, timed, capsys, ms, kept):
    """The result, one Relu less, has the same weights."""
    path = tmp_path / "model.onnx"
    text = "g (float[200] x) => (y) { a = Add(x, w)\n b = Relu(a)\n y = Relu(b) }"
    onnx.save(parsed(text, w=np.ones(200, np.float32)), path)
    timed(ms, ms)
    assert (optimised(path, "--objective", "time+0.2*size").read_bytes() == path.read_bytes()) is kept
    assert ("unchanged: as measured it doesn't lower the time+0.2*size" in capsys.readouterr().out) is kept


@pytest.mark.parametrize(("limit", "options", "kept"), [(1.5, (), True), (0.95, (), False), (1.5, ("--force",), False)])
def test_a_slower_result_is_written_only_where_the_original_breaks_the_limit(model, timed, limit, options, kept):
    """The result, one product less, needs a third less memory."""
    timed(1.5, 1.5)
    needed = cost.load("roofline").peak_bytes(onnx_io.load(model))
    written = optimised(model, "--max-memory", str(round(limit * needed)), *options).read_bytes()
    assert (written == model.read_bytes()) is kept


@pytest.fixture
def addition(tmp_path):
    """A sum that nothing lowers, with its weight in ``weights/w.bin`` beside another file."""
    path = tmp_path / "in" / "model.onnx"
    (path.parent / "weights").mkdir(parents=True)
    named = {"location": "weights/w.bin", "size_threshold": 100}
    model = parsed("g (float[200] x) => (y) { y = Add(x, w) }", w=np.ones(200, np.float32))
    onnx.save(model, path, save_as_external_data=True, **named)
    (path.parent / "weights" / "other.bin").write_bytes(b"kept")
    return path


@pytest.fixture
def settings(monkeypatch):
    """Let session settings pay, or others, and keep on which file they were measured."""
    asked = []

    def pretend(found):
        def pretended(model, **_):
            asked.append(model)
            return found

        monkeypatch.setattr(sys.modules["taso_gym.cli.deliver"], "best_settings", pretended)
        return asked

    return pretend


@pytest.mark.parametrize(("ms", "written"), [(0.9, True), (1.1, False)])
def test_settings_of_an_unchanged_model_are_measured_on_the_model(addition, timed, settings, ms, written):
    timed(ms, ms)
    asked = settings(SessionSettings("basic"))
    out = optimised(addition, "--session-settings")
    assert asked == [addition]
    assert out.read_bytes() == addition.read_bytes()
    assert out.with_name("out.session.json").exists() is written
    assert (out.parent / "weights" / "other.bin").read_bytes() == b"kept"


def test_an_unchanged_model_does_not_overwrite_weights_of_others(addition, timed, settings, tmp_path, capsys):
    timed(0.9, 0.9)
    settings(SessionSettings("basic"))
    other = tmp_path / "weights" / "w.bin"
    other.parent.mkdir()
    other.write_bytes(b"important")
    assert run("optimize", addition, "-o", tmp_path / "out.onnx", "--search", "greedy", "--session-settings") == 2
    assert "expected no other file at" in capsys.readouterr().err
    assert other.read_bytes() == b"important"
    assert sorted(f.name for f in tmp_path.iterdir()) == ["in", "weights"]


@pytest.mark.parametrize(("ms", "written"), [(0.9, True), (0.99, False)])
def test_a_model_that_no_rewrite_speeds_up_may_still_gain_by_settings(model, settings, monkeypatch, ms, written):
    """The result is slower than the file as given, which takes 1 ms, and other settings let that take ``ms``."""

    def measured(models, **options):
        first, second, *others = models
        times = {first: 1.0, second: ms if models[second] == model else 1.1, **dict.fromkeys(others, ms)}
        return Measurement({n: np.full((2, 5), t) for n, t in times.items()}, options["threads"], "cpu", THREAD_CPU)

    monkeypatch.setattr(sys.modules["taso_gym.cli.timing"], "measure", measured)
    asked = settings(SessionSettings("basic"))
    out = optimised(model, "--session-settings")
    assert len(asked) == 2 and asked[1] == model
    assert out.read_bytes() == model.read_bytes()
    assert out.with_name("out.session.json").exists() is written


@pytest.mark.parametrize(("ms", "written"), [(0.95, True), (0.85, False)])
def test_what_only_settings_gain_is_no_gain_of_a_rewrite(model, settings, monkeypatch, ms, written, capsys):
    """The result takes 0.9 ms with other settings, the file as given 1 ms, and with these settings ``ms``."""

    def measured(models, **options):
        other = {"optimised": 0.9 if len(models) == 3 else ms, "original with the settings of the optimised one": ms}
        times = {name: np.full((2, 5), other.get(name, 1.0)) for name in models}
        return Measurement(times, options["threads"], "cpu", THREAD_CPU)

    monkeypatch.setattr(sys.modules["taso_gym.cli.timing"], "measure", measured)
    settings(SessionSettings("basic"))
    out = optimised(model, "--session-settings")
    assert (out.read_bytes() != model.read_bytes()) is written
    assert out.with_name("out.session.json").exists()
    assert ("a gain below 2 % counts as none, and 0.944x" in capsys.readouterr().out) is not written


@pytest.mark.parametrize(("ms", "written"), [(0.85, False), (0.95, True)])
def test_what_only_settings_gain_is_no_gain_of_a_sum_with_time(model, settings, monkeypatch, ms, written):
    """The result takes 0.9 ms with other settings, the file as given 1 ms, and with these settings ``ms``."""

    def measured(models, **options):
        other = {"optimised": 0.9, "original with the settings of the optimised one": ms}
        times = {name: np.full((2, 5), other.get(name, 1.0)) for name in models}
        return Measurement(times, options["threads"], "cpu", THREAD_CPU)

    monkeypatch.setattr(sys.modules["taso_gym.cli.timing"], "measure", measured)
    settings(SessionSettings("basic"))
    out = optimised(model, "--session-settings", "--objective", "time+0.000001*memory")
    assert (out.read_bytes() != model.read_bytes()) is written


def test_what_is_in_doubt_is_said_to_be(model, monkeypatch, capsys):
    def measured(models, **options):
        times = {"original": np.ones((2, 5)), "optimised": np.array([[0.9, 0.9, 0.9, 1.3, 1.3]] * 2)}
        return Measurement(times, options["threads"], "cpu", THREAD_CPU)

    monkeypatch.setattr(sys.modules["taso_gym.cli.timing"], "measure", measured)
    optimised(model)
    assert "a gain in doubt counts as none" in capsys.readouterr().out


@pytest.mark.parametrize("options", [("--no-measure",), ("--session-settings",)])
def test_settings_of_an_earlier_result_are_removed(model, timed, settings, options, capsys):
    timed(0.9, 0.9)
    settings(SessionSettings())
    beside = model.with_name("out.session.json")
    write_settings(beside, SessionSettings("basic"), 1)
    optimised(model, *options)
    assert not beside.exists()
    assert "out.session.json removed" in capsys.readouterr().out


@pytest.mark.parametrize(("module", "name"), [("timing", "measure"), ("deliver", "best_settings")])
def test_what_cannot_be_timed_is_written_by_force_or_untimed(model, monkeypatch, module, name, capsys):
    def refuses(*_, **__):
        raise CostError("expected a tensor as input 'x', found tensor(bfloat16)")

    monkeypatch.setattr(sys.modules[f"taso_gym.cli.{module}"], name, refuses)
    out, extra = model.with_name("out.onnx"), ["--session-settings"] * (name == "best_settings")
    assert run("optimize", model, "-o", out, "--search", "greedy", *extra) == 2
    advice = " without --session-settings" * bool(extra)
    assert f"nothing was written: --no-measure{advice} writes it without timing it" in capsys.readouterr().err
    assert not out.exists()
    optimised(model, "--no-measure")
    capsys.readouterr()
    assert optimised(model, "--force", *extra).read_bytes() != model.read_bytes()
    said = capsys.readouterr().out
    assert "not timed: expected a tensor as input 'x'" in said and "written: not timed" in said


def test_a_measurement_takes_two_fresh_sessions():
    assert signature(measure).parameters["sessions"].default >= 2


def interrupt(*_, **__):
    raise KeyboardInterrupt


def test_a_result_whose_timing_is_interrupted_is_written_and_said_not_to_be_timed(model, monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["taso_gym.cli.timing"], "measure", interrupt)
    out = model.with_name("out.onnx")
    assert run("optimize", model, "-o", out, "--search", "greedy") == 130
    assert len(onnx.load(out).graph.node) == 1
    said = f"{out} written: not timed, as that was interrupted; it may be slower than {model}"
    assert said in capsys.readouterr().out


def test_a_model_is_not_replaced_by_a_result_whose_timing_is_interrupted(model, monkeypatch, capsys):
    """Nobody could compare the two any more."""
    before = model.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["taso_gym.cli.timing"], "measure", interrupt)
        assert run("optimize", model, "-o", model, "--search", "greedy") == 130
        assert model.read_bytes() == before
        assert f"{model} stays as it is: what was found isn't timed" in capsys.readouterr().out
        assert run("optimize", model, "-o", model, "--search", "greedy", "--force") == 130
    assert model.read_bytes() != before


def test_settings_of_a_model_that_stays_as_it_is_stay(addition, settings, capsys):
    """Unless it is asked for better ones."""
    settings(SessionSettings())
    beside = addition.with_name(f"{addition.stem}.session.json")
    write_settings(beside, SessionSettings("basic"), 1)
    for extra, stays in ([], True), (["--session-settings"], False):
        assert run("optimize", addition, "-o", addition, "--search", "greedy", *extra) == 0
        assert beside.exists() is stays
        assert f"{addition} unchanged" in capsys.readouterr().out


def test_an_unchanged_model_is_written_where_measuring_settings_is_interrupted(addition, monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["taso_gym.cli.deliver"], "best_settings", interrupt)
    out = addition.with_name("out.onnx")
    assert run("optimize", addition, "-o", out, "--search", "greedy", "--session-settings") == 130
    assert out.read_bytes() == addition.read_bytes()
