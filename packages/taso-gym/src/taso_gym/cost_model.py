"""What a cost is and what a cost model answers; the models themselves are in `taso_gym.cost`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from taso_gym.graph import Graph
    from taso_gym.signature import Signature

PICOSECONDS_PER_MS = 10**9


class Cost(NamedTuple):
    """Cost of a node or of a graph; all integers, so that sums are exact and independent of the order of edits.

    Attributes:
        time_ps: run time in picoseconds.
        flops: floating-point operations.
        bytes_moved: bytes read and written.
        kernels: launches: nodes that do work at run time.
    """

    time_ps: int = 0
    flops: int = 0
    bytes_moved: int = 0
    kernels: int = 0

    @property
    def time_ms(self) -> float:
        """Run time in milliseconds."""
        return self.time_ps / PICOSECONDS_PER_MS

    def __add__(self, other: Cost) -> Cost:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Add element by element (not a tuple's concatenation)."""
        return Cost(self[0] + other[0], self[1] + other[1], self[2] + other[2], self[3] + other[3])

    def __sub__(self, other: Cost) -> Cost:
        """Subtract element by element: a change of cost, which may be negative."""
        return Cost(self[0] - other[0], self[1] - other[1], self[2] - other[2], self[3] - other[3])


@runtime_checkable
class CostModel(Protocol):
    """What search, observation and reward ask of a cost model.

    The cost of a graph is the sum of its nodes' costs. A node's cost depends on its signature and on its context: a
    small hashable description of its surroundings (the fused group that it belongs to, the layout that it runs in).
    """

    @property
    def name(self) -> str:
        """Specification that `taso_gym.cost.load` makes it from: ``roofline:h200``."""
        ...

    @property
    def key(self) -> str:
        """Everything that its numbers depend on: device, provider, library version, threads, bound dimensions."""
        ...

    @property
    def deterministic(self) -> bool:
        """Whether every process finds the same numbers."""
        ...

    @property
    def contextual(self) -> bool:
        """Whether costs depend on contexts; if not, these are None."""
        ...

    def node(self, sig: Signature, context: Hashable = None) -> Cost:
        """Return the cost of a node; zero for a constant's.

        Raises:
            CostError: it can't be costed.
        """
        ...

    def least_ps(self, sig: Signature, context: Hashable = None) -> int:
        """Return the picoseconds that a node takes, or fewer where they would have to be measured.

        Raises:
            CostError: it can't be costed.
        """
        ...

    def expect(self, nodes: Iterable[tuple[Signature, Hashable]]) -> None:
        """Prepare to be asked for the costs of nodes, each with its context: what is measured, may be together."""
        ...

    def context(self, graph: Graph, node_id: int) -> Hashable:
        """Return what the cost of a node depends on besides its signature."""
        ...

    def affected(self, before: Graph, after: Graph, node_ids: Iterable[int]) -> set[int]:
        """Return the operators whose contexts may differ between two graphs, as far as contexts were asked for.

        What changes in a rewrite is then: these, and the nodes that it removes, adds and rewires.

        Args:
            before: a graph.
            after: what a rewrite makes of it.
            node_ids: what the rewrite removes, adds and rewires, and the producers of values that gained or lost a
                reader.
        """
        ...

    def graph(self, graph: Graph) -> Cost:
        """Return the sum over all operators of a graph."""
        ...

    def peak_bytes(self, graph: Graph) -> int:
        """Return the most memory in bytes that weights and activations need at once."""
        ...


Costed: TypeAlias = "list[tuple[Signature, Hashable]]"
"""Nodes, each with its context."""


def costed(model: CostModel, graph: Graph, node_ids: Iterable[int]) -> Costed:
    """Return the nodes of a graph that are among these, as a model is asked for their costs."""
    return [(graph.nodes[i].sig, model.context(graph, i)) for i in node_ids if i in graph.nodes]


def total(model: CostModel, nodes: Costed) -> Cost:
    """Return the sum of what nodes cost."""
    return sum((model.node(sig, context) for sig, context in nodes), Cost())
