"""Parts of a graph as graphs of their own: what runs as one kernel, and two such that follow each other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from taso_gym.builder import GraphBuilder
from taso_gym.cost.blocks import Blocks
from taso_gym.cost.fusion import group, owner
from taso_gym.cost.layout import Layouts
from taso_gym.cost.window import Window
from taso_gym.graph import SINK, Graph, output_index, producer_of, value_of


def part(graph: Graph, inputs: Iterable[int], outputs: Iterable[int]) -> Graph:
    """Return the operators between some values of a graph."""
    builder = GraphBuilder(dict(graph.info.opsets) | {"com.microsoft": 1})
    made = {v: builder.input(f"x{v}", graph.type_of(v)) for v in inputs if _known(graph, v)}

    def value(v: int) -> int:
        if v not in made and v in graph.leaves:
            leaf = graph.leaves[v]
            made[v] = builder.weight(f"w{v}", leaf.type, leaf.weight)
        elif v not in made:
            node = graph.nodes[producer_of(v)]
            operands = [None if i is None else value(i) for i in node.inputs]
            first = builder.add_signature(node.sig, operands)
            for i, made_value in enumerate(first):
                made[v - output_index(v) + i] = made_value
        return made[v]

    for i, v in enumerate(outputs):
        builder.output(f"y{i}", value(v))
    return builder.build()


def _known(graph: Graph, value: int) -> bool:
    return value in graph.leaves or producer_of(value) in graph.nodes


def weight_bytes(graph: Graph) -> int:
    """Return how much memory the constants of a graph take."""
    return sum(leaf.type.size_bytes for leaf in graph.leaves.values() if leaf.weight)


def kernels(graph: Graph, layouts: Layouts) -> Iterator[tuple[int, ...]]:
    """Yield the groups of operators that onnxruntime makes one kernel of, or few (`taso_gym.cost.fusion`)."""
    window = Window(Blocks(graph, layouts))
    for node_id, node in graph.operators():
        if not (node.sig.const or node.sig.op.view) and owner(window, node_id) == node_id:
            yield group(window, node_id)


def pairs(graph: Graph, groups: Collection[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """Yield each group together with one that reads it, and the views between them."""
    group_of = {node_id: members for members in groups for node_id in members}
    for members in groups:
        readers: dict[tuple[int, ...], tuple[int, ...]] = {}
        waiting: list[tuple[int, tuple[int, ...]]] = [(node_id, ()) for node_id in members]
        for node_id, views in waiting:
            for reader in _readers(graph, node_id):
                if reader in group_of and group_of[reader] != members:
                    readers.setdefault(group_of[reader], views)
                elif reader not in group_of and graph.nodes[reader].sig.op.view:
                    waiting.append((reader, (*views, reader)))
        for reader_group, views in readers.items():
            yield tuple(dict.fromkeys((*members, *views, *reader_group)))


def _readers(graph: Graph, node_id: int) -> dict[int, None]:
    values = range(value_of(node_id), value_of(node_id) + len(graph.nodes[node_id].sig.outputs))
    uses = (producer_of(use) for v in values for use in graph.uses.get(v, ()))
    return dict.fromkeys(reader for reader in uses if reader != SINK)


def cut(graph: Graph, members: Collection[int]) -> Graph:
    """Return some operators of a graph as a graph, which reads and makes what they read from and make for others."""
    inside = set(members)
    read = dict.fromkeys(v for i in members for v in graph.nodes[i].inputs if v is not None)
    inputs = [v for v in read if producer_of(v) not in inside and not graph.type_of(v).const]
    made = (value_of(i) + k for i in members for k in range(len(graph.nodes[i].sig.outputs)))
    outputs = [v for v in made if _leaves(graph, v, inside)]
    return part(graph, inputs, outputs)


def _leaves(graph: Graph, value: int, inside: Collection[int]) -> bool:
    uses = graph.uses.get(value, ())
    return any(producer_of(use) not in inside for use in uses)
