"""A network for one sample, and a loop over it: what is known to treat samples apart does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cost_graphs import weight
from onnx import TensorProto, helper
from operator_samples import SAMPLES, Sample

from taso_gym import models, onnx_io
from taso_gym.batch import batch_size, for_one_sample, in_a_loop, nodes_of_batch
from taso_gym.builder import GraphBuilder
from taso_gym.cost.dims import Dims
from taso_gym.cost.opaque_model import opaque_model
from taso_gym.equivalence import validate
from taso_gym.errors import TypeInferenceError
from taso_gym.graph import Graph, check, producer_of
from taso_gym.ops import Operator, evaluate
from taso_gym.signature import OpaqueOperator, Signature, signature
from taso_gym.tensor import TensorType
from taso_gym.weights import ArrayWeight

BATCH = 4
SHAPED = [s for s in SAMPLES if any(isinstance(t, TensorType) and t.shape for t in s.types)]


def batched(sample: Sample, which: tuple[int, ...]) -> tuple[Graph, list[Any]] | None:
    """Return a graph of an operator whose operands ``which`` are inputs of a batch, and all operands; None if not."""
    arrays = sample.arrays()
    for i in which:
        array = arrays[i]
        if array is None or not array.shape:
            return None
        rng = np.random.default_rng(i)
        rows = rng.permuted(np.resize(array, (BATCH * array.shape[0], *array.shape[1:])).reshape(-1))
        arrays[i] = rows.reshape(BATCH * array.shape[0], *array.shape[1:])[:BATCH]
    b = GraphBuilder({"": 20, "com.microsoft": 1})
    values = [
        None
        if array is None or t is None
        else b.input(f"x{i}", t._replace(shape=array.shape))
        if i in which
        else b.weight(f"w{i}", t, ArrayWeight(array, t.dtype))
        for i, (array, t) in enumerate(zip(arrays, sample.types, strict=True))
    ]
    try:
        made = b.add_signature(_signature(sample, b, values), values)
    except TypeInferenceError:  # its attributes don't fit to a batch
        return None
    for i, value in enumerate(made):
        b.output(f"y{i}", value)
    return b.build(), arrays


def _signature(sample: Sample, b: GraphBuilder, values: list[int | None]) -> Signature:
    return signature(sample.op, sample.attrs, [None if v is None else b.type_of(v) for v in values])


def results(graph: Graph, arrays: list[Any]) -> tuple[Any, ...]:
    """Return what the only operator of a graph gives."""
    ((_, node),) = graph.operators()
    assert isinstance(node.sig.op, Operator)
    return evaluate(node.sig.op, dict(node.sig.attrs), arrays)


CASES = [
    (sample, which)
    for sample in SHAPED
    for which in {(0,), (len(sample.operands) - 1,), tuple(range(len(sample.operands)))}
    if batched(sample, which)
]


@pytest.mark.parametrize(("sample", "which"), CASES, ids=[f"{s}-{w}" for s, w in CASES])
def test_an_operator_that_is_known_to_treat_samples_apart_does(sample: Sample, which: tuple[int, ...]) -> None:
    """Of every operator of the table: the rows of one sample are what it makes of that sample alone."""
    made = batched(sample, which)
    assert made
    graph, arrays = made
    alone = for_one_sample(graph)
    if alone is None:
        return
    whole = results(graph, arrays)
    for i in range(BATCH):
        rows = [a[i : i + 1] if at in which and a is not None else a for at, a in enumerate(arrays)]
        for found, expected in zip(results(alone, rows), whole, strict=True):
            each = len(expected) // BATCH
            np.testing.assert_allclose(found, expected[i * each : (i + 1) * each], rtol=1e-5, atol=1e-6)


def test_most_operators_are_known_to_treat_samples_apart() -> None:
    made = [(sample.key, made[0]) for sample, which in CASES if (made := batched(sample, which))]
    known = {key for key, graph in made if for_one_sample(graph)}
    assert len(known) > 0.9 * len({key for key, _ in made}), sorted({key for key, _ in made} - known)


def network(*, batch: int = BATCH, axis: int = 1) -> Graph:
    """Two windows of each sample, mixed by a product, and a Softmax."""
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (batch, 2, 6)))
    windows = b.add("Reshape", x, shape=(batch * 2, 6))
    mixed = b.add("Relu", b.add("MatMul", windows, weight(b, "w", 6, 6)), name="sample/x")
    b.output("y", b.add("Softmax", b.add("Reshape", mixed, shape=(batch, 12)), axis=axis))
    return b.build()


def test_a_loop_over_samples_computes_the_same() -> None:
    pytest.importorskip("onnxruntime")
    graph = network()
    alone = for_one_sample(graph)
    assert alone and batch_size(graph) == BATCH
    check(alone)
    assert [alone.type_of(v) for v in alone.outputs] == [TensorType("float", (1, 12))]
    loop = in_a_loop(alone, graph)
    check(loop)
    assert [n.sig.op.name for _, n in loop.operators()] == ["Reshape", "Scan", "Reshape"]
    assert loop.info.output_names == graph.info.output_names
    again = onnx_io.from_model(onnx_io.to_model(loop))
    assert validate(graph, again).ok


def test_a_loop_is_what_a_file_of_it_is() -> None:
    """By versions of operators, too; so there is a model of it that it is costed by."""
    graph = network()
    alone = for_one_sample(graph)
    assert alone
    loop = in_a_loop(alone, graph)
    again = onnx_io.from_model(onnx_io.to_model(loop))
    [scan], [read] = ([n.sig for _, n in g.operators() if n.sig.op.name == "Scan"] for g in (loop, again))
    assert isinstance(scan.op, OpaqueOperator) and isinstance(read.op, OpaqueOperator)
    assert scan.op.context == read.op.context
    model, feeds = opaque_model(scan, Dims({}))
    assert [node.op_type for node in model.graph.node] == ["Scan"] and len(feeds) == 1


def test_nodes_for_one_sample_are_those_of_the_batch() -> None:
    graph = network()
    alone = for_one_sample(graph)
    assert alone
    nodes = nodes_of_batch(alone, graph)
    assert sorted(nodes.values()) == sorted(i for i, _ in graph.operators())
    for one, many in nodes.items():
        assert alone.nodes[one].sig.op == graph.nodes[many].sig.op
        before = [nodes[producer_of(v)] for v in alone.nodes[one].inputs if v not in alone.leaves]
        assert before == [producer_of(v) for v in graph.nodes[many].inputs if v not in graph.leaves]


def gated(batch: int = BATCH) -> Graph:
    """An image whose channels are weighed by what is in all of it, and a mask that two axes are added to."""
    b = GraphBuilder({"": 20})
    x, mask = b.input("x", TensorType("float", (batch, 3, 8, 8))), b.input("m", TensorType("float", (batch, 3)))
    means = b.add("ReduceMean", x, axes=(2, 3), keepdims=0)
    weights = b.add("Unsqueeze", b.add("Mul", b.add("Sigmoid", means), mask), axes=(2, 3))
    b.output("y", b.add("Mul", x, weights))
    b.output("m2", mask)
    return b.build()


def test_several_inputs_and_outputs_are_looped_over() -> None:
    pytest.importorskip("onnxruntime")
    graph = gated()
    alone = for_one_sample(graph)
    assert alone
    loop = onnx_io.from_model(onnx_io.to_model(in_a_loop(alone, graph)))
    assert validate(graph, loop).ok


def test_operators_of_other_domains_are_known_in_a_loop() -> None:
    pytest.importorskip("onnxruntime")
    b = GraphBuilder({"": 20})
    b.output("y", b.add("QuickGelu", b.input("x", TensorType("float", (BATCH, 8))), domain="com.microsoft", alpha=1.0))
    graph = b.build()
    alone = for_one_sample(graph)
    assert alone
    model = onnx_io.to_model(in_a_loop(alone, graph))
    assert "com.microsoft" in {entry.domain for entry in model.opset_import}
    assert validate(graph, onnx_io.from_model(model)).ok


def test_a_batch_of_one_is_left_alone() -> None:
    assert for_one_sample(models.build("SqueezeNet1.1")) is None


MIXED: dict[str, Callable[[GraphBuilder, int, int], int]] = {
    "rows between samples": lambda b, x, _: b.add("Resize", x, mode="linear", scales=(2.0, 1.0)),
    "a sum over samples": lambda b, x, y: b.add("Einsum", x, y, equation="ij,kj->i"),
    "samples by samples": lambda b, x, y: b.add("Einsum", x, y, equation="ij,kj->ik"),
    "one batch after another": lambda b, x, y: b.add("Concat", nothing(b), x, y, axis=0),
    "moved": lambda b, x, _: b.add("Pad", x, pads=(-1, 0, 1, 0)),
    "twice in turn": lambda b, x, _: b.add("Tile", x, repeats=(2, 1)),
    "from the last to the first": lambda b, x, _: b.add("Slice", x, starts=(-1,), ends=(-99,), axes=(0,), steps=(-1,)),
    "columns as samples": lambda b, x, _: b.add("Transpose", x, perm=(1, 0)),
}


def nothing(b: GraphBuilder) -> int:
    """Return a constant without rows."""
    return b.weight("none", TensorType("float", (0, BATCH)), ArrayWeight(np.zeros((0, BATCH), np.float32), "float"))


@pytest.mark.parametrize("how", MIXED)
def test_what_mixes_samples_is_left_alone(how: str) -> None:
    b = GraphBuilder({"": 20})
    x, y = (b.input(name, TensorType("float", (BATCH, BATCH))) for name in "xy")
    b.output("z", MIXED[how](b, x, y))
    b.output("w", b.add("Relu", y))
    assert for_one_sample(b.build()) is None


def test_an_einsum_that_carries_samples_over_is_known() -> None:
    b = GraphBuilder({"": 20})
    x, y = (b.input(name, TensorType("float", (BATCH, BATCH))) for name in "xy")
    b.output("z", b.add("Einsum", x, y, equation="ij,ik->ijk"))
    assert for_one_sample(b.build())


def test_a_file_whose_weights_have_to_be_inputs_has_no_loop() -> None:
    """Below version 4 of the format."""
    model = onnx_io.to_model(gated())
    for version, known in ((4, True), (3, False)):
        model.ir_version = version
        assert (for_one_sample(onnx_io.from_model(model)) is not None) == known


@pytest.mark.parametrize("graph", [network(batch=1), network(axis=0)], ids=["a batch of one", "Softmax over samples"])
def test_what_mixes_samples_or_has_one_is_left_alone(graph: Graph) -> None:
    assert for_one_sample(graph) is None


def test_a_network_that_mixes_samples_by_its_shapes_is_left_alone() -> None:
    """A matrix of samples by samples; a size that only happens to be that of the batch isn't it."""
    for other in ((1, 0), (0, 1)):
        b = GraphBuilder({"": 20})
        x = b.input("x", TensorType("float", (BATCH, BATCH)))
        b.output("y", b.add("MatMul", x, b.add("Transpose", x, perm=other)))
        assert for_one_sample(b.build()) is None
    b = GraphBuilder({"": 20})
    b.output("y", b.add("MatMul", b.input("x", TensorType("float", (BATCH, BATCH))), weight(b, "w", BATCH, BATCH)))
    assert for_one_sample(b.build())


def test_what_is_drawn_once_for_all_samples_is_not_drawn_for_each() -> None:
    nodes = [helper.make_node("RandomNormal", [], ["r"], shape=[3]), helper.make_node("Add", ["x", "r"], ["y"])]
    types = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [BATCH, 3]) for name in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "g", types[:1], types[1:]))
    assert for_one_sample(onnx_io.from_model(model)) is None


def test_inputs_of_several_batches_are_left_alone() -> None:
    b = GraphBuilder({"": 20})
    x, y = (b.input(name, TensorType("float", (rows, 3))) for name, rows in (("x", BATCH), ("y", 2)))
    b.output("z", b.add("Relu", x))
    b.output("w", b.add("Relu", y))
    assert batch_size(b.build()) == 1


def test_names_and_all_that_a_file_says_are_kept() -> None:
    graph = network()
    model = onnx_io.to_model(graph)
    model.doc_string = "a network"
    graph = onnx_io.from_model(model)
    alone = for_one_sample(graph)
    assert alone
    loop = onnx_io.to_model(in_a_loop(alone, graph))
    assert loop.doc_string == "a network"
    assert [i.name for i in loop.graph.input] == ["x"] and [o.name for o in loop.graph.output] == ["y"]
    body = next(n for n in loop.graph.node if n.op_type == "Scan").attribute[0].g
    assert all(name.startswith("sample/") for n in body.node for name in n.output)
