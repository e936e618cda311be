"""Recorded tables: written once, read anywhere, and strict about what isn't in them."""

import gzip
import json
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import pytest
from cost_graphs import mlp, symbolic_mlp, table_of
from games import pickled, rule_set

from taso_gym import models
from taso_gym.builder import GraphBuilder
from taso_gym.cost import load
from taso_gym.cost.devices import fastest
from taso_gym.cost.dims import Dims
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.recorded import Entry, RecordedCost, Table, merged, record, region_key, table_names
from taso_gym.cost.region import Region
from taso_gym.cost.regional import NEVER_PS
from taso_gym.cost.roofline import bound_ps
from taso_gym.cost.work import Work, work
from taso_gym.cost_model import Cost
from taso_gym.env import TasoGraphEnv
from taso_gym.errors import CostError, OptionError
from taso_gym.graph import Graph
from taso_gym.ops import OPERATORS
from taso_gym.optimizer import optimize
from taso_gym.rules.state import RewriteState
from taso_gym.signature import signature
from taso_gym.tensor import TensorType


def test_what_was_recorded_is_read_back(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    caches = [tmp_path / f"cache-{number}.sqlite" for number in range(10)]  # on a busy machine a view may seem free
    cache = next(path for path in caches if OnnxRuntimeCost(cache=path).in_turns([mlp()]).view_ps)
    measured = OnnxRuntimeCost(cache=cache)
    seen: list[tuple[int, int]] = []
    regions = [region for graph in (mlp(), mlp(rows=2), mlp()) for region in measured.regions(graph)]
    table = record(regions, measured, lambda *at: seen.append(at), "perceptrons")
    table.save(tmp_path / "mine.json.gz")
    found = RecordedCost(str(tmp_path / "mine.json.gz"), strict=True)
    assert found.table == table and seen == [(2, 2)]
    assert found.graph(mlp()) == OnnxRuntimeCost(cache=cache).graph(mlp())  # in turns
    assert found.view_ps == table.view_ps == measured.in_turns([mlp()], 0.0).view_ps > 0
    assert "CPUExecutionProvider" in found.key and next(iter(table.costs.values())).operators == "MatMul Add Relu"


def test_equal_tables_give_equal_files(tmp_path: Path) -> None:
    entries = {"b": Entry(1, 1, "Add"), "a": Entry(2, 1, "Mul")}
    Table("d", 0, entries).save(tmp_path / "first.json.gz")
    Table("d", 0, dict(reversed(entries.items()))).save(tmp_path / "second.json.gz")
    assert (tmp_path / "first.json.gz").read_bytes() == (tmp_path / "second.json.gz").read_bytes()


def test_of_several_tables_the_first_that_has_a_region_counts() -> None:
    first, second = Table("d", 16, {"a": Entry(1, 1, "Add")}, "one"), Table("d", 16, {"a": Entry(9, 1, "Add")}, "two")
    third = Table("d", 16, {"b": Entry(2, 1, "Mul")})
    both = {"a": Entry(1, 1, "Add"), "b": Entry(2, 1, "Mul")}
    assert merged([first, second, third]) == Table("d", 16, both, "one, two")
    views = [Table("d", 16, {}, view_ps=view_ps) for view_ps in (9, 5)]
    assert merged(views).view_ps == 5, "the last was measured the most"


def test_a_view_costs_what_was_recorded_of_one(tmp_path: Path) -> None:
    """Nothing by a table of before that was."""
    sig = signature(OPERATORS["", "Flatten"], {}, [TensorType("float", (4, 4))])
    path = tmp_path / "t.json.gz"
    Table("d", 0, {}, view_ps=5).save(path)
    assert RecordedCost(str(path)).node(sig) == Cost(5)
    content = json.loads(gzip.decompress(path.read_bytes()))
    del content["view"]
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    assert RecordedCost(str(path)).node(sig) == Cost()


def test_an_unrecorded_region_never_pays(tmp_path: Path) -> None:
    found = RecordedCost(str(table_of(tmp_path / "t.json.gz", mlp())))
    assert found.graph(mlp())[::3] == (7, 2)
    assert found.graph(mlp(rows=5)).time_ps == NEVER_PS
    assert found.share_recorded(mlp()) == 1 and found.share_recorded(mlp(rows=5)) == 0


def test_strict_raises_for_an_unrecorded_region(tmp_path: Path) -> None:
    found = RecordedCost(str(table_of(tmp_path / "t.json.gz")), strict=True)
    with pytest.raises(CostError, match=r"node \d+: expected a recorded cost in recorded:.*, found none for MatMul"):
        found.graph(mlp())


def test_taking_an_unrecorded_region_of_the_start_away_pays_its_bound_at_most(tmp_path: Path) -> None:
    path = str(table_of(tmp_path / "t.json.gz"))
    found = load(f"recorded:{path}", start=mlp())
    first = next(node for _, node in mlp().operators())
    assert found.graph(mlp()).time_ps == bound_ps(fastest("cpu"), work(first.sig, Dims()))


def differences(extra: str = "Neg") -> Graph:
    """x - u, u + -v and something of x, by itself."""
    b = GraphBuilder({"": 20})
    x, u, v = (b.input(name, TensorType("float", (64, 64))) for name in "xuv")
    b.output("z", b.add("Sub", x, u))
    b.output("w", b.add("Add", u, b.add("Neg", v)))
    b.output("y", b.add(extra, x))
    return b.build()


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table that knows Neg and Add, at 10 µs, and Relu, at 1 µs."""
    path, graphs = tmp_path / "t.json.gz", (differences(), differences("Relu"))
    model = RecordedCost(str(table_of(path)))
    regions = [region for graph in graphs for region in model.regions(graph)]
    times = {"Neg": 10_000_000, "Add": 10_000_000, "Relu": 1_000_000}
    names = [(region, region.nodes[0].sig.op.key) for region in regions]
    costs = {region_key(r, Dims()): Entry(times[name], 1, name) for r, name in names if name in times}
    Table("a device", 16, costs).save(path)
    return str(path)


@pytest.mark.parametrize("copied", [pickled, copy, lambda model: model], ids=["pickled", "copied", "itself"])
def test_an_unrecorded_region_costs_more_than_the_whole_start(table: str, copied: Callable[..., Any]) -> None:
    start = differences()
    found = copied(load(f"recorded:{table}", start=start))
    state = RewriteState(start, rule_set("sub: Sub(x, y) => Add(x, Neg(y))\nneg: Neg(x) => Exp(x)"), found)
    whole = state.cost.time_ps
    assert whole < 10**9 and len(state.matches[1]) == 2
    assert all(state.apply(m).cost.time_ps == whole - 10_000_000 + whole + 5 for m in state.matches[1])
    state.check()


def test_a_region_of_the_start_is_granted_only_where_the_start_has_it(table: str) -> None:
    start = differences()
    rules = rule_set("minus: Add(x, Neg(y)) => Sub(x, y)\nneg: Neg(x) => Relu(x)")
    state = RewriteState(start, rules, load(f"recorded:{table}", start=start))
    (minus,), (first, *_) = state.matches
    assert state.delta(minus).time_ps == state.cost.time_ps + 5 - 20_000_000 > 0
    assert state.apply(first).cost.time_ps == state.cost.time_ps - 9_000_000  # the Sub of the start costs its bound


def test_a_model_that_is_given_learns_the_start(table: str) -> None:
    start, given = differences(), RecordedCost(table)
    assert given.graph(start).time_ps > NEVER_PS
    found = load(given, start=start)
    assert found.graph(start) == load(f"recorded:{table}", start=start).graph(start)
    assert load(found, start=differences()) is found and given.graph(start).time_ps > NEVER_PS
    other = load(found, start=differences("Exp"))
    assert other is not found and other.graph(differences("Exp")).time_ps < NEVER_PS


def test_search_and_environment_tell_a_given_model_the_start(table: str) -> None:
    rules = rule_set("neg: Neg(Neg(x)) => x\nminus: Add(x, Neg(y)) => Sub(x, y)")
    found = optimize(differences(), "greedy", rules, RecordedCost(table))
    assert not found.applied and found.before.time_ps < 10**9
    env = TasoGraphEnv(differences(), rules=rules, cost=RecordedCost(table))
    env.reset()
    assert -1000 < env.step((1, 0))[1] < 0


def test_an_unrecorded_region_for_fewer_operators_never_pays(tmp_path: Path) -> None:
    """Where it replaces the whole start, and searches take a picosecond off for each operator."""
    b = GraphBuilder({"": 20})
    b.output("y", b.add("Relu", b.add("Neg", b.add("Neg", b.input("x", TensorType("float", (2, 2)))))))
    start, rules = b.build(), rule_set("one: Relu(Neg(Neg(x))) => Exp(x)")
    table = table_of(tmp_path / "t.json.gz", start)
    assert not optimize(start, "greedy", rules, RecordedCost(str(table))).applied


def test_symbols_are_bound(tmp_path: Path) -> None:
    found = RecordedCost(str(table_of(tmp_path / "t.json.gz", mlp())), dims={"batch": 4}, strict=True)
    assert found.graph(symbolic_mlp()) == found.graph(mlp())


def test_an_unknown_table_names_the_choices() -> None:
    with pytest.raises(
        OptionError, match=r"expected a table among .*or a path that ends in \.json\.gz, found 'abacus'"
    ):
        load("recorded:abacus")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CostError, match=r"expected a table of costs, found nothing at .*none.json.gz"):
        RecordedCost(str(tmp_path / "none.json.gz"))


def packed(text: str) -> bytes:
    """Compress a text; the same bytes at any time, since they name the tests."""
    return gzip.compress(text.encode(), mtime=0)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no gzip",
        packed("no JSON"),
        packed("[]"),
        packed("[" * 100_000),
        packed('{"format": 2}'),
        packed('{"format": 1, "device": "d", "block": 0}'),
        packed(json.dumps({"format": 1, "device": "d", "block": 0, "costs": {"a": [1]}})),
        packed(json.dumps({"format": 1, "device": "d", "block": 0, "costs": {"a": ["x", 1, ""]}})),
        packed(json.dumps({"format": 1, "device": "d", "block": 0, "costs": {"a": [-1, 1, ""]}})),
        packed('{"format": 1, "device": "d", "block": 0, "costs": {"a": [Infinity, 1, ""]}}'),
        packed('{"format": 1}')[:-9],
        packed('{"format": 1}')[:10] + b"\xff" + packed('{"format": 1}')[11:],
    ],
)
def test_a_damaged_table_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.json.gz"
    path.write_bytes(content)
    with pytest.raises(CostError, match="expected") as caught:
        RecordedCost(str(path))
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)


@pytest.mark.parametrize("name", table_names())
def test_tables_of_the_package_are_sound(name: str) -> None:
    table = load(f"recorded:{name}").table  # pyright: ignore[reportAttributeAccessIssue]
    assert len(table.costs) > 100
    assert all(len(key) == 16 and entry.time_ps >= 0 and entry.kernels >= 0 for key, entry in table.costs.items())


@pytest.mark.parametrize("provider", ["CPUExecutionProvider", "CUDAExecutionProvider"])
def test_what_a_gpu_takes_at_least_is_the_bound_on_a_gpu(provider: str, tmp_path: Path) -> None:
    """A processor's would be hundreds of times that, and taking what isn't recorded away would pay as much."""
    Table(f"a device|{provider}|onnxruntime 1|1 threads", 0, {}).save(tmp_path / "t.json.gz")
    graph = mlp(1024, 1024)
    ms = RecordedCost(str(tmp_path / "t.json.gz"), start=graph).graph(graph).time_ms
    assert 0.004 < ms < 0.02 if provider.startswith("CUDA") else 6 < ms < 7


@pytest.mark.parametrize(("provider", "times"), [("CPUExecutionProvider", 8), ("CUDAExecutionProvider", 1)])
def test_what_several_threads_take_at_least_is_less(provider: str, times: int, tmp_path: Path) -> None:
    """Else taking what isn't recorded away would pay as much as one of them needs; a GPU's time is as it is."""
    bounds: list[int] = []
    for threads in (1, 8):
        Table(f"a device|{provider}|onnxruntime 1|{threads} threads", 0, {}).save(tmp_path / "t.json.gz")
        graph = mlp(1024, 1024)
        bounds.append(RecordedCost(str(tmp_path / "t.json.gz"), start=graph).graph(graph).time_ps)
    assert bounds[0] == pytest.approx(times * bounds[1])


@pytest.mark.parametrize("name", table_names())
def test_hardly_any_recorded_region_is_faster_than_its_bound(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gain of taking one away that isn't recorded would be more than all its time."""
    bounds, whole = list[tuple[int, int]](), RecordedCost.region_time

    def spied(model: RecordedCost, region: Region, load: Work) -> tuple[int, int]:
        found = whole(model, region, load)
        bounds.append((found[0], bound_ps(model.bound_device, load)))
        return found

    monkeypatch.setattr(RecordedCost, "region_time", spied)
    for network in ("BERT", "SqueezeNet1.1"):
        graph = models.build(network)
        RecordedCost(name, strict=True).graph(graph)
    faster = sum(time_ps < bound for time_ps, bound in bounds)
    assert len(bounds) > 40 and faster <= len(bounds) // 20


def test_another_recording_under_the_same_name_has_another_key(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    keys = set[str]()
    for time_ps in (10, 20, 10):
        Table("d", 0, {"a": Entry(time_ps, 1, "Add")}).save(path)
        keys.add(RecordedCost(str(path)).key)
    assert len(keys) == 2
