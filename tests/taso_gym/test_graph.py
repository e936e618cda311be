"""Graphs as values: how many operators they have, and as networkx's kind."""

import networkx as nx
import numpy as np
import pytest

from taso_gym import models
from taso_gym.builder import GraphBuilder
from taso_gym.graph import Graph, producer_of
from taso_gym.signature import Signature
from taso_gym.tensor import TensorType
from taso_gym.weights import array_weight


@pytest.fixture
def graph() -> Graph:
    """Return relu(x · transposed(w)) + x · transposed(w), in which the transposed weight is constant."""
    builder = GraphBuilder({"": 20})
    x = builder.input("x", TensorType("float", (2, 3)))
    unused = builder.weight("unused", *array_weight(np.ones(1, np.float32)))
    weight = builder.weight("w", *array_weight(np.ones((3, 3), np.float32)))
    product = builder.add("MatMul", x, builder.add("Transpose", weight, perm=[1, 0]))
    builder.output("y", builder.add("Add", builder.add("Relu", product), product))
    assert unused
    return builder.build()


def test_what_is_folded_is_no_operator(graph: Graph) -> None:
    assert len(graph) == 3 and sum(1 for _ in graph.operators()) == 4
    assert repr(graph) == "<Graph: 3 operators, 3 inputs and weights>"


@pytest.mark.parametrize("name", ["BERT", "T5Encoder"])
def test_a_network_has_as_many_operators_when_it_is_loaded_again(name: str, tmp_path) -> None:
    import taso_gym

    built = models.build(name, **({"layers": 1} if name == "BERT" else {}))
    taso_gym.save(built, tmp_path / "network.onnx")
    assert len(taso_gym.load(tmp_path / "network.onnx")) == len(built)


def test_the_digest_of_a_built_network_changes_at_the_first_save_and_stays(tmp_path) -> None:
    import taso_gym

    built = models.build("SqueezeNet1.1", image=64)
    taso_gym.save(built, tmp_path / "first.onnx")
    first = taso_gym.load(tmp_path / "first.onnx")
    taso_gym.save(first, tmp_path / "second.onnx")
    second = taso_gym.load(tmp_path / "second.onnx")
    assert built.canonical_digest() != first.canonical_digest() == second.canonical_digest()


def test_networkx_gets_operators_inputs_and_the_weights_in_use(graph: Graph) -> None:
    made = graph.to_networkx()
    assert isinstance(made, nx.MultiDiGraph) and nx.is_directed_acyclic_graph(made)
    assert sorted(made.nodes[i]["op"] for i in made) == ["Add", "Input", "MatMul", "Relu", "Transpose", "Weight"]
    kinds = {i: made.nodes[i]["signature"] for i in made}
    assert all(isinstance(kinds[i], Signature) == (i in graph.nodes) for i in made)


def test_networkx_gets_an_edge_for_each_use_with_ports_and_type(graph: Graph) -> None:
    made = graph.to_networkx()
    by_op = {made.nodes[i]["op"]: i for i in made}
    edges = {(made.nodes[a]["op"], made.nodes[b]["op"]): data for a, b, data in made.edges(data=True)}
    assert set(edges) == {
        ("Input", "MatMul"),
        ("Weight", "Transpose"),
        ("Transpose", "MatMul"),
        ("MatMul", "Relu"),
        ("MatMul", "Add"),
        ("Relu", "Add"),
    }
    assert edges["MatMul", "Add"] == {"output": 0, "input": 1, "type": TensorType("float", (2, 3))}
    assert by_op["Add"] == producer_of(graph.outputs[0])
