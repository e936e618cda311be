"""Peak memory of a graph: an allocation over its topological order."""

from __future__ import annotations

from collections.abc import Iterator

from taso_gym.cost.dims import Dims, size_bytes
from taso_gym.graph import SINK, Graph, output_index, producer_of, value_of


def peak_bytes(graph: Graph, dims: Dims) -> int:
    """Return the most bytes that are alive at once when the operators run in `Graph.topological_order`.

    Constants that something reads at run time are resident once, after folding, and so are the graph's inputs, which
    belong to the caller. Another value lives from its node to its last use, graph outputs to the end. A view shares
    its input's memory; nothing else is computed in place.
    """
    resident, sizes = _resident(graph, dims), dict[int, int]()
    owner: dict[int, int] = {}
    waiting: dict[int, int] = {}
    alive = peak = 0
    for node_id in graph.topological_order():
        sig = graph.nodes[node_id].sig
        if sig.const:
            continue
        inputs = graph.nodes[node_id].inputs
        bound = dims.bind((*sig.inputs, *sig.outputs))[len(sig.inputs) :]
        for output, t in enumerate(bound):
            value = value_of(node_id, output)
            uses = len(graph.uses.get(value, ()))
            if sig.op.view and inputs and inputs[0] is not None:
                owner[value] = owner.get(inputs[0], inputs[0])
                waiting[owner[value]] = waiting.get(owner[value], 0) + uses
            else:
                sizes[value], waiting[value] = size_bytes(t), uses
                alive += sizes[value]
        peak = max(peak, alive)
        read = [owner.get(v, v) for v in inputs if v is not None]
        written = [v for v in (value_of(node_id, i) for i in range(len(bound))) if v in sizes]
        for value in read:
            waiting[value] = waiting.get(value, 0) - 1
        for value in {*read, *written}:
            if not waiting[value]:
                alive -= sizes.pop(value, 0)
    return resident + peak


def constant_bytes(graph: Graph) -> int:
    """Return the bytes of the constants that a saved file holds: those that something reads, after folding."""
    return sum(
        size_bytes(Dims().bind([graph.type_of(value)])[0]) for value in _read(graph) if _is_constant(graph, value)
    )


def _resident(graph: Graph, dims: Dims) -> int:
    """Bytes of the inputs, and of the constants that a node that isn't constant itself, or the sink, reads."""
    inputs = set(graph.info.inputs)
    held = inputs.union(value for value in _read(graph) if _is_constant(graph, value))
    return sum(size_bytes(dims.bind([graph.type_of(value)])[0]) for value in held)


def _read(graph: Graph) -> Iterator[int]:
    """Yield the values that a node that isn't constant itself, or the sink, reads."""
    for value, uses in graph.uses.items():
        if any(producer_of(use) == SINK or not graph.nodes[producer_of(use)].sig.const for use in uses):
            yield value


def _is_constant(graph: Graph, value: int) -> bool:
    leaf = graph.leaves.get(value)
    return leaf.weight is not None if leaf else graph.nodes[producer_of(value)].sig.outputs[output_index(value)].const
