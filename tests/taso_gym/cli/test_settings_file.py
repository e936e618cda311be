"""Settings beside a result replace earlier settings, and no other file."""

from __future__ import annotations

import json
import sys

import numpy as np
import onnx
import pytest
from command_line import run
from model_texts import parsed

from taso_gym.cli.settings_file import expect_replaceable, put_settings, settings_file
from taso_gym.cost.measure import SessionSettings
from taso_gym.cost.session_settings import DEFAULT
from taso_gym.errors import OptionError

BASIC = SessionSettings("basic")
OTHERS = ["my notes", "[" * 100_000, "[]", '{"identity": {}, "seconds": 1}', '{"graph_optimization_level": "mine"}']


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(parsed("g (float[200] x) => (y) { y = Add(x, w) }", w=np.ones(200, np.float32)), path)
    return path


def test_default_settings_leave_none_of_an_earlier_result(tmp_path, capsys):
    out = tmp_path / "fast.onnx"
    put_settings(out, BASIC, 2, "cpu")
    file = tmp_path / "fast.session.json"
    assert settings_file(out) == file and json.loads(file.read_text())["intra_op_num_threads"] == 2
    expect_replaceable(file)
    put_settings(out, DEFAULT, 2, "cpu")
    assert not file.exists()
    assert "fast.session.json removed" in capsys.readouterr().out


@pytest.mark.parametrize("content", [*map(str.encode, OTHERS), b"\xff\xfe"])
def test_another_file_stays(tmp_path, content):
    out = tmp_path / "fast.onnx"
    settings_file(out).write_bytes(content)
    put_settings(out, DEFAULT, 1, "cpu")
    assert settings_file(out).read_bytes() == content
    with pytest.raises(OptionError, match=r"expected session settings of an earlier result or no file at .*fast"):
        expect_replaceable(settings_file(out))


def no_search(*_, **__):
    pytest.fail("a search began")


def refused(model, *options):
    """Have what is asked refused before the search."""
    assert run("optimize", model, "-o", model.with_name("fast.onnx"), "--session-settings", *options) == 2


def test_settings_that_would_replace_another_file_are_refused_early(model, monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["taso_gym.cli.optimize"], "search_for", no_search)
    beside = model.with_name("fast.session.json")
    beside.write_text("my notes")
    refused(model)
    assert "fast.session.json, found another file" in " ".join(capsys.readouterr().err.split())
    assert beside.read_text() == "my notes" and not model.with_name("fast.onnx").exists()


def test_settings_have_a_place_of_their_own(model, monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["taso_gym.cli.optimize"], "search_for", no_search)
    beside = model.with_name("fast.session.json")
    refused(model, "--checkpoint", beside)
    assert "which is to be written for something else, too" in " ".join(capsys.readouterr().err.split())
    beside.mkdir()
    refused(model)
    assert "found the folder" in " ".join(capsys.readouterr().err.split())


def test_a_checkpoint_of_that_name_stays_where_no_settings_are_asked_for(model):
    checkpoint = model.with_name("fast.session.json")
    options = ("--search", "greedy", "--steps", "5", "--no-measure", "--checkpoint", checkpoint)
    assert run("optimize", model, "-o", model.with_name("fast.onnx"), *options) == 0
    assert "searcher" in json.loads(checkpoint.read_text())
