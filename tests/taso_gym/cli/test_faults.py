"""A file that is no model, or can't be compared, ends the command in one line, with nothing written."""

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from command_line import run
from fault_models import whole
from model_texts import parsed
from onnx import TensorProto, helper

from taso_gym import cost
from taso_gym.equivalence import Report
from taso_gym.equivalence.compare import Difference
from taso_gym.equivalence.report import OutputReport

STEPS = ("--steps", "20", "--no-measure")


def refused(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Run the command on a file and return its error, which is one line."""
    out = path.with_name("out.onnx")
    before = sorted(p.name for p in path.parent.iterdir())
    assert run("optimize", path, "-o", out, *STEPS) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("error: ")
    assert sorted(p.name for p in path.parent.iterdir()) == before, "something was written"
    return line


def test_a_provider_that_is_missing_is_found_before_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(whole(), path)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    monkeypatch.setattr(sys.modules["taso_gym.cli.optimize"], "judge_of", lambda *_, **__: cost.load("roofline"))
    arguments = ("optimize", path, "-o", out, "--steps", "20", "--cost", "cupy")
    assert run(*arguments) == 2
    said = capsys.readouterr()
    assert "CUDAExecutionProvider, found CPUExecutionProvider; --no-measure writes a result without" in said.err
    assert "weighed" not in said.out, "it was searched before anybody was told"
    assert run(*arguments, "--no-measure") == 0
    assert out.exists()


def test_truncated_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = whole().SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    assert run("optimize", path, "-o", tmp_path / "whole.onnx", *STEPS) == 0
    capsys.readouterr()
    for end in range(0, len(data), 100):
        path.write_bytes(data[:end])
        refused(path, capsys)


TEXT = "g (float[2, 3] x) => (float[2, 3] y) {{ {} }}"


@pytest.mark.parametrize(
    "nodes",
    [
        "y = Relu(a)\\n a = Neg(y)",
        "y = Relu(nothing)",
        "y = Softmax <axis = 1.5>(x)",
        "y = Softmax <axis = 7>(x)",
        "y = Transpose <perm = [0, 0]>(x)",
        "y, z = Split <num_outputs = 2147483647>(x)",
        "y = my.Unheard(x)",
    ],
)
def test_graphs_that_are_none(nodes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(parsed(TEXT.format(nodes.replace("\\n", "\n"))).SerializeToString())
    refused(path, capsys)


@pytest.mark.parametrize("fields", [{"dims": [3]}, {"dims": [-3]}, {"dims": [1 << 62, 1 << 62]}, {"data_type": 99}])
def test_wrong_initializers(fields: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = parsed(TEXT.format("y = Add(x, w)"))
    model.graph.initializer.append(TensorProto(name="w", **{"data_type": 1, **fields}))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    refused(path, capsys)


def test_an_input_that_does_not_fit_into_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = parsed("g (float[1099511627776] x) => (y) { a = Neg(x)\n b = Neg(a)\n y = Neg(b) }")
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    assert "elements" in refused(path, capsys)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite(value: float, tmp_path: Path) -> None:
    model = parsed("g (float[3] x) => (y) { a = Mul(x, w)\n b = Neg(a)\n y = Neg(b) }", w=np.float32([1, value, 2]))
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(model, path)
    assert run("optimize", path, "-o", out, *STEPS) == 0
    assert len(onnx.load(out).graph.node) == 1


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_chain_of_a_hundred_thousand_nodes(tmp_path: Path) -> None:
    nodes = [helper.make_node(("Relu", "Neg")[i % 2], [f"v{i}"], [f"v{i + 1}"]) for i in range(100_000)]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in ("v0", "v100000")]
    graph = helper.make_graph(nodes, "chain", infos[:1], infos[1:])
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    assert run("optimize", path, "-o", out, *STEPS) == 0
    assert out.exists()


def test_a_result_that_is_not_equal_is_written_only_by_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Here even the original differs, since the comparison is replaced by one that always finds a difference."""
    off = Report((OutputReport("y", Difference(0.5, 0.5, 1e-4)),), ("",), "float64 reference")
    monkeypatch.setattr("taso_gym.cli.equality.compare", lambda *_, **__: off)
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(parsed("g (float[3] x) => (y) { a = Neg(x)\n b = Neg(a)\n y = Exp(b) }"), path)
    assert run("optimize", path, "-o", out, *STEPS) == 2
    said = capsys.readouterr().err
    assert "output 'y': relative error 5.0e-01 above 0.0001: the model itself isn't read as onnxruntime runs it" in said
    assert "nothing was written" in said
    assert not out.exists()
    assert run("optimize", path, "-o", out, *STEPS, "--force") == 0
    assert out.exists()


def test_what_makes_a_result_differ_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """onnxruntime's Attention gives zeros where the lowest float masks all keys, the other operators a mean."""
    text = """g (float[1, 4, 2, 8] q, float[1, 4, 2, 8] k, float[1, 4, 2, 8] v, bool[4, 1] seen) => (y) {
        a = Transpose <perm = [0, 2, 1, 3]> (q)  b = Transpose <perm = [0, 2, 3, 1]> (k)
        c = Transpose <perm = [0, 2, 1, 3]> (v)  m = Where(seen, zero, lowest)
        s = MatMul(a, b)  t = Add(s, m)  p = Softmax <axis = -1> (t)  o = MatMul(p, c)
        n = Transpose <perm = [0, 2, 1, 3]> (o)  e = Neg(n)  f = Neg(e)  y = Exp(f)
    }"""
    lowest = np.finfo(np.float32).min
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(parsed(text, opset=23, ir=10, zero=np.float32(0), lowest=lowest), path)
    options = ("--search", "greedy", "--budget", "20s", "--no-measure", "--portable")
    assert run("optimize", path, "-o", out, *options) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "different: output 'y'" in said and "left out: attention-of-heads-unscaled-masked;" in said
    written = {node.op_type for node in onnx.load(out).graph.node}
    assert "Neg" not in written and "Attention" not in written
    assert run("validate", path, out) == 0


def test_a_data_file_of_something_else_is_kept(tmp_path: Path) -> None:
    w = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    model = parsed("g (float[2, 64] x) => (y) { m = MatMul(x, w)\n a = Neg(m)\n y = Neg(a) }", w=w)
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=100)
    other = tmp_path / "out.onnx.data"
    other.write_bytes(b"important")
    assert run("optimize", path, "-o", out, *STEPS) == 0
    assert other.read_bytes() == b"important"
    assert (tmp_path / "out.onnx.1.data").exists()
    assert run("validate", path, out) == 0


def test_validate_says_which_output_is_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, factor in (("a", 1), ("b", 2)):
        text = "g (float[2, 3] x) => (y, z) { y = Exp(x)\n z = Mul(y, k) }"
        onnx.save(parsed(text, k=np.float32(factor)), tmp_path / f"{name}.onnx")
    assert run("validate", tmp_path / "a.onnx", tmp_path / "b.onnx") == 1
    said = capsys.readouterr().out
    assert said.strip().splitlines()[-1].startswith("different: output 'z': relative error 1.0e+00")
    assert run("validate", tmp_path / "a.onnx", tmp_path / "a.onnx") == 0
