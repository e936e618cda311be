"""Which Softmaxes of a graph write denormal floats."""

from __future__ import annotations

import numpy as np
import pytest
from masked import masked_attention

from taso_gym.builder import GraphBuilder
from taso_gym.cost import denormals
from taso_gym.cost.denormals import softmaxes, writing_denormals
from taso_gym.cost.dims import Dims
from taso_gym.cost.runtime import Runtime
from taso_gym.errors import OutOfMemoryError
from taso_gym.graph import Graph
from taso_gym.symbolic import Dim, symbol
from taso_gym.tensor import TensorType
from taso_gym.weights import array_weight

pytest.importorskip("onnxruntime")


def found(graph: Graph) -> list[int]:
    """Return the places of the Softmaxes that write denormals, on values that are drawn."""
    nodes = softmaxes(graph)
    return [nodes.index(node_id) for node_id in writing_denormals(graph, Dims(), Runtime("cpu", 1))]


@pytest.mark.parametrize("batch", [1, 3, symbol("batch")])
def test_the_one_behind_the_mask_does(batch: Dim) -> None:
    graph = masked_attention(batch=batch)
    assert found(graph) == [1] and len(softmaxes(graph)) == 2
    assert graph.nodes[softmaxes(graph)[1]].inputs != graph.nodes[softmaxes(graph)[0]].inputs


def test_float64_has_smaller_ones() -> None:
    """3.7e-44 is a usual number there."""
    assert found(masked_attention("double")) == []


def test_an_output_and_a_softmax_over_and_over() -> None:
    """One that is an output of the graph already, and one whose value another reads."""
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (4, 4)))
    far = b.add("Mul", x, b.weight("w", *array_weight(np.float32([1000.0]))))
    first = b.add("Softmax", far, name="first")
    b.output("first", first)
    b.output("second", b.add("Softmax", first))
    graph = b.build()
    assert len(softmaxes(graph)) == 2 and 1 not in found(graph)


@pytest.mark.parametrize(("masked", "score", "written"), [(1, -86, []), (9, -86, [0]), (9, -1000, [])])
def test_only_many_of_them_count(masked: int, score: float, written: list[int]) -> None:
    """One of 200 is too few; and zeros, which a lower score gives, are none."""
    b = GraphBuilder({"": 20})
    scores = np.zeros((1, 200), np.float32)
    scores[0, :masked] = score
    x = b.input("x", TensorType("float", (1, 200)))
    b.output("y", b.add("Softmax", b.add("Add", x, b.weight("w", *array_weight(scores)))))
    assert found(b.build()) == written


def test_a_constant_is_computed_beforehand() -> None:
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (1, 4)))
    mask = b.add("Softmax", b.weight("w", *array_weight(np.array([[-100, -100, 0, 0]], np.float32))))
    b.output("y", b.add("Softmax", b.add("Mul", x, mask)))
    graph = b.build()
    assert found(graph) == [] and len(softmaxes(graph)) == 1


def test_nothing_is_said_of_softmaxes_that_the_file_has_besides(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = masked_attention()
    assert found(graph) == [1]
    monkeypatch.setattr(denormals, "softmaxes", lambda graph: softmaxes(graph)[:1])
    assert writing_denormals(graph, Dims(), Runtime("cpu", 1)) == []


def test_what_there_is_no_room_for_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(denormals, "available_bytes", lambda: 200)
    with pytest.raises(OutOfMemoryError, match="at most 100 bytes, found 288"):
        found(masked_attention())
