from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from command_line import run
from model_texts import parsed
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from taso_gym.cost.measure import SessionSettings
from taso_gym.errors import CostError

FUSED = "fused [reassociate]: Mul(MatMul(x, y), 2) => ms.FusedMatMul(x, y, alpha=2)\n"


class Net(nn.Module):
    """A small network that is none of the built-in ones: convolutions, normalisation, attention over positions."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.left, self.right = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3, padding=1)
        self.norm, self.mix = nn.LayerNorm(16), nn.Linear(16, 16)
        self.head = nn.Sequential(nn.GELU(), nn.Linear(16, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        x = torch.cat([torch.relu(self.left(x)), torch.relu(self.right(x))], 1).flatten(2).transpose(1, 2)
        x = self.norm(x)
        x = x + torch.softmax(self.mix(x) @ x.transpose(1, 2) / 4, -1) @ x
        return self.head(x.mean(1))


@pytest.fixture(scope="module", params=[False, True], ids=["torchscript", "dynamo"])
def exported(request, tmp_path_factory) -> Path:
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("models") / "net.onnx"
    net = Net().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's exporters warn about themselves
        torch.onnx.export(net, (torch.randn(1, 3, 12, 12),), path, dynamo=request.param, verbose=False)
    return path


def test_export_of_torch_comes_out_equal(exported, tmp_path, capsys):
    out = tmp_path / "fast.onnx"
    assert run("optimize", exported, "-o", out, "--budget", "3s", "--no-measure") == 0
    assert "equal" in capsys.readouterr().out
    onnx.checker.check_model(out)
    x = np.random.default_rng(0).standard_normal((1, 3, 12, 12), dtype=np.float32)
    before, after = (
        onnxruntime.InferenceSession(p, providers=["CPUExecutionProvider"]).run(None, {_input(p): x})[0]
        for p in (exported, out)
    )
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-5 * np.abs(before).max())
    assert onnx.load(out).SerializeToString() != onnx.load(exported).SerializeToString()


def _input(path: Path) -> str:
    return onnx.load(path).graph.input[0].name


def test_portable_result_has_only_standard_operators(exported, tmp_path):
    out = tmp_path / "fast.onnx"
    assert run("optimize", exported, "-o", out, "--budget", "2s", "--no-measure", "--portable") == 0
    assert {n.domain for n in onnx.load(out).graph.node} <= {"", "ai.onnx"}


def test_measured_result_is_faster_or_the_file_itself(exported, tmp_path, capsys):
    out = tmp_path / "fast.onnx"
    assert run("optimize", exported, "-o", out, "--budget", "2s") == 0
    said = capsys.readouterr().out
    assert ("unchanged" in said) == (out.read_bytes() == exported.read_bytes())


def test_what_is_measured_for_a_search_is_shown_and_kept(named_like_markup, tmp_path, monkeypatch):
    module, shown, cache = sys.modules["taso_gym.cli.optimize"], [], tmp_path / "cache.db"
    bar = module.progress_bar()
    monkeypatch.setattr(bar, "update", lambda _, best: shown.append(best))
    monkeypatch.setattr(module, "progress_bar", lambda: bar)
    arguments = ("optimize", named_like_markup, "-o", tmp_path / "fast.onnx", "--steps", "9", "--no-measure")
    assert run(*arguments, "--cost", "onnxruntime", "--cache", cache) == 0
    assert shown[0].startswith("measuring MatMul") and any("weighed" in line for line in shown)
    shown.clear()
    assert run(*arguments, "--cost", "onnxruntime", "--cache", cache) == 0
    assert shown and all("weighed" in line for line in shown), "costs were known"


def test_same_seed_and_steps_same_file(exported, tmp_path):
    files = [tmp_path / str(i) / "fast.onnx" for i in range(2)]
    for file in files:
        file.parent.mkdir()
        run("optimize", exported, "-o", file, "--steps", "500", "--no-measure", "--search", "random", "--seed", "5")
    assert files[0].read_bytes() == files[1].read_bytes()


def test_weights_beside_the_model_go_with_an_unchanged_copy(exported, tmp_path):
    out = tmp_path / "fast.onnx"
    assert run("optimize", exported, "-o", out, "--steps", "1", "--search", "beam") == 0
    onnxruntime.InferenceSession(out, providers=["CPUExecutionProvider"])


class Attention(nn.Module):
    """Single-head attention with a residual connection and a feed-forward part."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))
        self.norm, self.out = nn.LayerNorm(16), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.query(x) @ self.key(x).transpose(1, 2) / 4
        return self.norm(x + torch.relu(self.out(torch.softmax(scores, -1) @ self.value(x))))


@pytest.fixture(scope="module")
def dynamic(tmp_path_factory) -> Path:
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("models") / "dynamic.onnx"
    axes = {"x": {0: "batch", 1: "time"}}
    net = Attention().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, (torch.randn(2, 5, 16),), path, dynamo=False, input_names=["x"], dynamic_axes=axes)
    return path


def test_dynamic_dimensions_stay_open(dynamic, tmp_path, capsys):
    out = tmp_path / "fast.onnx"
    assert run("optimize", dynamic, "-o", out, "--budget", "2s", "--no-measure", "--dim", "time=7") == 0
    assert capsys.readouterr().out.count("costed at batch=1;") == 1
    sessions = [onnxruntime.InferenceSession(p, providers=["CPUExecutionProvider"]) for p in (dynamic, out)]
    for shape in ((1, 1, 16), (3, 7, 16), (2, 33, 16)):
        x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
        before, after = (s.run(None, {"x": x})[0] for s in sessions)
        np.testing.assert_allclose(after, before, rtol=0, atol=1e-5 * np.abs(before).max())


def test_sizes_of_open_dimensions_are_told_by_axis_unless_they_are_given(dynamic, tmp_path, capsys):
    arguments = ("optimize", dynamic, "-o", tmp_path / "fast.onnx", "--no-measure", "--steps", "1")
    assert run(*arguments) == 0
    assert capsys.readouterr().out.count("costed at batch=1, time=128;") == 1
    assert run(*arguments, "--dim", "batch=2", "--dim", "time=7") == 0
    assert "costed at" not in capsys.readouterr().out


def test_result_is_timed_at_the_sizes_that_were_costed(dynamic, tmp_path, monkeypatch):
    seen = []

    def note(models, *, dims, **_):
        seen.append(dims)
        raise CostError("enough")

    module = sys.modules["taso_gym.cli.timing"]
    monkeypatch.setattr(module, "measure", note)
    arguments = ("--search", "greedy", "--steps", "300", "--dim", "time=7")
    assert run("optimize", dynamic, "-o", tmp_path / "fast.onnx", *arguments) == 2
    assert seen == [{"batch": 1, "time": 7}]


def test_open_dimensions_are_refused_on_request(dynamic, tmp_path, capsys):
    assert run("optimize", dynamic, "-o", tmp_path / "fast.onnx", "--dim", "time=7", "--strict-dims") == 2
    assert "found none for batch" in capsys.readouterr().err


def test_opset_is_converted_on_request(exported, tmp_path):
    out = tmp_path / "fast.onnx"
    assert run("optimize", exported, "-o", out, "--budget", "1s", "--no-measure", "--opset", "21") == 0
    assert {i.version for i in onnx.load(out).opset_import if not i.domain} == {21}


@pytest.fixture
def named_like_markup(tmp_path) -> Path:
    """A model whose names, and the file's, would be tags in rich's markup."""
    weights = [numpy_helper.from_array(np.eye(64, dtype=np.float32), name) for name in ("a", "b")]
    nodes = [helper.make_node("MatMul", ["[/x]", "a"], ["y[/b]"]), helper.make_node("MatMul", ["y[/b]", "b"], ["[/z]"])]
    x, z = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [64, 64]) for n in ("[/x]", "[/z]"))
    graph = helper.make_graph(nodes, "g", [x], [z], weights)
    path = tmp_path / "model[bold].onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_names_that_look_like_markup_are_printed_as_they_are(named_like_markup, tmp_path, capsys):
    out = tmp_path / "fast[bold].onnx"
    assert run("optimize", named_like_markup, "-o", out, "--search", "greedy", "--no-measure") == 0
    said = capsys.readouterr().out
    assert f"{out} written" in said
    assert "[/z], y[/b]" in said


def test_a_name_as_long_as_can_be(named_like_markup, tmp_path, capsys):
    out = tmp_path / f"{'x' * 250}.onnx"
    assert run("optimize", named_like_markup, "-o", out, "--search", "greedy", "--no-measure") == 0
    assert f"{out} written" in capsys.readouterr().out


@pytest.mark.parametrize("opset", [None, 18])
def test_nothing_found_is_said_without_a_table(opset, tmp_path, capsys):
    path, out = tmp_path / "relu.onnx", tmp_path / "out.onnx"
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    converting = ("--opset", opset) if opset else ()
    assert run("optimize", path, "-o", out, "--search", "greedy", *converting) == 0
    *_, headline, ending = capsys.readouterr().out.strip().splitlines()
    assert "0.00 % saved" in headline
    changed = ", not converted" if opset else ""
    assert f"unchanged{changed}: nothing that lowers the cost was found" in ending
    assert out.read_bytes() == path.read_bytes()


def test_model_that_onnxruntime_cannot_run_is_written_only_by_force(named_like_markup, tmp_path, capsys):
    model = onnx.load(named_like_markup)
    model.graph.node.append(helper.make_node("Unheard", ["[/x]"], ["u"], domain="custom"))
    model.graph.output.append(helper.make_tensor_value_info("u", TensorProto.FLOAT, [64, 64]))
    model.opset_import.append(helper.make_opsetid("custom", 1))
    onnx.save(model, named_like_markup)
    out = tmp_path / "out.onnx"
    assert run("optimize", named_like_markup, "-o", out, "--search", "greedy") == 2
    said = capsys.readouterr()
    assert "custom:Unheard" in said.err and "--force" in said.err
    assert "weighed" not in said.out, "it was searched before anybody was told"
    assert not out.exists()
    assert run("optimize", named_like_markup, "-o", out, "--search", "greedy", "--force") == 0
    assert "not compared" in capsys.readouterr().out
    assert sorted(n.op_type for n in onnx.load(out).graph.node) == ["MatMul", "Unheard"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{missing}", "-o", "{out}"), "missing.onnx"),
        (("{text}", "-o", "{out}"), "text.onnx"),
        (("{model}", "-o", "{folder}/none/out.onnx"), "expected a folder to write out.onnx into"),
        (("{model}", "-o", "{folder}"), "expected the name of a file to write, found the folder"),
        (("{missing}", "-o", "{out}", "--search", "gredy"), "expected a search of greedy"),
        (
            ("{missing}", "-o", "{out}", "--search", "ranked", "--max-memory", "1GB"),
            "expected options of search 'ranked'",
        ),
        (("{missing}", "-o", "{out}", "--seed", "-1"), "expected a seed of 0 or more, found -1"),
        (("{missing}", "-o", "{out}", "--checkpoint", "{folder}/none/c"), "expected a folder to write c into"),
        (("{model}", "-o", "{out}", "--budget", "soon"), "expected a duration such as 60s"),
        (("{model}", "-o", "{out}", "--cost", "magic"), "magic"),
        (("{model}", "-o", "{out}", "--rules", "none.rules"), "none.rules"),
        (("{model}", "-o", "{out}", "--numerics", "loose"), "numerics among exact, reassociate, fast, found 'loose'"),
        (("{model}", "-o", "{out}", "--opset", "99"), "expected an opset from 1 to"),
        (("{model}", "-o", "{out}", "--dim", "batch"), "expected a dimension such as batch=1"),
        (("{model}", "-o", "{out}", "--objective", "speed"), "expected an objective such as time"),
        (("{model}", "-o", "{out}", "--max-memory", "much"), "expected an amount of memory such as 500MB"),
        (("{model}", "-o", "{out}", "--cost", "onnxruntime:cuda"), "CUDAExecutionProvider"),
        (("{model}", "-o", "{out}", "--cost", "recorded:none"), "expected a table among"),
        (("{model}", "-o", "{out}", "--cost", "recorded:{text}.json.gz"), "text.onnx.json.gz"),
        (("{model}", "-o", "{out}", "--alpha", "1.1", "--search", "greedy"), "alpha"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(arguments, message, exported, tmp_path, capsys):
    (tmp_path / "text.onnx").write_text("not a model")
    names = {
        "missing": tmp_path / "missing.onnx",
        "text": tmp_path / "text.onnx",
        "model": exported,
        "out": tmp_path / "out.onnx",
        "folder": tmp_path,
    }
    before = sorted(tmp_path.iterdir())
    assert run("optimize", *(a.format(**names) for a in arguments)) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err + captured.out
    assert len(captured.err.strip().splitlines()) <= 4
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--rules", "none.rules"), "expected a readable text file, found none.rules"),
        (("--search", "greedy", "--alpha", "1.1"), "expected options of search 'greedy'"),
        (("--search", "greedy:foo"), "expected options of search 'greedy:foo'"),
        (("--search", "ranked:foo"), "a measure of cost, latency, found 'learned' and 'foo'"),
        (("--alpha", "nan"), "expected an alpha of 1 or more, found nan"),
        (("--checkpoint", "{text}"), "expected a search checkpoint, found damaged data in"),
        (("--search", "policy:none.pt"), "none.pt"),
        (("--cost", "roofline:abacus"), "abacus"),
        (("--cost", "recorded"), "expected a table among"),
        (("--rules", "{none}"), "expected a rule of class reassociate or stricter in"),
        (("--rules", "{fused}", "--portable"), "expected a rule of the ONNX standard of class reassociate or"),
        (("--rules", "{fused}", "--numerics", "exact"), "expected a rule of class exact or stricter in"),
    ],
)
def test_rules_and_options_are_checked_before_the_model_is_run(wrong, message, exported, tmp_path, monkeypatch, capsys):
    def run_model(*_):
        raise CostError("the model was run")

    files = {"text": ("text.txt", "no checkpoint"), "none": ("none.rules", ""), "fused": ("fused.rules", FUSED)}
    given = {name: tmp_path / file for name, (file, _) in files.items()}
    for name, (_, content) in files.items():
        given[name].write_text(content)
    monkeypatch.setattr(sys.modules["taso_gym.cli.optimize"], "expect_runs", run_model)
    assert run("optimize", exported, "-o", tmp_path / "out.onnx", *(a.format(**given) for a in wrong)) == 2
    assert message in capsys.readouterr().err


def test_a_model_that_memory_is_too_short_to_run_is_refused(exported, tmp_path, monkeypatch, capsys):
    def run_model(_):
        raise MemoryError("Unable to allocate 8 GiB")

    monkeypatch.setattr("taso_gym.cli.runs.Baseline.run", run_model)
    assert run("optimize", exported, "-o", tmp_path / "out.onnx") == 2
    assert "Unable to allocate 8 GiB; --force writes a result that wasn't compared" in capsys.readouterr().err


def test_other_objectives_are_lowered_and_said(exported, tmp_path, capsys):
    out = tmp_path / "fast.onnx"
    assert run("optimize", exported, "-o", out, "--objective", "kernels", "--search", "greedy", "--no-measure") == 0
    assert "kernels" in capsys.readouterr().out


def test_a_limit_that_cannot_be_kept_writes_nothing(exported, tmp_path, capsys):
    out = tmp_path / "fast.onnx"
    assert run("optimize", exported, "-o", out, "--max-memory", "1KB", "--search", "greedy", "--no-measure") == 2
    assert "expected a result within 1,000 bytes of memory" in capsys.readouterr().err
    assert not out.exists()


def test_session_settings_go_beside_the_model(exported, tmp_path, monkeypatch, capsys):
    out, module = tmp_path / "fast.onnx", sys.modules["taso_gym.cli.deliver"]
    monkeypatch.setattr(module, "best_settings", lambda *_, **__: SessionSettings("basic"))
    monkeypatch.setattr(module, "timed", lambda *_: None)
    assert run("optimize", exported, "-o", out, "--search", "greedy", "--session-settings") == 0
    assert json.loads((tmp_path / "fast.session.json").read_text())["graph_optimization_level"] == "ORT_ENABLE_BASIC"
    assert "ort.InferenceSession" in capsys.readouterr().out


@pytest.mark.parametrize("portable", [False, True])
def test_operators_beyond_the_standard_are_named(portable, tmp_path, capsys):
    text = "g (float[8, 64] x, float[64, 64] z) => (y) { t = MatMul(x, z)\n y = Mul(t, k) }"
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(parsed(text, k=np.float32(0.1)), path)
    assert run("optimize", path, "-o", out, "--steps", "50", "--no-measure", *["--portable"] * portable) == 0
    domains = {n.domain for n in onnx.load(out).graph.node}
    said = capsys.readouterr().out
    assert ("com.microsoft" in domains) is not portable
    assert ("operators beyond the ONNX standard: 1 com.microsoft.FusedMatMul" in said) is not portable


@pytest.mark.parametrize("opset", [22, 23])
def test_rules_that_need_a_newer_opset_are_told_of(opset, tmp_path, capsys):
    text = """g (float[1,2,8,4] q, float[1,2,8,4] k, float[1,2,8,4] v) => (float[1,2,8,4] z) {
       t = Transpose <perm = [0, 1, 3, 2]> (k)
       y = MatMul(q, t)
       p = Softmax <axis = -1> (y)
       z = MatMul(p, v)
    }"""
    source = tmp_path / "attention.onnx"
    onnx.save(parsed(text, opset=opset, ir=10), source)
    assert run("optimize", source, "-o", tmp_path / "out.onnx", "--steps", "9", "--no-measure") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert ("of this model need opset 23, and it has 22: --opset 23 converts it first" in said) == (opset == 22)


@pytest.mark.parametrize("given", [(), ("--session-settings",)])
def test_operators_that_are_slow_for_their_values_are_told_of(given, exported, tmp_path, monkeypatch, capsys):
    from taso_gym.cost.onnxruntime import OnnxRuntimeCost

    slow = {"Softmax": (3e9, 1e9), "MatMul": (28.2e9, 4e9)}
    monkeypatch.setattr(OnnxRuntimeCost, "slower_in_place", lambda *_: slow)
    monkeypatch.setattr(sys.modules["taso_gym.cli.deliver"], "best_settings", lambda *_, **__: SessionSettings())
    options = ("--cost", "onnxruntime", "--cache", tmp_path / "c", "--steps", "2", "--no-measure", *given)
    assert run("optimize", exported, "-o", tmp_path / "out.onnx", *options) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert ("alone: MatMul 28.2 ms (7.0 times), Softmax 3.0 ms (3.0 times), as floats" in said) is not bool(given)


def test_a_hint_that_fails_loses_nothing(exported, tmp_path, monkeypatch, capsys):
    from taso_gym.cost.onnxruntime import OnnxRuntimeCost
    from taso_gym.errors import CostError

    def fail(*_):
        raise CostError("expected a cache, found none")

    monkeypatch.setattr(OnnxRuntimeCost, "slower_in_place", fail)
    out = tmp_path / "out.onnx"
    options = ("--cost", "onnxruntime", "--cache", tmp_path / "c", "--steps", "2", "--no-measure")
    assert run("optimize", exported, "-o", out, *options) == 0
    assert out.exists() and "slower in this model" not in capsys.readouterr().out


def test_a_batch_may_become_a_loop_over_its_samples(tmp_path, monkeypatch, capsys):
    """Where a loop is the faster one, here by a stopped clock."""
    from taso_gym.cost.measurement import THREAD_CPU, Measurement
    from taso_gym.search import contested, racing

    def measure(graphs, *, rounds, **_):
        loops = {name: any(n.sig.op.name == "Scan" for _, n in graph.operators()) for name, graph in graphs.items()}
        times = {name: np.full((1, rounds), 1.0 if is_loop else 2.0) for name, is_loop in loops.items()}
        return Measurement(times, 1, "cpu", THREAD_CPU)

    monkeypatch.setattr(racing, "measure", measure)
    monkeypatch.setattr(contested, "HOPELESS", 1e9)
    text = """
        g (float[4, 3, 8, 8] x) => (float[4, 3, 8, 8] y)
        <float[3, 3, 1, 1] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}>
        { a = Conv(x, w)  b = Relu(a)  c = Relu(b)  d = Sigmoid(c)  y = Softmax <axis = 1> (d) }
    """
    onnx.save(parsed(text), tmp_path / "m.onnx")
    options = ("--cost", "onnxruntime", "--threads", "1", "--cache", tmp_path / "c", "--no-measure", "--finalists")
    for _ in range(2):  # the second time all that is executed has been measured
        assert run("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", *options, "--budget", "10s") == 0
    said = " ".join(capsys.readouterr().out.split()).rpartition("rewrites weighed")[2]
    assert "sample by sample: the result is a loop" in said and said.count("equal: ") == 1
    assert [n.op_type for n in onnx.load(tmp_path / "o.onnx").graph.node] == ["Reshape", "Scan", "Reshape"]
    feeds = {"x": np.random.default_rng(0).standard_normal((4, 3, 8, 8)).astype(np.float32)}
    given, found = (onnxruntime.InferenceSession(tmp_path / name).run(None, feeds)[0] for name in ("m.onnx", "o.onnx"))
    np.testing.assert_allclose(found, given, rtol=1e-5)


@pytest.mark.parametrize("differs", [False, True])
def test_elementwise_operators_may_run_tile_by_tile(differs, tmp_path, monkeypatch, capsys):
    """Where a loop costs nothing, is the faster one, here by a stopped clock, and equal; and no rule has to apply."""
    from taso_gym.cli import deliver
    from taso_gym.cli.equality import DifferenceError, compared
    from taso_gym.cost.measurement import THREAD_CPU, Measurement
    from taso_gym.cost.onnxruntime import OnnxRuntimeCost
    from taso_gym.search import racing, tiled

    def measure(graphs, *, rounds, **_):
        loops = {name: any(n.sig.op.name == "Scan" for _, n in graph.operators()) for name, graph in graphs.items()}
        times = {name: np.full((1, rounds), 1.0 if is_loop else 2.0) for name, is_loop in loops.items()}
        return Measurement(times, 1, "cpu", THREAD_CPU)

    monkeypatch.setattr(racing, "measure", measure)
    monkeypatch.setattr(tiled, "cache_bytes", lambda _: 1024)

    def judged(model, written, result, *given, **options):
        if differs and result.tiles:
            raise DifferenceError("they differ")
        return compared(model, written, result, *given, **options)

    monkeypatch.setattr(deliver, "compared", judged)
    monkeypatch.setattr(OnnxRuntimeCost, "opaque_time", lambda *_: (1, 1))
    onnx.save(
        parsed("g (float[64, 32] x) => (float[64, 32] y) { a = Sin(x)  b = Exp(a)  y = Cos(b) }"), tmp_path / "m.onnx"
    )
    options = ("--cost", "onnxruntime", "--threads", "1", "--cache", tmp_path / "c", "--no-measure", "--finalists")
    assert run("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", *options, "--budget", "10s") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "tile by tile: chains of elementwise operators that are loops (Scan) over parts of values: 1" in said
    assert ("left out: tiles" in said) == differs
    wanted = ["Sin", "Exp", "Cos"] if differs else ["Reshape", "Scan", "Reshape"]
    assert [n.op_type for n in onnx.load(tmp_path / "o.onnx").graph.node] == wanted
    feeds = {"x": np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)}
    given, found = (onnxruntime.InferenceSession(tmp_path / name).run(None, feeds)[0] for name in ("m.onnx", "o.onnx"))
    np.testing.assert_allclose(found, given, rtol=1e-5)


def test_the_weights_of_the_model_are_not_written_over(tmp_path, capsys):
    path, weights = tmp_path / "model.onnx", tmp_path / "weights.bin"
    model = parsed("g (float[2] x) => (y) { y = Add(x, w) }", w=np.ones(2, np.float32))
    onnx.save(model, path, save_as_external_data=True, location=weights.name, size_threshold=0)
    before = weights.read_bytes()
    out = tmp_path / "out"
    for targets, reason in (
        (["-o", weights], f"holds weights of {path}"),
        (["-o", out, "--checkpoint", weights], f"holds weights of {path}"),
        (["-o", out, "--checkpoint", path], "is the model"),
        (["-o", out, "--checkpoint", out], "is to be written for something else, too"),
    ):
        assert run("optimize", path, *targets, "--search", "greedy") == 2
        assert f"which {reason}" in capsys.readouterr().err.replace("\n", "")
    assert weights.read_bytes() == before and not out.exists()
