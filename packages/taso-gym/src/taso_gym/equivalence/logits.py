"""Models that end in a Softmax, without it: probabilities near 0 and 1 hide what is wrong with the logits."""

from __future__ import annotations

from typing import NamedTuple

from taso_gym.graph import SINK, Graph, Node, producer_of, sink_signature, value_of
from taso_gym.ops import OPERATORS
from taso_gym.signature import HASH_MODULUS, OpaqueOperator, node_hash, signature


class Logits(NamedTuple):
    """Two models whose outputs are logits where both had their Softmax.

    Attributes:
        first, second: the models.
        outputs: names of these outputs.
    """

    first: Graph
    second: Graph
    outputs: frozenset[str]


def logits_of(first: Graph, second: Graph) -> Logits | None:
    """Return two models of the same outputs without the Softmax that both end in, or None where they don't.

    In its place stands LogSoftmax, which doesn't saturate either and, as Softmax, ignores a constant added to all
    logits, so that a rewrite may have added one. A Softmax below opset 13 is never rewritten: there are the logits.
    """
    found = _softmaxes(first) & _softmaxes(second)
    if not found:
        return None
    positions = {position for position, _ in found}
    names = frozenset(first.info.output_names[position] for position in positions)
    return Logits(_with_logits(first, positions), _with_logits(second, positions), names)


def _softmaxes(graph: Graph) -> set[tuple[int, object]]:
    """Return the positions of outputs that are a Softmax, with what tells one Softmax from another."""
    found: set[tuple[int, object]] = set()
    for position, value in enumerate(graph.outputs):
        node = graph.nodes.get(producer_of(value))
        if node is None or (node.sig.op.domain, node.sig.op.name) != ("", "Softmax"):
            continue
        if not node.sig.const and not _is_captured(graph, value):
            kind = node.sig.op.proto if isinstance(node.sig.op, OpaqueOperator) else node.sig.attrs
            found.add((position, kind))
    return found


def _is_captured(graph: Graph, value: int) -> bool:
    """Return whether a subgraph reads a value: by its name, which no other value can have then."""
    readers = (graph.nodes[producer_of(use)] for use in graph.uses[value])
    return any(
        value in reader.inputs[-len(reader.sig.op.captures) :]
        for reader in readers
        if isinstance(reader.sig.op, OpaqueOperator) and reader.sig.op.captures
    )


def _with_logits(graph: Graph, positions: set[int]) -> Graph:
    nodes, next_id = dict(graph.nodes), graph.next_id
    outputs = list(graph.outputs)
    for position in positions:
        softmax = graph.nodes[producer_of(outputs[position])]
        source = softmax.inputs[0]
        assert source is not None
        if isinstance(softmax.sig.op, OpaqueOperator):
            outputs[position] = source
            continue
        sig = signature(OPERATORS["", "LogSoftmax"], dict(softmax.sig.attrs), [graph.type_of(source)])
        own = node_hash(sig, graph.sems_of((source,)))
        nodes[next_id] = Node(sig, (source,), (own,), (None,), own)
        outputs[position], next_id = value_of(next_id), next_id + 1
    for value in set(graph.outputs) - set(outputs):
        if len(graph.uses[value]) == sum(v == value for v in graph.outputs):
            del nodes[producer_of(value)]
    return _assembled(graph, nodes, tuple(outputs), next_id)


def _assembled(graph: Graph, nodes: dict[int, Node], outputs: tuple[int, ...], next_id: int) -> Graph:
    """Return a graph of these nodes that has other outputs."""
    draft = Graph(nodes, {}, graph.leaves, next_id, 0, graph.info)
    sink = sink_signature(tuple(map(draft.type_of, outputs)))
    nodes[SINK] = Node(sink, outputs, (), (), node_hash(sink, draft.sems_of(outputs)))
    uses: dict[int, list[int]] = {}
    for node_id, node in nodes.items():
        for i, value in enumerate(node.inputs):
            if value is not None:
                uses.setdefault(value, []).append(value_of(node_id, i))
    total = sum(n.hash for n in nodes.values()) % HASH_MODULUS
    return Graph(nodes, {v: tuple(u) for v, u in uses.items()}, graph.leaves, next_id, total, graph.info)
