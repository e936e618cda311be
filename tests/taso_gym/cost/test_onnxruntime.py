"""The measured model: figures that make sense, kept in its cache, and failures that don't stop a search."""

import pickle
import subprocess
import sys
from copy import copy
from itertools import count
from math import prod
from pathlib import Path
from typing import Any

import pytest
from cost_graphs import mlp, symbolic_mlp, weight
from onnx import TensorProto, helper

from taso_gym.builder import GraphBuilder
from taso_gym.cost import load, onnxruntime, placed, small_model
from taso_gym.cost.cache import Cache
from taso_gym.cost.devices import fastest
from taso_gym.cost.dims import Dims
from taso_gym.cost.executed import smallest_view
from taso_gym.cost.node_times import NodeTimes
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.region import FUSED
from taso_gym.cost.regional import NEVER_PS
from taso_gym.cost.roofline import bound_ps
from taso_gym.cost.work import work
from taso_gym.cost_model import Cost
from taso_gym.errors import CostError, KernelError, MissingPackageError, OptionError, OutOfMemoryError
from taso_gym.graph import Graph
from taso_gym.onnx_io import from_model
from taso_gym.ops import OPERATORS
from taso_gym.signature import OpaqueOperator, opaque_signature, signature
from taso_gym.tensor import TensorType

pytest.importorskip("onnxruntime")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache of the test's own."""
    return tmp_path / "cache.sqlite"


def product(rows: int) -> Graph:
    """A graph of one square product."""
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (rows, rows)))
    b.output("y", b.add("MatMul", x, x))
    return b.build()


def test_more_work_takes_longer(cache: Path) -> None:
    found = OnnxRuntimeCost(cache=cache)
    small, large = (found.graph(product(rows)) for rows in (64, 256))
    assert 0 < 10 * small.time_ps < large.time_ps  # 64 times the work
    assert (small.kernels, small.flops) == (1, 2 * 64**3)


def test_what_was_measured_is_read_back(cache: Path) -> None:
    asked: list[str] = []
    first = OnnxRuntimeCost(cache=cache, progress=asked.append).graph(mlp())
    assert len(asked) == 1 and asked[0].startswith("MatMul")
    assert OnnxRuntimeCost(cache=cache, progress=asked.append).graph(mlp()) == first
    assert len(asked) == 1


def test_an_epilogue_costs_nothing_by_itself(cache: Path) -> None:
    found, graph = OnnxRuntimeCost(cache=cache), mlp(256, 256)
    times = [found.node(n.sig, found.context(graph, i)).time_ps for i, n in graph.operators()]
    assert times[0] > 0 and times[1:] == [0, 0]
    assert [found.context(graph, i) for i, _ in graph.operators()][1:] == [FUSED, FUSED]


@pytest.fixture
def seen(cache: Path) -> tuple[OnnxRuntimeCost, Path]:
    """A model that knows what a view takes, and its cache: on a busy machine some looks can't tell it from 0."""
    caches = [cache.with_name(f"cache-{number}.sqlite") for number in range(10)]
    return next((model, path) for path in caches if (model := OnnxRuntimeCost(cache=path)).view_ps)


def test_a_view_costs_what_running_a_node_takes(seen: tuple[OnnxRuntimeCost, Path]) -> None:
    """Whatever its size, as it moves nothing; none is left of an Identity and of what is folded."""
    model, _ = seen
    large = signature(OPERATORS["", "Reshape"], {"shape": (2**20,)}, [TensorType("float", (2**10, 2**10))])
    small = signature(OPERATORS["", "Unsqueeze"], {"axes": (0,)}, [TensorType("float", (1,))])
    found = model.node(large)
    assert found == Cost(found.time_ps) == model.node(small) and 0 < found.time_ps < 10**8
    assert model.node(signature(OPERATORS["", "Identity"], {}, [TensorType("float", (4,))])) == Cost()
    assert model.node(signature(OPERATORS["", "Flatten"], {}, [TensorType("float", (4, 4), const=True)])) == Cost()


def test_what_views_take_is_measured_in_turns(
    seen: tuple[OnnxRuntimeCost, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a graph cost what one look says, which may have been taken in a slow phase; turns take known times."""
    model, cache = seen
    once, key = model.view_ps, smallest_view(model.runtime).key
    assert once > 0 and NodeTimes(model.runtime, cache).interval(key, 0.0) is None
    times = count(1000)
    monkeypatch.setattr(NodeTimes, "_measure", lambda _, turns: [(next(times), 0) for _ in turns])
    found = model.in_turns([mlp()]).view_ps
    low, high = NodeTimes(model.runtime, cache).interval(key, 0.0) or (0, 0)
    assert 0 < low <= found <= high and model.view_ps == once


def test_symbols_are_bound(cache: Path) -> None:
    found = OnnxRuntimeCost(dims={"batch": 4}, cache=cache)
    assert found.graph(symbolic_mlp()) == found.graph(mlp())


def test_an_operator_that_fails_never_pays(cache: Path) -> None:
    found = OnnxRuntimeCost(cache=cache)
    sig = signature(OPERATORS["", "Sin"], {}, [TensorType("bfloat16", (4,))])  # a type that its kernel doesn't take
    assert found.node(sig).time_ps == NEVER_PS
    assert OnnxRuntimeCost(cache=cache).node(sig).time_ps == NEVER_PS


def test_an_operator_too_large_for_memory_never_pays(cache: Path) -> None:
    sig = signature(OPERATORS["", "Relu"], {}, [TensorType("float", (1 << 20, 1 << 20))])
    assert OnnxRuntimeCost(cache=cache).node(sig).time_ps == NEVER_PS


def test_taking_an_operator_that_fails_away_pays_its_bound_at_most(cache: Path) -> None:
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (1 << 20, 1 << 20)))
    b.output("y", b.add("Relu", x))  # too large for memory
    graph = b.build()
    for model in (found := OnnxRuntimeCost(cache=cache, start=graph), copy(found), pickle.loads(pickle.dumps(found))):  # noqa: S301
        (node,) = (node for _, node in graph.operators())
        assert model.graph(graph).time_ps == bound_ps(fastest("cpu"), work(node.sig, Dims())) < NEVER_PS


def failing(error: Exception) -> Any:
    """A function that raises an error, whatever it is given."""

    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


def unique(rows: int) -> Graph:
    """A graph of one operator that the table doesn't know."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])
    model = helper.make_graph([helper.make_node("Unique", ["x"], ["y"], sorted=1)], "g", [x], [y])
    return from_model(helper.make_model(model, opset_imports=[helper.make_opsetid("", 20)], ir_version=10))


@pytest.mark.parametrize("graph", [mlp(64, 256), unique(1 << 10)], ids=["region", "opaque"])
@pytest.mark.parametrize("lacking", ["disk", "driver"])
def test_what_is_not_the_operators_fault_is_an_error_and_not_remembered(
    lacking: str, graph: Graph, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = OnnxRuntimeCost(cache=cache)
    found.layouts  # noqa: B018  # which are measured, too
    with monkeypatch.context() as patch:
        patch.setattr(found.runtime, "open", failing({"disk": CostError, "driver": KernelError}[lacking]("lost")))
        patch.setattr(found.runtime, "expect_working", failing(CostError("lost")))
        with pytest.raises(CostError, match="lost"):
            found.graph(graph)
    assert found.graph(graph).time_ps > 0 and found.graph(graph) == OnnxRuntimeCost(cache=cache).graph(graph)
    assert found.graph(graph).time_ps < NEVER_PS


@pytest.mark.parametrize("error", [MemoryError(), OutOfMemoryError("too little")])
def test_memory_that_is_short_fails_an_operator_for_now(
    error: Exception, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = OnnxRuntimeCost(cache=cache)
    found.layouts  # noqa: B018
    monkeypatch.setattr(found.runtime, "open", failing(error))
    assert found.graph(mlp()).time_ps == NEVER_PS
    assert OnnxRuntimeCost(cache=cache).graph(mlp()).time_ps < NEVER_PS


def test_operators_of_strings_fail_without_stopping_a_search(cache: Path) -> None:
    texts = [helper.make_tensor_value_info(name, TensorProto.STRING, [3]) for name in "xy"]
    model = helper.make_graph([helper.make_node("StringNormalizer", ["x"], ["y"])], "g", texts[:1], texts[1:])
    graph = from_model(helper.make_model(model, opset_imports=[helper.make_opsetid("", 20)], ir_version=10))
    cost = OnnxRuntimeCost(cache=cache).graph(graph)
    assert cost.kernels == 1 and OnnxRuntimeCost(cache=cache).graph(graph) == cost


def test_more_constants_than_a_model_takes_fail(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_model, "LARGEST_BYTES", 4 * 8 * 8)  # as many as the product has, without the bias
    assert OnnxRuntimeCost(cache=cache).graph(mlp()).time_ps == NEVER_PS


@pytest.mark.slow  # 7 GB of memory
def test_a_weight_that_no_model_could_hold_is_measured(cache: Path) -> None:
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (1, 4096)))
    b.output("y", b.add("MatMul", x, weight(b, "w", 4096, 1 << 17)))  # 2 GiB
    assert 0 < OnnxRuntimeCost(cache=cache).graph(b.build()).time_ps < NEVER_PS


def test_an_opaque_operator_is_measured_as_it_stands(cache: Path) -> None:
    found = OnnxRuntimeCost(cache=cache)
    small, large = (found.graph(unique(rows)) for rows in (1 << 10, 1 << 16))
    assert small.kernels == 1 and 0 < 10 * small.time_ps < large.time_ps  # 64 times the work
    asked: list[str] = []
    assert OnnxRuntimeCost(cache=cache, progress=asked.append).graph(unique(1 << 10)) == small and not asked


def test_an_opaque_operator_that_does_not_run_is_costed_by_its_bytes(cache: Path) -> None:
    t = TensorType("float", (30, 100))
    node = helper.make_node("Mystery", [""], ["present"], domain="my.domain").SerializeToString()
    sig = opaque_signature(OpaqueOperator("my.domain", "Mystery", node, pure=True), (t,), (t,))
    assert OnnxRuntimeCost(cache=cache).node(sig) == Cost(24_000 * 1000 // 320, 0, 24_000, 1)
    assert OnnxRuntimeCost(cache=cache, threads=2).node(sig) == Cost(24_000 * 1000 // 640, 0, 24_000, 1)


def test_a_pickled_model_keeps_its_cache(cache: Path) -> None:
    found = OnnxRuntimeCost(cache=cache)
    cost = found.graph(mlp())
    assert pickle.loads(pickle.dumps(found)).graph(mlp()) == cost  # noqa: S301
    other = pickle.dumps(found)
    cache.unlink()
    asked = pickle.loads(other)  # noqa: S301
    assert asked.graph(mlp()).kernels == cost.kernels and cache.exists()


def test_other_sizes_are_looked_at_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a model fits into the cache depends on its sizes."""
    monkeypatch.setattr(placed, "cache_bytes", lambda: 1 << 20)
    graph = symbolic_mlp()
    one = OnnxRuntimeCost(cache=cache, dims={"batch": 1}, start=graph)
    assert not one.depends_on_cache
    assert one.bound({"batch": 1 << 16}).started(graph).depends_on_cache
    assert one.bound({"batch": 1}) is one


def test_two_processes_agree(cache: Path) -> None:
    code = (
        "from cost_graphs import mlp; from taso_gym.cost.onnxruntime import OnnxRuntimeCost;"
        f"print(OnnxRuntimeCost(cache={str(cache)!r}).graph(mlp(16, 64)).time_ps)"
    )
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); {code}"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = (process.communicate(timeout=120)[0] for process in processes)
    assert first == second != ""


def signs(found: OnnxRuntimeCost, graph: Graph, op: str) -> list[bool]:
    """Whether the operator's first operand is of either sign where its kernel is measured, for each of its regions."""
    regions = [region for region in found.regions(graph) if region.nodes[0].sig.op.name == op]
    kernels = [node for region in regions for node in found.executed_alone(region) if node.key.startswith(op)]
    firsts = [next(iter(node.feeds.values())).numpy() for node in kernels]
    return [bool(first.min() < 0 < first.max()) for first in firsts]


def test_kernels_that_branch_on_the_sign_are_measured_on_either(cache: Path) -> None:
    """PRelu's takes ten times as long where signs can't be foreseen as on positive values."""
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (1, 64, 56, 56)))
    b.output("y", b.add("PRelu", x, weight(b, "s", 64, 1, 1)))
    assert signs(OnnxRuntimeCost(cache=cache), b.build(), "PRelu") == [True]


def test_values_out_of_blocks_are_of_either_sign(cache: Path) -> None:
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (1, 32, 56, 56)))
    image = b.add("Conv", x, weight(b, "w", 64, 32, 1, 1))
    slope = weight(b, "s", 64, 1, 1)
    b.output("y", b.add("Conv", b.add("PRelu", image, slope), weight(b, "v", 32, 64, 1, 1)))
    assert signs(OnnxRuntimeCost(cache=cache), b.build(), "PRelu") == [True]


def test_a_cache_with_nonsense_in_it_is_one_line(cache: Path) -> None:
    found = OnnxRuntimeCost(cache=cache)
    found.graph(mlp())
    Cache(cache)._run(lambda db: db.execute("UPDATE measurements SET value = 'nonsense'"))  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(CostError, match=r"expected a measurement as JSON, found 'nonsense' in .* delete that file"):
        OnnxRuntimeCost(cache=cache).graph(mlp())


def test_nodes_that_went_with_a_cache_that_was_set_aside_are_measured_again(cache: Path) -> None:
    """A process that is at it goes on with the times that it knows, and writes what it doesn't into the new one."""
    found = OnnxRuntimeCost(cache=cache)
    found.graph(mlp())
    (region,) = found.regions(mlp())
    Cache(cache)._run(lambda db: db.execute("DELETE FROM measurements"))  # pyright: ignore[reportPrivateUsage]
    executed = found.executed_in(region)
    assert len(executed or ()) == 1
    asked: list[str] = []
    again = OnnxRuntimeCost(cache=cache, progress=asked.append)
    assert again.graph(mlp()).kernels == 1 and again.executed_in(region) == executed and len(asked) == 1
    third = OnnxRuntimeCost(cache=cache, progress=asked.append)
    assert third.graph(mlp()) == again.graph(mlp()) and len(asked) == 1


def test_nodes_that_a_cache_has_under_other_names_stay_as_they_are(cache: Path) -> None:
    found = OnnxRuntimeCost(cache=cache)
    before = found.graph(mlp())
    (region,) = found.regions(mlp())
    (key,) = found.executed_in(region) or []
    change = "UPDATE measurements SET {0} = replace({0}, ?, 'Renamed')"
    for column in ("key", "value"):
        Cache(cache)._run(lambda db, column=column: db.execute(change.format(column), (key.partition("[")[0],)))  # pyright: ignore[reportPrivateUsage]
    again = OnnxRuntimeCost(cache=cache)
    assert again.graph(mlp()) == before == again.in_turns([mlp()]).graph(mlp())


def test_the_key_names_all_that_times_depend_on(cache: Path) -> None:
    import onnxruntime

    key = OnnxRuntimeCost(dims={"n": 2}, threads=2, cache=cache).key
    assert all(part in key for part in ("CPUExecutionProvider", onnxruntime.__version__, "2 threads", "[n=2]"))
    b = GraphBuilder({"": 17})
    b.output("y", b.add("Relu", b.input("x", TensorType("float", (4,)))))
    starts = [OnnxRuntimeCost(cache=cache, start=b.build(), outside=share).key for share in (None, 0.25)]
    assert all("opset 17" in each for each in starts) and "opset 17" not in key
    assert ["0.25 out of the cache" in each for each in starts] == [False, True]


def test_a_missing_provider_is_an_error() -> None:
    with pytest.raises(CostError, match="expected onnxruntime with the provider CUDAExecutionProvider, found"):
        load("onnxruntime:cuda")


@pytest.mark.gpu
def test_more_work_takes_longer_in_the_cuda_provider(cache: Path) -> None:
    found = load("onnxruntime:cuda", cache=cache)
    small, large = (found.graph(product(rows)) for rows in (1024, 8192))
    assert 0 < 50 * small.time_ps < large.time_ps  # 512 times the work
    assert "CUDAExecutionProvider" in found.key and small.kernels == large.kernels == 1


@pytest.mark.gpu
def test_what_the_cuda_provider_took_is_read_back(cache: Path) -> None:
    asked: list[str] = []
    first = load("onnxruntime:cuda", cache=cache, progress=asked.append).graph(mlp())
    measured = len(asked)
    assert measured and 0 < first.time_ms < 10
    assert load("onnxruntime:cuda", cache=cache, progress=asked.append).graph(mlp()) == first
    assert len(asked) == measured


@pytest.mark.parametrize("call", [lambda: load("onnxruntime:tpu"), lambda: load("onnxruntime", threads=0)])
def test_options_are_checked(call: object) -> None:
    with pytest.raises(OptionError, match="expected"):
        call()  # pyright: ignore[reportCallIssue]


def test_a_missing_package_names_the_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'taso-gym\[cpu\]' or 'taso-gym\[gpu\]' brings it$"):
        load("onnxruntime")


def test_a_fused_sum_is_costed_as_done_in_place(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A convolution that adds to a value overwrites it in a network; alone its kernel has to copy it first."""
    b, images = GraphBuilder({"": 20}), list[int]()
    value = b.input("x", TensorType("float", (1, 64, 112, 112)))
    for name in "uvwz":
        value = b.add("Conv", value, weight(b, name, 64, 1, 1, 1), group=64)
        images.append(value)
        value = b.add("Add", value, images[0]) if name == "v" else value
    b.output("y", value)
    graph, found, copied = b.build(), OnnxRuntimeCost(cache=cache), list[int]()

    def times_of_copies(values: list[Any], _cold: bool) -> list[int]:
        copied.extend(prod(value.shape()) for value in values)
        return [30] * len(values)

    def times(models: list[object], _cold: bool) -> list[int]:
        return [100] * len(models)

    monkeypatch.setattr(found.runtime, "times", times)
    monkeypatch.setattr(found.runtime, "times_of_copies", times_of_copies)
    times = [
        found.node(n.sig, found.context(graph, i)).time_ps for i, n in graph.operators() if n.sig.op.name == "Conv"
    ]
    assert found.graph(graph).time_ps == sum(times)
    with_sum, without = times[1:3]
    assert with_sum == without - 30 and copied == [64 * 112 * 112]


def test_a_start_of_another_opset_or_wiring_is_another_start(cache: Path) -> None:
    def start(opset: int, turned: bool = False) -> Graph:
        t = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in "xyz"]
        operands = ["y", "x"] if turned else ["x", "y"]
        graph = helper.make_graph([helper.make_node("Sub", operands, ["z"])], "g", t[:2], t[2:])
        opsets = [helper.make_opsetid("", opset)]
        return from_model(helper.make_model(graph, opset_imports=opsets, ir_version=8))

    first = OnnxRuntimeCost(cache=cache, start=start(13))
    assert first.started(start(13)) is first
    assert "opset 17" in first.started(start(17)).key and "opset 13" in first.key
    assert first.started(start(13, turned=True)) is not first


def test_a_start_that_is_not_searched_is_not_measured(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placed, "cache_bytes", lambda: 1)  # neither stays in it
    asked = list[str]()
    first = OnnxRuntimeCost(cache=cache, start=mlp(), progress=asked.append)
    other = first.started(mlp(rows=2))
    assert first.with_outside(0.5).outside == 0.5 and not asked
    assert 0 <= other.outside <= 1 and "a whole graph" in asked


def test_a_pickled_model_asks_the_machine_for_its_blocks(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = OnnxRuntimeCost(cache=cache)
    assert found.layouts.block
    text = pickle.dumps(found)
    cache.unlink()
    monkeypatch.setattr(onnxruntime, "block_channels", lambda _: 4)
    assert pickle.loads(text).layouts.block == 4  # noqa: S301
