"""Sizes of graphs and of what rewrites add to them, as limits and observations count them.

Constants, given or computed, count nothing: they are folded on save. So a size is a sum over signatures, as a cost is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from taso_gym.graph import Graph
from taso_gym.signature import Signature

if TYPE_CHECKING:
    from taso_gym.rules.compiled import CompiledRules
    from taso_gym.rules.rewrite import Site


class Limits(NamedTuple):
    """What bounds the matches of a state.

    Attributes:
        locations: matches of a rule that are legal; those beyond it in canonical order aren't.
        nodes, edges: size of a graph that a match may lead to.

    None is no limit.
    """

    locations: int | None
    nodes: int | None
    edges: int | None


class Size(NamedTuple):
    """Operators that aren't constant, and their inputs that aren't constant."""

    nodes: int = 0
    edges: int = 0

    def __add__(self, other: Size) -> Size:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Size(self.nodes + other.nodes, self.edges + other.edges)

    def __sub__(self, other: Size) -> Size:
        return Size(self.nodes - other.nodes, self.edges - other.edges)


@cache
def _size(sig: Signature) -> Size:
    return Size() if sig.const else Size(1, sum(t is not None and not t.const for t in sig.inputs))


def total_size(sigs: Iterable[Signature]) -> Size:
    """Return the size of operators with these signatures."""
    return sum(map(_size, sigs), Size())


def size_of(graph: Graph) -> Size:
    """Return the size of a graph."""
    return total_size(node.sig for _, node in graph.operators())


def growth(graph: Graph, site: Site, compiled: CompiledRules) -> Size:
    """Return the change of size by a match."""
    template, match = site.template, site.match
    change = compiled.growths.get(template)
    if change is None:
        change = total_size(template.sigs) - total_size(graph.nodes[i].sig for i in match.nodes)
        compiled.growths[template] = change
    return change - total_size(site.dead) if site.dead else change


def fitting(graph: Graph, size: Size, limits: Limits, compiled: CompiledRules) -> Callable[[Site], bool] | None:
    """Return the test whether a match stays within the limits, or None where every match does."""
    nodes = None if limits.nodes is None else limits.nodes - size.nodes
    edges = None if limits.edges is None else limits.edges - size.edges
    most = compiled.most
    if (nodes is None or nodes >= most.nodes) and (edges is None or edges >= most.edges):
        return None

    def fits(site: Site) -> bool:
        change = growth(graph, site, compiled)
        return (nodes is None or change.nodes <= nodes) and (edges is None or change.edges <= edges)

    return fits
