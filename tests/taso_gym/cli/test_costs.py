from __future__ import annotations

import re
import sqlite3
from contextlib import nullcontext

import onnx
import pytest
from command_line import run
from cost_graphs import mlp, table_of
from model_texts import parsed
from network_runs import small
from onnx import TensorProto, helper

from taso_gym import cost as cost_models
from taso_gym import onnx_io
from taso_gym.builder import GraphBuilder
from taso_gym.cli import costs
from taso_gym.cli.rows import Row, peaks, rows_of, speeds
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.recorded import RecordedCost
from taso_gym.cost_model import Cost
from taso_gym.errors import CostError
from taso_gym.rules.ruleset import RuleSet
from taso_gym.signature import OpaqueOperator, Signature, opaque_signature
from taso_gym.symbolic import symbol
from taso_gym.tensor import TensorType


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "squeeze.onnx"
    onnx_io.save(small("SqueezeNet1.1"), path)
    return path


def test_profile_names_the_operators_and_the_peak(model, tmp_path, capsys):
    assert run("profile", model, "--cache", tmp_path / "cache.db") == 0
    out = capsys.readouterr().out
    assert "GFLOP/s" in out
    assert "Conv" in out
    assert re.search(r"Conv .* │ \d\.\d{4} +│ \d\.\d{4}–\d\.\d{4} │", out)


def test_the_time_for_measuring_again_begins_when_all_was_measured_once(model, tmp_path, monkeypatch):
    def in_turns(self, graphs, seconds, progress):
        asked = []
        self._progress = asked.append
        self.regions_in_turns({}, 0.0)  # a view
        asked.clear()
        assert [self.graph(graph) for graph in graphs] and asked == [] and seconds == costs.IN_TURNS_S
        return self

    monkeypatch.setattr(OnnxRuntimeCost, "in_turns", in_turns)
    assert run("profile", model, "--cache", tmp_path / "cache") == 0


def test_profile_says_what_could_not_be_measured(tmp_path, capsys):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1 << 20, 1 << 20]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    path = tmp_path / "huge.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    assert run("profile", path, "--cache", tmp_path / "cache.db") == 0
    assert "don't run alone; what is shown is the least that they could take: Relu y" in " ".join(
        capsys.readouterr().out.split()
    )


def test_a_profile_says_nothing_of_speed_where_sizes_depend_on_values(tmp_path, capsys):
    path = tmp_path / "nonzero.onnx"
    onnx.save(parsed("g (float[512, 512] x) => (int64[2, n] y) { a = Relu(x)\n y = NonZero(a) }"), path)
    assert run("profile", path, "--cache", tmp_path / "cache.db") == 0
    said = capsys.readouterr().out
    assert re.search(r"NonZero.* y +│ .*│ – +│ – +│ – +│", said)
    assert re.search(r"Relu a +│ .*│ \d+\.\d +│ \d+\.\d +│ \d+% +│", said)


def test_an_operator_outside_the_table_that_does_not_run_alone_is_not_measured(tmp_path):
    pytest.importorskip("onnxruntime")
    t, builder = TensorType("float", (512, 512)), GraphBuilder({"": 20})
    node = helper.make_node("Mystery", [""], ["present"], domain="my").SerializeToString()
    sig = opaque_signature(OpaqueOperator("my", "Mystery", node, pure=True), (t,), (t,))
    (value,) = builder.add_signature(sig, [builder.input("x", t)])
    builder.output("y", builder.add("Relu", value))
    rows = rows_of(builder.build(), OnnxRuntimeCost(cache=tmp_path / "cache.db"))
    assert [(row.name.split()[0], row.measured) for row in rows] == [("[my.Mystery]", False), ("Relu", True)]


def test_speeds_are_said_where_sizes_are_known():
    cost = Cost(time_ps=1000, flops=6, bytes_moved=4)
    assert speeds(Row("Relu", cost, sized=True), 12, 5) == ("6.0", "4.0", "80%")
    assert speeds(Row("Relu", cost, sized=True), 12, 3) == ("6.0", "4.0", "133%")
    assert speeds(Row("Relu", cost, sized=False), 12, 5) == ("–", "–", "–")


class Measured:
    """Costs of MatMul and of Add by size: what is as fast as what is measured around it takes no time."""

    def __init__(self, matmul_ps: list[int], add_ps: list[int]) -> None:
        self._times = {"MatMul": iter(matmul_ps), "Add": iter(add_ps)}

    def node(self, sig: Signature) -> Cost:
        return Cost(time_ps=next(self._times[sig.op.key]), flops=6, bytes_moved=4)


def test_a_peak_is_that_of_what_takes_time():
    assert peaks(Measured([0, 1000, 2000], [0, 0, 1000])) == (6, 4)


def test_no_peak_where_nothing_takes_time():
    with pytest.raises(CostError, match="expected MatMul and Add to take some time"):
        peaks(Measured([0, 0, 0], [1, 1, 1]))


def test_recorded_table_is_a_cost_model(model, tmp_path, capsys):
    table = tmp_path / "mine.json.gz"
    assert run("record", model, "-o", table, "--walks", "0", "--cache", tmp_path / "cache.db") == 0
    out = tmp_path / "fast.onnx"
    assert run("optimize", model, "-o", out, "--cost", f"recorded:{table}", "--budget", "1s", "--no-measure") == 0
    assert out.exists()


def test_each_of_several_files_is_recorded_as_it_is_by_itself(tmp_path, monkeypatch, capsys):
    pytest.importorskip("onnxruntime")
    paths, started = [tmp_path / "a.onnx", tmp_path / "b.onnx"], []
    for path, rows in zip(paths, (4, symbol("batch")), strict=True):
        onnx_io.save(mlp(rows), path)
    whole = costs.OnnxRuntimeCost

    def model(provider, dims, **options):
        start = options["start"]
        started.append((start.type_of(start.info.inputs[0]).shape, dims))
        return whole(provider, dims, **options)

    monkeypatch.setattr(costs, "OnnxRuntimeCost", model)
    table = tmp_path / "mine.json.gz"
    assert run("record", *paths, "-o", table, "--walks", "0", "--cache", tmp_path / "cache.db") == 0
    assert started == [((4, 8), {}), ((symbol("batch"), 8), {"batch": 1})]
    found = RecordedCost(str(table), dims={"batch": 1}, strict=True)
    assert found.table.origin == "a, b"
    assert all(found.graph(onnx_io.load(path)).kernels > 0 for path in paths)  # kernels this small may take no time


@pytest.fixture
def two_files(tmp_path):
    """Two files with a dimension of another name each."""
    paths = [tmp_path / f"{name}.onnx" for name in ("batch", "rows")]
    for path in paths:
        onnx_io.save(mlp(symbol(path.stem)), path)
    return paths


def test_each_of_several_files_is_recorded_at_the_sizes_that_it_has(two_files, tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    recorded = []

    def neighbourhood(graph, *_):
        recorded.append(graph.info.dims)
        return []

    monkeypatch.setattr(costs, "neighbourhood", neighbourhood)
    arguments = ("record", *two_files, "-o", tmp_path / "mine.json.gz", "--cache", tmp_path / "cache.db")
    assert run(*arguments, "--dim", "batch=4", "--dim", "rows=8") == 0
    assert recorded == [{"batch": 4}, {"rows": 8}]


def test_a_size_that_none_of_several_files_has_is_refused(two_files, tmp_path, capsys):
    assert run("record", *two_files, "-o", tmp_path / "mine.json.gz", "--dim", "batch=4", "--dim", "width=8") == 2
    assert "expected dimensions of the inputs (batch, rows), found width" in " ".join(capsys.readouterr().err.split())


def test_variants_are_recorded_by_the_rules_that_are_asked_for(model, tmp_path, monkeypatch):
    asked = []

    def neighbourhood(_, rules, *rest):
        asked.append(rules.digest)
        return []

    monkeypatch.setattr(costs, "neighbourhood", neighbourhood)
    arguments = ("record", model, "-o", tmp_path / "mine.json.gz", "--cache", tmp_path / "cache.db")
    for more in ((), ("--numerics", "exact"), ("--rules", "basis")):
        assert run(*arguments, *more) == 0
    assert asked == [rules.digest for rules in (RuleSet.load(), RuleSet.load(numerics="exact"), RuleSet.load("basis"))]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--provider", "cuda"), "CUDAExecutionProvider"),
        (("--numerics", "sloppy"), "expected numerics among"),
        (("--rules", "none.rules"), "none.rules"),
    ],
)
def test_what_is_recorded_is_said_by_options(options, message, model, tmp_path, capsys):
    assert run("record", model, "-o", tmp_path / "mine.json.gz", *options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["table.json", "table.gz", "table"])
def test_a_table_that_could_not_be_named_later_is_refused_at_once(name, tmp_path, capsys):
    assert run("record", tmp_path / "none.onnx", "-o", tmp_path / name) == 2
    said = capsys.readouterr().err.replace("\n", "")
    assert f"expected a table whose name ends in .json.gz, found {tmp_path}" in said


@pytest.mark.parametrize(
    ("cost", "provider"),
    [("onnxruntime:cuda", "cuda"), ("cupy", "cuda"), ("cupy:0", "cuda"), ("roofline", "cpu"), ("onnxruntime", "cpu")],
)
def test_predictions_are_compared_with_the_device_that_they_are_of(cost, provider, model, monkeypatch, capsys):
    asked = []

    def compare(*_, **options):
        asked.append(options["provider"])
        raise CostError("enough")

    roofline = cost_models.load("roofline")
    monkeypatch.setattr("taso_gym.cost.load", lambda *_, **__: roofline)
    monkeypatch.setattr(costs, "compare", compare)
    assert run("calibrate", model, "--variants", "2", "--cost", cost) == 2
    assert asked == [provider]


def test_what_is_measured_for_a_calibration_is_shown_and_kept(tmp_path, monkeypatch):
    """Before it is measured in turns."""
    pytest.importorskip("onnxruntime")
    shown, cache = [], tmp_path / "cache.db"
    monkeypatch.setattr(costs, "_measuring", lambda _: nullcontext(shown.append))
    monkeypatch.setattr(costs, "random_variants", lambda *_: map(mlp, (5, 6)))
    monkeypatch.setattr(costs, "compare", lambda *_, **__: "bias 0 %")
    onnx_io.save(mlp(4), tmp_path / "model.onnx")
    assert run("calibrate", tmp_path / "model.onnx", "--cache", cache) == 0
    assert [text.partition("[")[0] for text in shown[:3]] == ["MatMul"] * 3 and "in turns" in shown[3]
    assert cache.is_file()


@pytest.fixture
def calibrated(tmp_path, monkeypatch):
    """Calibrate a perceptron of four rows by a table with some sizes, over variants that have other sizes."""

    def calibrate(recorded, variants):
        compared = []
        monkeypatch.setattr(costs, "random_variants", lambda *_: map(mlp, variants))
        monkeypatch.setattr(costs, "compare", lambda _, chosen, *__, **___: compared.append(chosen) or "bias 0 %")
        onnx_io.save(mlp(4), tmp_path / "model.onnx")
        table = table_of(tmp_path / "table.json.gz", *map(mlp, recorded))
        return run("calibrate", tmp_path / "model.onnx", "--cost", f"recorded:{table}"), compared

    return calibrate


def test_variants_that_are_not_recorded_are_left_out_of_a_calibration(calibrated, capsys):
    code, compared = calibrated((4, 5, 6), (5, 6, 7))
    said = capsys.readouterr().out
    assert code == 0 and [chosen.canonical_digest() for chosen in compared[0]] == [
        mlp(rows).canonical_digest() for rows in (5, 6)
    ]
    assert "left out: 1 of 3 variants" in said and "over 2 variants: bias 0 %" in said


@pytest.mark.parametrize(
    ("recorded", "found"), [((4, 5), "100.0% of it and 1 of 3"), ((5, 6, 7), "0.0% of it and 3 of 3")]
)
def test_no_calibration_where_too_little_is_recorded(calibrated, recorded, found, capsys):
    code, compared = calibrated(recorded, (5, 6, 7))
    assert (code, compared) == (2, [])
    assert f"found {found} variants in recorded:" in capsys.readouterr().err


@pytest.mark.parametrize("variants", [(), (5,)])
def test_costs_are_not_judged_by_fewer_than_two_variants(variants, calibrated, capsys):
    assert calibrated((4, 5), variants) == (2, [])
    said = capsys.readouterr().err
    assert f"expected a model with 2 variants at least to judge costs by, found {len(variants)}" in said
    assert "record" not in said


def test_nothing_is_left_out_where_all_is_recorded(calibrated, capsys):
    assert len(calibrated((4, 5, 6), (5, 6))[1][0]) == 2
    assert "left out" not in capsys.readouterr().out


def test_calibration_prints_bias_and_ranks(model, capsys):
    short = ("--cost", "roofline", "--variants", "2", "--sessions", "1", "--rounds", "2")
    assert run("calibrate", model, *short, "--numerics", "fast") == 0
    said = capsys.readouterr().out
    assert "over 2 variants: bias" in said and ("Spearman" in said or "none differs" in said)
    assert run("calibrate", model, *short, "--numerics", "sloppy") == 2
    assert "expected numerics among exact, reassociate, fast, found 'sloppy'" in capsys.readouterr().err


def test_operators_are_calibrated_with_the_threads_that_variants_run_with(model, monkeypatch, capsys):
    asked = {}

    def load(name, **options):
        asked[name] = options.get("threads")
        raise CostError("enough")

    monkeypatch.setattr("taso_gym.cost.load", load)
    assert run("calibrate", model, "--variants", "2", "--threads", "2") == 2
    assert run("calibrate", model, "--variants", "2", "--threads", "2", "--cost", "roofline") == 2
    assert asked == {"onnxruntime": 2, "roofline": None} and "enough" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["text", "version"])
def test_a_cache_that_is_none_or_of_another_version_is_left_alone(kind, model, tmp_path, capsys):
    cache = tmp_path / "cache.db"
    if kind == "text":
        cache.write_text("my notes")
    else:
        with sqlite3.connect(cache) as db:
            db.execute("PRAGMA user_version = 99")
        db.close()
    before = cache.read_bytes()
    assert run("profile", model, "--cache", cache) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert cache.read_bytes() == before


def test_a_view_has_a_row_without_an_interval(tmp_path, capsys):
    """It takes time, but runs in no region; on a busy machine some looks can't tell it from none."""
    path = tmp_path / "view.onnx"
    body = "a = Relu(x)\n s = Constant<value_ints = [4096]>()\n y = Reshape(a, s)"
    onnx.save(parsed(f"g (float[64, 64] x) => (float[4096] y) {{ {body} }}"), path)

    def has_row(cache):
        assert run("profile", path, "--cache", cache) == 0
        said = capsys.readouterr()
        assert "don't run alone" not in said.out + said.err
        return re.search(r"Reshape y +│ +\d\.\d{4} +│ +│", said.out)

    assert any(has_row(tmp_path / f"cache-{number}.db") for number in range(10))


@pytest.mark.parametrize("option", [("--provider", "cuda"), ("--provider", "tpu"), ("--cache", "none/cache.db")])
def test_what_is_missing_is_said_in_one_line(option, model, capsys):
    assert run("profile", model, *option) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
