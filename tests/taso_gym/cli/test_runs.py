"""A model that can't be compared or timed is refused before it is searched, with what helps."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import pytest
from command_line import run
from model_texts import parsed

from taso_gym.cli.deliver import Wanted
from taso_gym.cli.runs import expect_timed
from taso_gym.errors import CostError
from taso_gym.onnx_io import load

SIZES = ("--dim", "batch=4", "--dim", "seq=24")


@pytest.fixture
def baked(tmp_path):
    """A model with open dimensions that runs only where their product is 96, as torch's older exporter makes them."""
    body = "a = MatMul(x, v)\n b = MatMul(a, w)\n y = Reshape(b, s)"
    weights = {"v": np.eye(8, dtype=np.float32), "w": np.eye(8, dtype=np.float32), "s": np.array([96, 8])}
    path = tmp_path / "baked.onnx"
    onnx.save(parsed(f"g (float[batch, seq, 8] x) => (y) {{ {body} }}", **weights), path)
    return path


def searched(path, *options):
    return run("optimize", path, "-o", path.with_name("out.onnx"), "--search", "greedy", *options)


def test_baked_sizes_are_compared_and_timed_where_they_are_given(baked, capsys):
    assert searched(baked, *SIZES) == 0
    said = capsys.readouterr().out
    assert "batch=4 seq=24" in said and "original: " in said


@pytest.mark.parametrize("options", [(), ("--no-measure",)])
def test_baked_sizes_that_are_not_given_are_asked_for_before_the_search(baked, options, capsys):
    assert searched(baked, *options) == 2
    said = capsys.readouterr()
    assert "found none among 12 drawn ones (--dim or dims= gives sizes" in said.err and "weighed" not in said.out


def test_a_model_that_cannot_be_timed_at_the_costed_sizes_is_not_searched(tmp_path, capsys):
    """It runs at lengths below 100 only, as the drawn ones are."""
    path = tmp_path / "short.onnx"
    text = "g (float[batch, seq] x) => (y) { s = Shape<start=1>(x)\n a = Gather(t, s)\n r = Relu(x)\n y = Add(r, a) }"
    onnx.save(parsed(text, t=np.ones(100, np.float32)), path)
    assert searched(path) == 2
    said = capsys.readouterr()
    assert "at batch=1, seq=128, expected original to run" in said.err and "--dim sets other sizes" in said.err
    assert "weighed" not in said.out
    assert searched(path, "--no-measure") == 0


def test_what_fails_at_fixed_sizes_is_no_matter_of_dimensions(tmp_path):
    path = tmp_path / "fixed.onnx"
    onnx.save(parsed("g (float[2] x) => (y) { y = Gather(x, i) }", i=np.array([7])), path)
    with pytest.raises(CostError, match=r"^expected original to run, found .*; --no-measure writes"):
        expect_timed(path, load(path), Wanted())
    expect_timed(path, load(path), Wanted(timed=False))


def test_a_converted_model_that_onnxruntime_refuses_is_not_searched(baked, monkeypatch, capsys):
    refused = parsed("g (float[batch, seq, 8] x) => (y) { y = my.Unheard(x) }", opset=21)
    monkeypatch.setattr(sys.modules["taso_gym.cli.optimize"], "converted", lambda *_: refused)
    assert searched(baked, *SIZES, "--opset", "21") == 2
    said = capsys.readouterr()
    assert f"{baked} converted to opset 21: expected a model that onnxruntime takes" in said.err
    assert "weighed" not in said.out


def test_validate_takes_sizes(baked, capsys):
    assert run("validate", baked, baked) == 2
    assert run("validate", baked, baked, *SIZES) == 0
    assert "1 draws: batch=4 seq=24" in capsys.readouterr().out
    assert run("validate", baked, baked, "--dim", "n=4") == 2
    assert "among batch, seq, found 'n'" in capsys.readouterr().err
