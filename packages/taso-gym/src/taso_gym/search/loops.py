"""What is found for one sample, in place of a batch: in a loop over the samples, or as the way of the batch at once."""

from __future__ import annotations

from taso_gym.batch import batch_size, in_a_loop, nodes_of_batch
from taso_gym.cost.memory import constant_bytes
from taso_gym.errors import ModelError
from taso_gym.graph import Graph
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search.finalist import Finalist, retraced

MOST_BYTES = 200_000_000
"""Of weights that a network for one sample has, of twice as much after it was rewritten: they are in the loop's node,
which is copied and parsed whole, and a network with more mostly reads them."""


def may_loop(graph: Graph) -> bool:
    """Return whether a graph has few enough weights for a loop over its samples."""
    return constant_bytes(graph) <= MOST_BYTES


def is_loop(finalist: Finalist, graph: Graph) -> bool:
    """Return whether a finalist is of a network for one sample of a graph, not of the graph itself."""
    return finalist.start.graph is not graph


def time_ps(finalist: Finalist, graph: Graph) -> int:
    """Return the picoseconds that a finalist costs for all of a graph's batch."""
    return finalist.found.state.cost.time_ps * (batch_size(graph) if is_loop(finalist, graph) else 1)


def of_batch(finalist: Finalist, graph: Graph, tiled: Graph | None = None) -> Graph:
    """Return what a finalist found, or that in tiles, as a graph for another's batch.

    Raises:
        ModelError: its weights are too many for a loop.
    """
    found = tiled or finalist.graph
    if not is_loop(finalist, graph):
        return found
    if (size := constant_bytes(found)) > 2 * MOST_BYTES:
        raise ModelError(f"expected weights of at most {2 * MOST_BYTES} bytes in a loop, found {size}")
    return in_a_loop(found, graph)


def way_of_batch(lone: Finalist, start: RewriteState) -> list[Match]:
    """Return the way to what was found for one sample, as far as there is one for the batch."""
    first = RewriteState(start.graph, start.rules)
    return retraced(lone.way, first, nodes_of_batch(lone.start.graph, first.graph))[1]
