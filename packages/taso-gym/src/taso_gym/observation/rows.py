"""The graph as rows of arrays: each node and each edge keeps its row while it lives, and a rewrite patches a few."""

from __future__ import annotations

import numpy as np

from taso_gym.errors import OptionError
from taso_gym.graph import SINK, Graph, output_index, producer_of, value_of
from taso_gym.observation.features import Features
from taso_gym.rules.state import Edit


class Slots:
    """Rows given out to keys; a row that was given back is the next to be given out, so there are no growing gaps."""

    __slots__ = ("_free", "of")

    def __init__(self, size: int) -> None:
        """Hold rows 0 … size-1, all free."""
        self.of: dict[int, int] = {}
        self._free = list(range(size - 1, -1, -1))

    def take(self, key: int) -> int:
        """Give a row to a key."""
        row = self.of[key] = self._free.pop()
        return row

    def release(self, key: int) -> int:
        """Take a key's row back and return it."""
        row = self.of.pop(key)
        self._free.append(row)
        return row

    def copy(self) -> Slots:
        """Return an independent copy."""
        other = Slots.__new__(Slots)
        other.of, other._free = self.of.copy(), self._free.copy()
        return other


class GraphRows:
    """Row numbers of `Features` for every node and edge of a graph.

    Attributes:
        nodes: row of each operator and graph input, by id.
        node_kinds: (max_nodes,) number in ``features.nodes``, 0 for no node.
        edge_ends: (max_edges, 2) rows of producer and consumer.
        edge_kinds: (max_edges,) number in ``features.edges``, 0 for no edge.
    """

    def __init__(self, graph: Graph, features: Features, max_nodes: int, max_edges: int) -> None:
        """Lay out a graph: its inputs, then its operators in topological order.

        Raises:
            OptionError: it has more nodes or edges than there are rows.
        """
        nodes, edges = count_rows(graph)
        for name, limit, found in (("max_nodes", max_nodes, nodes), ("max_edges", max_edges, edges)):
            if found > limit:
                raise OptionError(f"expected {name} of at least {found} for this graph, found {limit}")
        self.features = features
        self.nodes, self._edges = Slots(max_nodes), Slots(max_edges)
        self.node_kinds = np.zeros(max_nodes, np.intp)
        self.edge_kinds = np.zeros(max_edges, np.intp)
        self.edge_ends = np.zeros((max_edges, 2), np.int32)
        order = graph.topological_order()
        inputs = [producer_of(v) for v in graph.info.inputs]
        for node_id in inputs + order:
            self.nodes.take(node_id)
            self._describe(graph, node_id)
        for node_id in order:
            for i, value in enumerate(graph.nodes[node_id].inputs):
                self._connect(graph, node_id, i, value)

    @property
    def node_count(self) -> int:
        """Rows of nodes in use."""
        return len(self.nodes.of)

    @property
    def edge_count(self) -> int:
        """Rows of edges in use."""
        return len(self._edges.of)

    def copy(self) -> GraphRows:
        """Return a copy that can be patched by itself; the feature tables are shared."""
        other = GraphRows.__new__(GraphRows)
        other.features = self.features
        other.nodes, other._edges = self.nodes.copy(), self._edges.copy()
        other.node_kinds, other.edge_kinds = self.node_kinds.copy(), self.edge_kinds.copy()
        other.edge_ends = self.edge_ends.copy()
        return other

    def patch(self, old: Graph, new: Graph, edit: Edit) -> None:
        """Go from the rows of one graph to those of the graph that an edit made of it."""
        touched: set[int] = set(edit.rewired)
        for node_id in (*edit.removed, *edit.rewired):
            self._disconnect(old, node_id, touched)
        for node_id in edit.removed:
            self.node_kinds[self.nodes.release(node_id)] = 0
        for node_id in edit.added:
            self.nodes.take(node_id)
            touched.add(node_id)
        for node_id in (*edit.added, *edit.rewired):
            for i, value in enumerate(new.nodes[node_id].inputs):
                self._connect(new, node_id, i, value)
                touched.add(producer_of(value or 0))
        for node_id in touched:
            if node_id in self.nodes.of:
                self._describe(new, node_id)

    def _describe(self, graph: Graph, node_id: int) -> None:
        """Enter the kind of a node: signature (or an input's type), number of consumers, whether it is an output."""
        node = graph.nodes.get(node_id)
        kind = node.sig if node else graph.type_of(value_of(node_id))
        consumers, is_output = 0, False
        for output in range(len(node.sig.outputs) if node else 1):
            for use in graph.uses.get(value_of(node_id, output), ()):
                if producer_of(use) == SINK:
                    is_output = True
                else:
                    consumers += 1
        self.node_kinds[self.nodes.of[node_id]] = self.features.node(kind, consumers, is_output)

    def _connect(self, graph: Graph, node_id: int, input_: int, value: int | None) -> None:
        """Enter the edge to an input of a node, unless the input is absent or a weight or the node is the sink."""
        row = None if value is None else self.nodes.of.get(producer_of(value))
        if value is None or row is None or node_id == SINK:
            return
        slot = self._edges.take(value_of(node_id, input_))
        self.edge_ends[slot, 0], self.edge_ends[slot, 1] = row, self.nodes.of[node_id]
        self.edge_kinds[slot] = self.features.edge(graph.type_of(value), output_index(value), input_)

    def _disconnect(self, graph: Graph, node_id: int, touched: set[int]) -> None:
        """Remove the edges to the inputs of a node; ``touched`` receives their producers."""
        for i, value in enumerate(graph.nodes[node_id].inputs):
            touched.add(producer_of(value or 0))
            if value_of(node_id, i) in self._edges.of:
                slot = self._edges.release(value_of(node_id, i))
                self.edge_kinds[slot] = 0
                self.edge_ends[slot] = 0


def count_rows(graph: Graph) -> tuple[int, int]:
    """Return the rows that a graph takes: operators and graph inputs, and the values between them but for weights."""
    weights = {v for v, leaf in graph.leaves.items() if leaf.weight is not None}
    edges = sum(producer_of(use) != SINK for value, uses in graph.uses.items() if value not in weights for use in uses)
    return len(graph) + len(graph.info.inputs), edges
