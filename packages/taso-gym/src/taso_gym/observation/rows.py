"""The graph as rows of arrays: each node keeps its row while it lives, and a rewrite patches a few."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from taso_gym.cost_model import CostModel
from taso_gym.errors import OptionError
from taso_gym.graph import SINK, Graph, output_index, producer_of, value_of
from taso_gym.observation.features import Features
from taso_gym.rules.state import Edit, size_of


class GraphRows:
    """Row numbers of `Features` for every node and edge of a graph; what is not in use is 0.

    Attributes:
        row_of: row of each operator and graph input, by id.
        node_kinds: (max_nodes,) number in ``features.nodes``.
        edge_ends: (max_edges, 2) rows of producer and consumer, in the smallest type that holds them.
        edge_kinds: (max_edges,) number in ``features.edges``.
    """

    def __init__(self, graph: Graph, features: Features, max_nodes: int, max_edges: int) -> None:
        """Lay out a graph: its inputs, then its operators in topological order, without constants.

        Raises:
            OptionError: it has more nodes or edges than there are rows.
        """
        nodes, edges = count_rows(graph)
        for name, limit, found in (("max_nodes", max_nodes, nodes), ("max_edges", max_edges, edges)):
            if found > limit:
                raise OptionError(f"expected {name} of at least {found} for this graph, found {limit}")
        self.features = features
        self.row_of: dict[int, int] = {}
        self.node_kinds = np.zeros(max_nodes, np.int32)
        self.edge_kinds = np.zeros(max_edges, np.int32)
        self.edge_ends = np.zeros((max_edges, 2), np.min_scalar_type(-max_nodes))
        order = graph.topological_order()
        self._add_nodes(
            [producer_of(v) for v in graph.info.inputs] + [i for i in order if not graph.nodes[i].sig.const]
        )
        self._describe(graph, self.row_of)
        self._connect(graph, order)

    @property
    def _cost(self) -> CostModel:
        return self.features.scale.cost

    @property
    def node_count(self) -> int:
        """Rows of nodes in use."""
        return len(self.row_of)

    @property
    def edge_count(self) -> int:
        """Rows of edges in use."""
        return int(np.count_nonzero(self.edge_kinds))

    def copy(self) -> GraphRows:
        """Return a copy that can be patched by itself; the feature tables are shared."""
        other = GraphRows.__new__(GraphRows)
        other.features, other.row_of = self.features, self.row_of.copy()
        other.node_kinds, other.edge_kinds = self.node_kinds.copy(), self.edge_kinds.copy()
        other.edge_ends = self.edge_ends.copy()
        return other

    def patch(self, old: Graph, new: Graph, edit: Edit) -> None:
        """Go from the rows of one graph to those of the graph that an edit made of it."""
        before = [v for i in (*edit.removed, *edit.rewired) for v in old.nodes[i].inputs]
        after = [v for i in (*edit.added, *edit.rewired) for v in new.nodes[i].inputs]
        changed = {producer_of(value) for value in before + after if value is not None}
        changed |= self._cost.affected(old, new, changed.union(edit.removed, edit.added, edit.rewired))
        self._disconnect((*edit.removed, *edit.rewired))
        for node_id in edit.removed:
            if node_id in self.row_of:
                self.node_kinds[self.row_of.pop(node_id)] = 0
        self._add_nodes([i for i in edit.added if not new.nodes[i].sig.const])
        self._describe(new, (i for i in changed.union(edit.added, edit.rewired) if i in self.row_of))
        self._connect(new, (*edit.added, *edit.rewired))

    def _add_nodes(self, ids: Sequence[int]) -> None:
        """Give the lowest free rows to nodes, which `_describe` enters."""
        (free,) = (self.node_kinds == 0).nonzero()
        self.row_of.update(zip(ids, free[: len(ids)].tolist(), strict=True))

    def _describe(self, graph: Graph, ids: Iterable[int]) -> None:
        """Enter the kind of nodes: signature (or an input's type), context, consumers, whether it is an output."""
        for node_id in ids:
            node = graph.nodes.get(node_id)
            kind = node.sig if node else graph.type_of(value_of(node_id))
            consumers, is_output = 0, False
            for output in range(len(node.sig.outputs) if node else 1):
                for use in graph.uses.get(value_of(node_id, output), ()):
                    if producer_of(use) == SINK:
                        is_output = True
                    else:
                        consumers += 1
            context = self._cost.context(graph, node_id) if node else None
            self.node_kinds[self.row_of[node_id]] = self.features.node(kind, context, consumers, is_output)

    def _connect(self, graph: Graph, ids: Iterable[int]) -> None:
        """Enter the edges to the inputs of operators, but for absent ones and constants; the sink has no row."""
        edges: list[tuple[int, int, int]] = []
        for node_id in ids:
            consumer = self.row_of.get(node_id)
            if consumer is None:
                continue
            for i, value in enumerate(graph.nodes[node_id].inputs):
                producer = None if value is None else self.row_of.get(producer_of(value))
                if value is not None and producer is not None:
                    edges.append((producer, consumer, self.features.edge(graph.type_of(value), output_index(value), i)))
        if edges:
            rows = (self.edge_kinds == 0).nonzero()[0][: len(edges)]
            made = np.array(edges, np.int32)
            self.edge_ends[rows], self.edge_kinds[rows] = made[:, :2], made[:, 2]

    def _disconnect(self, ids: Iterable[int]) -> None:
        """Remove the edges to the inputs of operators."""
        dead = np.zeros(len(self.node_kinds), np.bool_)
        dead[[self.row_of[i] for i in ids if i in self.row_of]] = True
        (edges,) = dead.take(self.edge_ends[:, 1]).nonzero()
        self.edge_ends[edges], self.edge_kinds[edges] = 0, 0


def count_rows(graph: Graph) -> tuple[int, int]:
    """Return the rows of a graph: for operators and graph inputs, and for values between them; constants have none."""
    nodes, edges = size_of(graph)
    return nodes + len(graph.info.inputs), edges
