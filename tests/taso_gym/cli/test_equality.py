"""What is written for a result that differs, or can't be compared."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import pytest
from command_line import run
from model_texts import parsed

from taso_gym import onnx_io, optimize
from taso_gym.cli.deliver import Wanted, deliver
from taso_gym.equivalence import Baseline, Report
from taso_gym.errors import CostError, EquivalenceError
from taso_gym.result import Result
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.search import Budget

DOUBLED = "g (float[4] x) => (float[4] y) { a = Mul(x, w)\n b = Relu(a)\n y = Relu(b) }"


def test_what_only_logits_show_is_left_out_alone(tmp_path, monkeypatch, capsys):
    """Scores of thousands are one class, with a scale or without: the probabilities are the same."""
    body = "a = MatMul(x, w)\n b = Neg(a)\n c = Neg(b)\n d = Relu(c)\n e = Relu(d)\n y = Softmax(e)"
    text = f"g (float[2, 4] x) => (y) {{ {body} }}"
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(parsed(text, w=3e4 * np.eye(4, dtype=np.float32) + np.float32(0.1)), path)
    rules = RuleSet(parse_rules("lie: Neg(Neg(x)) => Mul(x, 1.01)\nright: Relu(Relu(x)) => Relu(x)"))
    equal = Report((), ("",), "float64")
    monkeypatch.setattr("taso_gym.equivalence.walk.check_site", lambda *_, **__: equal)
    result = optimize(path, "greedy", rules, budget=Budget(steps=50))
    assert set(result.rule_counts()) == {"lie", "right"}
    assert not Baseline(path).differs(result.graph)
    left = []
    deliver(path, out, result, Wanted(timed=False), left.append)
    assert "left out: lie;" in capsys.readouterr().out
    assert [set(found.rule_counts()) for found in left] == [{"right"}]
    assert [node.op_type for node in onnx.load(out).graph.node] == ["MatMul", "Neg", "Neg", "Relu", "Softmax"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (parsed(DOUBLED, w=np.float32(3)), "the model itself isn't read as onnxruntime runs it"),
        (parsed(DOUBLED, opset=19, w=np.float32(3)), "conversion changes what the model computes"),
    ],
)
def test_no_rule_is_blamed_for_what_differs_without_any(given, message, tmp_path, capsys):
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(given, path)
    result = optimize(onnx_io.from_model(parsed(DOUBLED, w=np.float32(2))), "greedy", budget=Budget(steps=50))
    assert result.applied
    with pytest.raises(EquivalenceError, match=f"^different: output 'y': .*: {message}; nothing was written$"):
        deliver(path, out, result, Wanted(timed=False))
    assert "looking for the rule" not in capsys.readouterr().out
    assert not out.exists()


def test_memory_that_is_too_short_to_find_the_rule_is_said(tmp_path, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(parsed(DOUBLED, w=np.float32(3)), path)
    result = optimize(onnx_io.from_model(parsed(DOUBLED, w=np.float32(2))), "greedy", budget=Budget(steps=50))
    monkeypatch.setattr(Result, "equal_part", full)
    monkeypatch.setattr(sys.modules["taso_gym.cli.equality"], "_expect_read", lambda *_: None)
    with pytest.raises(EquivalenceError, match=r"^different: .*; memory is too short to find out why: nothing was"):
        deliver(path, out, result, Wanted(timed=False))
    assert not out.exists()


def test_what_there_is_no_room_to_compare_is_written_by_force(tmp_path, monkeypatch, capsys):
    def full(*_, **__):
        raise CostError("expected room for a model in /tmp, found no space")

    monkeypatch.setattr(sys.modules["taso_gym.cli.equality"], "compare", full)
    model, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(parsed(DOUBLED, w=np.float32(3)), model)
    assert run("optimize", model, "-o", out, "--no-measure") == 2
    assert "found no space; nothing was written" in capsys.readouterr().err and not out.exists()
    assert run("optimize", model, "-o", out, "--no-measure", "--force") == 0
    assert "not compared: expected room" in capsys.readouterr().out and out.exists()
