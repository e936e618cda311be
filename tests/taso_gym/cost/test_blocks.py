"""Layouts that are carried over to another graph are those that are found there from scratch."""

import random

import pytest
from cost_graphs import weight

from taso_gym import models
from taso_gym.builder import GraphBuilder
from taso_gym.cost.blocks import Blocks, BlocksByGraph
from taso_gym.cost.layout import Layouts
from taso_gym.graph import Graph, producer_of, value_of
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.tensor import TensorType

LAYOUTS = Layouts(16)


def found(graph: Graph, blocks: Blocks) -> dict[int, bool]:
    """Return what is said of every value that a node makes."""
    pairs = ((i, output) for i, node in graph.operators() for output in range(len(node.sig.outputs)))
    return {value: blocks[value] for value in (value_of(*pair) for pair in pairs)}


def check(before: Graph, known: Blocks, after: Graph) -> Blocks:
    """Assert that the layouts of a graph, and which are others than before, are those from scratch; return them."""
    blocks, moved = known.changed(after, differing(before, after))
    old, new = found(before, Blocks(before, LAYOUTS)), found(after, Blocks(after, LAYOUTS))
    assert found(after, blocks) == new
    assert moved == {value for value in old.keys() & new.keys() if old[value] != new[value]}
    return blocks


def differing(before: Graph, after: Graph) -> set[int]:
    """Return the nodes that aren't the same in both graphs, and those whose outputs have other readers."""
    records = [{i: (node.sig, node.inputs) for i, node in graph.nodes.items()} for graph in (before, after)]
    nodes = {i for i in before.nodes | after.nodes if records[0].get(i) != records[1].get(i)}
    uses = {v for v in before.uses | after.uses if before.uses.get(v) != after.uses.get(v)}
    return nodes.union(map(producer_of, uses))


@pytest.mark.parametrize("name", ["ResNet18", "SqueezeNet1.1"])
def test_layouts_are_carried_over_rewrites(name: str) -> None:
    rng = random.Random(0)
    state = RewriteState(models.build(name, image=64), RuleSet.load("default"))
    known = Blocks(state.graph, LAYOUTS)
    for _ in range(12):
        legal = [match for row in state.matches for match in row]
        for match in rng.sample(legal, min(len(legal), 8)):
            check(state.graph, known, state.child_graph(match))
        child = state.apply(rng.choice(legal))
        state, known = child, check(state.graph, known, child.graph)


def chain(readers: int, blocked: bool = True) -> Graph:
    """Build a convolution that is normalised, scaled, clipped and then pooled between sums; nodes keep their ids."""
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (1, 16, 8, 8)))
    x = b.add("Conv", x, weight(b, "w", 16, 16, 1, 1)) if blocked else b.add("Sin", x)
    normal = b.add("BatchNormalization", x, *(weight(b, part, 16) for part in "smbv"))
    clipped = b.add("Clip", b.add("Mul", normal, weight(b, "scale", 16, 1, 1)))
    for _ in range(20):
        clipped = b.add("Relu", b.add("Add", clipped, clipped))
    b.output("y", clipped)
    for reader in range(1, readers):
        b.output(f"y{reader}", b.add("Sin", x))
    return b.build()


@pytest.mark.parametrize(("before", "after"), [((1,), (2,)), ((2,), (1,)), ((1,), (1, False)), ((1, False), (1,))])
def test_what_changes_far_away_is_followed(before: tuple[int, bool], after: tuple[int, bool]) -> None:
    """A second reader of the convolution keeps the Clip from being folded, and what follows from blocks."""
    first, second = chain(*before), chain(*after)
    check(first, Blocks(first, LAYOUTS), second)


def test_layouts_of_the_last_graphs_are_kept() -> None:
    kept, graphs = BlocksByGraph(LAYOUTS), [chain(1) for _ in range(20)]
    first = kept[graphs[0]]
    assert kept[graphs[0]] is first
    for graph in graphs[1:]:
        assert kept[graph].graph is graph
    assert kept[graphs[0]] is not first and kept[graphs[-1]].graph is graphs[-1]
