"""Sizes of graphs and of what rewrites add to them, as limits and observations count them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from taso_gym.graph import SINK, Graph, Node, producer_of
from taso_gym.rules.compiled import CompiledRules
from taso_gym.rules.matching import Entry
from taso_gym.rules.rewrite import Overlay, Rewriting, predict


class Limits(NamedTuple):
    """What bounds the matches of a state.

    Attributes:
        locations: matches of a rule that are legal; those beyond it in canonical order aren't.
        nodes, edges: size of a graph that a match may lead to; None for no limit.
    """

    locations: int
    nodes: int | None
    edges: int | None


class Size(NamedTuple):
    """Operators of a graph, and the inputs of operators that aren't weights."""

    nodes: int
    edges: int

    def __add__(self, other: Size) -> Size:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Size(self.nodes + other.nodes, self.edges + other.edges)


def size_of(graph: Graph) -> Size:
    """Count the operators of a graph and their inputs that aren't weights."""
    weights = {value for value, leaf in graph.leaves.items() if leaf.weight is not None}
    edges = sum(producer_of(u) != SINK for value, uses in graph.uses.items() if value not in weights for u in uses)
    return Size(len(graph), edges)


def growth(graph: Graph, rewriting: Rewriting) -> Size:
    """Return the change of size by a rewrite of ``graph``."""
    edges = _edges(graph, rewriting.nodes, rewriting.added) - _edges(graph, graph.nodes, rewriting.removed)
    return Size(len(rewriting.added) - len(rewriting.removed), edges)


def _edges(graph: Graph, nodes: dict[int, Node] | Overlay[Node], ids: Iterable[int]) -> int:
    """Count the inputs of nodes that aren't weights, nor literals that the rewrite adds."""
    leaves = graph.leaves
    values = [v for i in ids for v in nodes[i].inputs if v is not None]
    return sum(leaves[v].weight is None if v in leaves else nodes.get(producer_of(v)) is not None for v in values)


def fitting(graph: Graph, size: Size, limits: Limits, compiled: CompiledRules) -> Callable[[Entry], bool] | None:
    """Return the test whether a match stays within the limits, or None where every match does."""
    nodes = None if limits.nodes is None else limits.nodes - size.nodes
    edges = None if limits.edges is None else limits.edges - size.edges
    most = compiled.most
    if (nodes is None or nodes >= most.nodes) and (edges is None or edges >= most.edges):
        return None

    def fits(entry: Entry) -> bool:
        change = growth(graph, predict(graph, entry.site))
        return (nodes is None or change.nodes <= nodes) and (edges is None or change.edges <= edges)

    return fits
