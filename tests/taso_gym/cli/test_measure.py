from __future__ import annotations

import onnx
import pytest
from command_line import run
from onnx import TensorProto, helper

from taso_gym.cost.recorded import table_names


@pytest.fixture
def model(tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    return written(tmp_path / "open.onnx", nodes, {"x": ["batch", 8]}, {"y": ["batch", 8]})


def written(path, nodes, inputs, outputs):
    """Write a model of nodes and of the shapes of inputs and outputs by name."""
    ends = ([helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in e.items()] for e in (inputs, outputs))
    graph = helper.make_graph(nodes, "g", *ends)
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


@pytest.mark.parametrize("given", [[], ["--dim", "past=4"]])
def test_a_dimension_that_is_called_a_sum_is_one(given, tmp_path, capsys):
    nodes = [helper.make_node("Concat", ["past", "x"], ["c"], axis=1), helper.make_node("Add", ["c", "mask"], ["y"])]
    inputs = {"past": [1, "past"], "x": [1, 1], "mask": [1, "past + 1"]}
    path = written(tmp_path / "past.onnx", nodes, inputs, {"y": None})
    assert run("measure", path, *given, "--sessions", "1", "--rounds", "1") == 0, capsys.readouterr().err


def test_a_dimension_without_a_name_can_be_given(tmp_path, capsys):
    nodes, square = [helper.make_node("MatMul", ["x", "y"], ["z"])], {"x": [None, None], "y": [4, None]}
    path = written(tmp_path / "unnamed.onnx", nodes, square, {"z": None})
    assert run("measure", path, "--sessions", "1", "--rounds", "1") == 2
    assert run("measure", path, "--dim", "x#1=4", "--sessions", "1", "--rounds", "1") == 0, capsys.readouterr().err


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


@pytest.mark.parametrize("name", ["none.onnx", "x" * 300])
def test_a_file_that_is_not_there_is_named(name, capsys):
    assert run("measure", name) == 2
    assert "error: expected an ONNX file, found none at" in capsys.readouterr().err
