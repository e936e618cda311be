"""Chains of elementwise operators in tiles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cost_graphs import weight
from operator_models import assert_close, feeds, run_onnxruntime
from operator_samples import SAMPLES, Sample

from taso_gym import onnx_io
from taso_gym.builder import GraphBuilder
from taso_gym.equivalence import validate
from taso_gym.graph import Graph, check
from taso_gym.tensor import TensorType
from taso_gym.tiles import ELEMENTWISE, chains, in_tiles
from taso_gym.weights import ArrayWeight

FLOAT = 4
MOST = 64 * FLOAT
"""Bytes of a value that is small enough here."""
TILE = 16 * FLOAT


def image(*shape: int) -> tuple[GraphBuilder, int]:
    """Return a graph in the making and its input."""
    b = GraphBuilder({"": 20, "com.microsoft": 1})
    return b, b.input("x", TensorType("float", shape or (1, 4, 8, 4)))


def found(graph: Graph) -> list[tuple[list[str], int, int]]:
    """Return the operators of each chain, its number of tiles, and the last axis that is cut."""
    names = [([graph.nodes[i].sig.op.key for i in c.nodes], c.tiles, c.axis) for c in chains(graph, MOST, TILE)]
    return sorted(names)


def tiled(graph: Graph) -> Graph:
    """Return a graph with all chains in tiles, which computes the same and is what a file of it is."""
    result = in_tiles(graph, chains(graph, MOST, TILE))
    check(result)
    again = onnx_io.from_model(onnx_io.to_model(result))
    assert again.canonical_digest() == onnx_io.from_model(onnx_io.to_model(again)).canonical_digest()
    report = validate(graph, again)
    assert report.ok, report.verdict
    return result


def operators(graph: Graph) -> list[str]:
    """Return the operators of a graph that move data."""
    names = [n.sig.op.name for n in map(graph.nodes.__getitem__, graph.topological_order())]
    return [name for name in names if name != "Reshape"]


def per_channel(b: GraphBuilder, *shape: int) -> int:
    """Add a weight of one, two and so on."""
    array = np.arange(1, 1 + math.prod(shape), dtype=np.float32).reshape(shape)
    return b.weight(f"weight of {shape}", TensorType("float", shape), ArrayWeight(array, "float"))


def mish(b: GraphBuilder, x: int) -> int:
    """Add six operators much as those of Mish."""
    one = per_channel(b)
    e = b.add("Exp", x)
    y = b.add("Mul", e, b.add("Add", e, one))
    return b.add("Mul", x, b.add("Div", y, b.add("Add", y, one)), name="mish")


@pytest.fixture(autouse=True)
def _runtime() -> None:
    pytest.importorskip("onnxruntime")


def test_a_chain_is_a_loop_over_its_tiles() -> None:
    b, x = image()
    b.output("y", mish(b, x))
    graph = b.build()
    assert found(graph) == [(["Exp", "Add", "Mul", "Add", "Div", "Mul"], 8, 3)]
    result = tiled(graph)
    assert operators(result) == ["Scan"]
    assert result.info.output_names == ("y",)
    assert any(node.names == ("mish",) for _, node in result.operators())


def test_values_that_are_small_enough_are_left_alone() -> None:
    b, x = image(1, 4, 4, 4)
    b.output("y", mish(b, x))
    assert not chains(b.build(), MOST, TILE)


def test_one_operator_is_no_chain() -> None:
    b, x = image()
    b.output("y", b.add("Exp", x))
    assert not chains(b.build(), MOST, TILE)


def test_weights_of_channels_are_cut_with_them_or_stay_whole() -> None:
    """Of one number a channel there is no tile smaller than a channel; a row is the same for all."""
    b, x = image()
    slope = per_channel(b, 4, 1, 1)
    b.output("y", b.add("Sin", b.add("PRelu", x, slope)))
    graph = b.build()
    assert found(graph) == []  # eight tiles of half a channel
    b, x = image(1, 16, 4, 4)
    scale = per_channel(b, 16, 1, 1)
    b.output("y", b.add("Sin", b.add("Mul", b.add("Add", x, weight(b, "row", 4)), scale)))
    graph = b.build()
    assert found(graph) == [(["Add", "Mul", "Sin"], 16, 1)]
    assert operators(tiled(graph)) == ["Scan"]


def test_what_is_computed_for_a_channel_is_cut_with_it() -> None:
    b, x = image(1, 16, 4, 4)
    gate = b.add("Sigmoid", b.add("ReduceMean", x, axes=(2, 3)))
    b.output("y", b.add("Sin", b.add("Mul", x, gate)))
    graph = b.build()
    assert found(graph) == [(["Mul", "Sin"], 16, 1)]
    assert operators(tiled(graph)) == ["ReduceMean", "Sigmoid", "Scan"]


def test_what_is_computed_for_all_is_not_in_tiles() -> None:
    b, x = image()
    b.output("y", b.add("Sin", b.add("Div", x, b.add("ReduceMax", x, axes=(0, 1, 2, 3)))))
    assert not chains(b.build(), MOST, TILE)


def test_a_weight_that_is_the_same_for_all_rows_is_cut_between_them() -> None:
    """Of which there have to be enough."""
    b, x = image(8, 16)
    b.output("y", b.add("Sin", b.add("Add", x, weight(b, "w", 1, 16))))
    assert found(b.build()) == [(["Add", "Sin"], 8, 0)]
    b, x = image(8, 16)
    b.output("y", b.add("Sin", b.add("Add", b.add("Reshape", x, shape=(2, 64)), weight(b, "w", 1, 64))))
    assert not chains(b.build(), MOST, TILE)


def test_what_others_need_ends_a_chain() -> None:
    """Here the first one are needed by a product as well."""
    b, x = image(16, 16)
    first = b.add("Sin", b.add("Abs", x))
    b.output("y", b.add("Sqrt", b.add("Abs", b.add("Add", first, b.add("MatMul", first, weight(b, "w", 16, 16))))))
    graph = b.build()
    assert found(graph) == [(["Abs", "Sin"], 16, 1), (["Add", "Abs", "Sqrt"], 16, 1)]
    assert operators(tiled(graph)) == ["Scan", "MatMul", "Scan"]


def test_an_output_ends_a_chain() -> None:
    b, x = image()
    first = b.add("Sin", b.add("Abs", x))
    b.output("first", first)
    b.output("y", b.add("Cos", b.add("Neg", first)))
    graph = b.build()
    assert found(graph) == [(["Abs", "Sin"], 8, 3), (["Neg", "Cos"], 8, 3)]
    assert tiled(graph).info.output_names == ("first", "y")


def test_two_values_of_one_shape_are_cut_alike() -> None:
    b, x = image()
    other = b.input("z", TensorType("float", (1, 4, 8, 4)))
    b.output("y", b.add("Tanh", b.add("Mul", b.add("Abs", x), b.add("Exp", other))))
    graph = b.build()
    assert sorted(found(graph)[0][0]) == ["Abs", "Exp", "Mul", "Tanh"]
    assert operators(tiled(graph)) == ["Scan"]


def test_what_two_chains_read_is_reshaped_once() -> None:
    b, x = image()
    b.output("y", b.add("Sin", b.add("Abs", x)))
    b.output("z", b.add("Cos", b.add("Neg", x)))
    result = tiled(b.build())
    assert operators(result) == ["Scan", "Scan"]
    assert sum(node.sig.op.name == "Reshape" for _, node in result.operators()) == 3


def test_sizes_without_a_number_of_tiles_are_left_alone() -> None:
    b, x = image(1, 127)
    b.output("y", b.add("Sin", b.add("Abs", x)))
    assert not chains(b.build(), MOST, TILE)


def test_a_file_that_can_not_hold_loops_has_none() -> None:
    b = GraphBuilder({"": 8})
    x = b.input("x", TensorType("float", (16, 16)))
    b.output("y", b.add("Exp", b.add("Neg", x)))
    assert not chains(b.build(), MOST, TILE)


def test_operators_of_other_domains_are_known_in_tiles() -> None:
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (16, 16)))
    b.output("y", b.add("Abs", b.add("QuickGelu", x, domain="com.microsoft", alpha=1.0)))
    assert tiled(b.build()).info.opsets == {"": 20, "com.microsoft": 1}


CASES = [sample for sample in SAMPLES if sample.key in ELEMENTWISE]


def test_each_elementwise_operator_has_a_sample() -> None:
    assert {sample.key for sample in CASES} == ELEMENTWISE


def of_sample(sample: Sample, every: bool) -> Graph:
    """Return a graph of an operator and one more, whose first operand is its input, or each."""
    b = GraphBuilder({"": 20, "com.microsoft": 1})
    values = [
        None if t is None or array is None
        else b.input(f"x{i}", t) if every or not i
        else b.weight(f"w{i}", t, ArrayWeight(array, t.dtype))
        for i, (array, t) in enumerate(zip(sample.arrays(), sample.types, strict=True))
    ]  # fmt: skip
    result = b.add_signature(sample.signature, values)[0]
    dtype = sample.signature.outputs[0].dtype
    b.output(
        "y", b.add("Not", result) if dtype == "bool" else b.add("Where", b.add("Equal", result, result), result, result)
    )
    return b.build()


@pytest.mark.parametrize("every", [False, True], ids=["first", "each"])
@pytest.mark.parametrize("sample", CASES, ids=str)
def test_an_elementwise_operator_computes_the_same_in_tiles(sample: Sample, every: bool) -> None:
    """Of every one that is said to be, whatever tiles its first operand, or each, is cut into."""
    graph = of_sample(sample, every)
    inputs = {name: array for name, array in feeds(sample).items() if every or name == "x0"}
    (wanted,) = run_onnxruntime(onnx_io.to_model(graph), inputs)
    for tile in (1, 4, 16, 32):
        for chain in chains(graph, 0, tile):
            result = in_tiles(graph, [chain])
            check(result)
            (given,) = run_onnxruntime(onnx_io.to_model(result), inputs)
            assert_close(given, wanted)
