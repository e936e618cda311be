"""Which values of a graph are in blocks (`taso_gym.cost.layout`), found once and carried over to the graphs around it.

Whether a sum runs on blocks depends on its operands, these on theirs, and so on up to convolutions: in a residual
network through all of it. After a rewrite that is followed only as far as something changes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from taso_gym.cost.layout import CARRYING, REACH, Layouts, image_shape
from taso_gym.graph import OUTPUT_BITS, Graph, producer_of, value_of

KEPT = 8
"""Graphs whose layouts are kept: that of a search's state, and the last ones around it."""


class Blocks:
    """Which values of a graph are in blocks; looked up with ``[]``, by value.

    Attributes:
        graph: it.
    """

    def __init__(self, graph: Graph, layouts: Layouts, known: dict[int, bool] | None = None) -> None:
        """Begin with what is known of a graph; `changed` begins with what is known of another."""
        self.graph, self._layouts, self._known = graph, layouts, {} if known is None else known

    def __getitem__(self, value: int) -> bool:
        """Return whether a value is produced in blocks."""
        found = self._known.get(value)
        if found is None:
            waiting = [value]
            while waiting:
                found = self._from_known(waiting[-1], waiting)
                if found is not None:
                    self._known[waiting.pop()] = found
        return self._known[value]

    def _from_known(self, value: int, missing: list[int]) -> bool | None:
        """Return whether a value is in blocks, or None where something isn't known, which is added to ``missing``."""
        operands = self._layouts.deciding(self.graph, value)
        if isinstance(operands, bool):
            return operands
        unknown = [v for v in operands if v not in self._known]
        missing += unknown
        return None if unknown else all(self._known[v] for v in operands)

    def changed(self, graph: Graph, node_ids: Iterable[int]) -> tuple[Blocks, set[int]]:
        """Return the same of another graph, and the values of both that are in blocks in one of them only.

        Args:
            graph: a graph that is the same but for some nodes.
            node_ids: these; those whose outputs have gained or lost a reader are among them.
        """
        after, moved = Blocks(graph, self._layouts, dict(self._known)), set[int]()
        waiting = list(_near(graph, node_ids))
        while waiting:
            value = waiting.pop()
            before = self[value] if producer_of(value) in self.graph.nodes else None
            assumed = after._known.pop(value, before)
            if after[value] != assumed:
                waiting += _carried(graph, producer_of(value))
            (moved.discard if before in (None, after[value]) else moved.add)(value)
        return after, moved


class BlocksByGraph:
    """The same of the graphs that were asked about last."""

    def __init__(self, layouts: Layouts) -> None:
        """Take the layouts of the machine."""
        self._layouts = layouts
        self._kept: OrderedDict[int, Blocks] = OrderedDict()

    def __getitem__(self, graph: Graph) -> Blocks:
        """Return which values of a graph are in blocks."""
        found = self._kept.get(id(graph))
        if found is None:
            return self._keep(Blocks(graph, self._layouts))
        self._kept.move_to_end(id(graph))
        return found

    def moved(self, before: Graph, after: Graph, node_ids: Iterable[int]) -> set[int]:
        """Return what `Blocks.changed` does, of two graphs."""
        blocks, moved = self[before].changed(after, node_ids)
        self._keep(blocks)
        return moved

    def _keep(self, blocks: Blocks) -> Blocks:
        self._kept[id(blocks.graph)] = blocks  # which has the graph: no other is where that is
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return blocks


def _near(graph: Graph, node_ids: Iterable[int]) -> Iterator[int]:
    """Yield the images that nodes make, and those after them that look at them."""
    front, seen = [i for i in node_ids if i in graph.nodes], set[int]()
    for distance in range(REACH + 1):
        found: list[int] = []
        for node_id in front:
            if node_id in seen:
                continue
            seen.add(node_id)
            images = [image_shape(t) is not None for t in graph.nodes[node_id].sig.outputs]
            yield from (value_of(node_id, output) for output, image in enumerate(images) if image)
            if distance < REACH and any(images):
                found += map(producer_of, _carried(graph, node_id))
        front = found


def _carried(graph: Graph, node_id: int) -> Iterator[int]:
    """Yield the results of operators that may hand on in which layout they read a node's outputs."""
    for output in range(len(graph.nodes[node_id].sig.outputs)):
        for use in graph.uses.get(node_id << OUTPUT_BITS | output, ()):
            if graph.nodes[producer_of(use)].sig.op.key in CARRYING:
                yield value_of(producer_of(use))
