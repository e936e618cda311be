from __future__ import annotations

import onnx
import pytest
from command_line import run
from onnx import TensorProto, helper

from taso_gym.cost.recorded import table_names


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "open.onnx"
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", 8]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return path


def test_files_are_timed_side_by_side(model, capsys):
    assert run("measure", model, model, "--dim", "batch=4", "--sessions", "1", "--rounds", "2") == 0
    assert "times faster than the first" in capsys.readouterr().out.replace("\n", " ")


def test_a_file_that_is_given_twice_is_timed_twice(model, capsys, monkeypatch):
    monkeypatch.chdir(model.parent)
    assert run("measure", *["open.onnx"] * 3, "--sessions", "1", "--rounds", "1") == 0
    said = capsys.readouterr().out
    assert all(f"│ {name} " in said for name in ("open.onnx", "open.onnx (2)", "open.onnx (3)"))


def test_an_unknown_dimension_is_refused(model, capsys):
    assert run("measure", model, "--dim", "bacth=4") == 2
    assert "expected dimensions of the inputs (batch), found bacth" in capsys.readouterr().err


def test_a_file_that_is_no_model_is_one_line(tmp_path, capsys):
    (tmp_path / "text.onnx").write_text("not a model")
    assert run("measure", tmp_path / "text.onnx", "--dim", "batch=4") == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_help_of_optimize_names_the_recorded_tables_and_what_replaces_the_budget(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert run("optimize", "--help") == 0
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert all(name in said for name in table_names())
    assert "--steps replaces it" in said
