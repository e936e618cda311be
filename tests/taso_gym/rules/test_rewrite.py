"""Rewrites on the maps: dead code, names, opaque consumers, and that a prediction equals the rewrite."""

import pytest
from matching_graphs import graph_of, random_graph, rule_set, show, transformer

from taso_gym.builder import GraphBuilder
from taso_gym.graph import Graph, check, value_of
from taso_gym.rules.matching import Matches
from taso_gym.rules.overlay import Overlay
from taso_gym.rules.rewrite import predict, rewrite
from taso_gym.rules.state import RewriteState
from taso_gym.signature import OpaqueOperator, opaque_signature
from taso_gym.tensor import TensorType

X = TensorType("float", (2,))


def only_child(graph: Graph, rules: str) -> Graph:
    """Return what the one legal match makes of a graph."""
    state = RewriteState(graph, rule_set(rules))
    (match,) = (match for row in state.matches for match in row)
    child = state.apply(match)
    check(child.graph)
    return child.graph


FORGET = "r: Sub(x, y) => Neg(x)"
"""False, but it leaves a bound value unused."""


def test_what_only_the_match_used_dies() -> None:
    graph = graph_of("Sub(x, Exp(Abs(y))), Abs(z)", x="2", y="2", z="2")
    assert show(only_child(graph, FORGET)) == "Neg(x), Abs(z)"


def test_what_others_use_lives_on() -> None:
    graph = graph_of("Sub(x, Exp(Abs(y))), Sqrt(Abs(y))", x="2", y="2")
    assert show(only_child(graph, FORGET)) == "Neg(x), Sqrt(Abs(y))"
    assert len(only_child(graph, FORGET)) == 3


def test_a_dead_branch_of_the_right_side_is_not_kept() -> None:
    graph = graph_of("Relu(Split(x, axis=0, split=[1, 1])[0])", x="2")
    rules = "r: *Split(x, axis=0, split=[1, 1]) => Slice(x, starts=[0], ends=[1]), Slice(x, starts=[1], ends=[2])"
    assert len(only_child(graph, rules)) == 2


@pytest.mark.parametrize("pure", [True, False])
def test_an_opaque_operator_dies_only_if_it_is_pure(pure: bool) -> None:
    builder = GraphBuilder({"": 20})
    x = builder.input("x", X)
    opaque = opaque_signature(OpaqueOperator("my", "Op", b"", pure), (X,), (X,))
    (value,) = builder.add_signature(opaque, [x])
    builder.output("y", builder.add("Sub", x, value))
    assert len(only_child(builder.build(), FORGET)) == (1 if pure else 2)


def test_a_list_on_the_right_side_is_a_constant_of_one_axis() -> None:
    rules = "r: Relu(x) => Gather(Mul(x, [0.5, 4.0]), [1, 0], axis=0) if shape(x) == [2]"
    graph = only_child(graph_of("Relu(x)", x="2"), rules)
    weights = [leaf.weight.array() for leaf in graph.leaves.values() if leaf.weight]
    assert sorted((w.dtype.name, w.tolist()) for w in weights) == [("float32", [0.5, 4.0]), ("int64", [1, 0])]


def test_names_are_carried_to_what_replaces_them() -> None:
    builder = GraphBuilder({"": 20})
    x = builder.input("x", X)
    inner = builder.add("Relu", x, name="inner")
    outer = builder.add("Relu", inner, name="outer")
    builder.output("y", builder.add("Neg", outer, name="last"))
    child = only_child(builder.build(), "r: Relu(Relu(x)) => Relu(x)")
    assert sorted(str(name) for _, node in child.operators() for name in node.names) == ["last", "outer"]


def test_a_consumer_of_several_replaced_outputs_is_rewired_once() -> None:
    graph = graph_of("Sub(Split(x, axis=0, split=[1, 1])[1], Split(x, axis=0, split=[1, 1])[0])", x="2")
    rules = "r: *Split(x, axis=0, split=[1, 1]) => Slice(x, starts=[0], ends=[1]), Slice(x, starts=[1], ends=[2])"
    state = RewriteState(graph, rule_set(rules))
    child = state.apply(state.matches[0][0])
    (consumer,) = (i for i, node in graph.operators() if node.sig.op.name == "Sub")
    assert child.edit is not None and child.edit.rewired == (consumer,)
    check(child.graph)


def test_hashes_do_not_depend_on_the_way() -> None:
    rules = rule_set("a: Relu(Relu(x)) => Relu(x)\nb: Neg(Neg(x)) => x")
    state = RewriteState(graph_of("Relu(Relu(x)), Neg(Neg(Abs(y)))", x="2", y="2"), rules)
    (first,), (second,) = state.matches
    assert state.apply(first).apply(second).hash == state.apply(second).apply(first).hash


def test_operand_order_of_commutative_operators_makes_no_difference() -> None:
    one, two = (graph_of(text, x="2", y="2x2") for text in ("Add(x, Mul(y, x))", "Add(Mul(x, y), x)"))
    assert one == two and one.hash == two.hash
    assert graph_of("Sub(x, y)", x="2", y="2") != graph_of("Sub(y, x)", x="2", y="2")


@pytest.mark.parametrize("graph", [transformer(), *map(random_graph, range(6))])
def test_a_prediction_equals_the_rewrite(graph: Graph) -> None:
    state = RewriteState(graph, rule_set())
    assert isinstance(state._all, Matches)
    for site in state._all.sites().values():
        done, predicted = rewrite(graph, site), predict(graph, site)
        for name in ("hash", "removed", "added", "rewired", "dead", "touched"):
            assert getattr(done, name) == getattr(predicted, name), name


def test_an_overlay_leaves_what_is_beneath() -> None:
    base = {1: "a", 2: "b"}
    overlay = Overlay(base)
    overlay[1] = "c"
    assert overlay.pop(2) == "b" and overlay.get(2) is None and overlay[1] == "c" and overlay.get(3, "d") == "d"
    assert base == {1: "a", 2: "b"} and overlay.read == {2, 3}
    with pytest.raises(KeyError):
        overlay[2]


def test_ids_are_never_used_again() -> None:
    state = RewriteState(graph_of("Relu(Relu(Relu(x)))", x="2"), rule_set("r: Relu(Relu(x)) => Relu(x)"))
    while state.matches[0]:
        child = state.apply(state.matches[0][0])
        assert child.edit is not None and min(child.edit.added) >= state.graph.next_id
        state = child
    assert value_of(max(state.graph.nodes)) < value_of(state.graph.next_id)
