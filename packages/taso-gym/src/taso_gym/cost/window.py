"""A graph seen through a window that remembers what was looked at, so that what follows from it can be kept.

Graphs of one origin share all untouched records. So something that was found by looking at certain nodes and uses
holds in any other graph in which those are the same objects; to see that takes far less time than to find it again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from taso_gym.cost.blocks import Blocks, BlocksByGraph
from taso_gym.cost.layout import Layouts
from taso_gym.graph import OUTPUT_BITS, Graph, Leaf, Node, output_index, value_of
from taso_gym.tensor import ValueType

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T", bound=Hashable)
KEPT = 4
"""Findings kept per node: of a graph, and of a few neighbours that are compared with it."""


class _LookedAt(dict[K, V]):
    """What was looked at; all else is fetched."""

    def __init__(self, fetch: Callable[[K], V]) -> None:
        super().__init__()
        self._fetch = fetch

    def __missing__(self, key: K) -> V:
        found = self[key] = self._fetch(key)
        return found


class Window:
    """A graph whose ``nodes``, ``uses`` and ``blocked`` remember what was looked at.

    Attributes:
        nodes: id -> node; read with ``[]`` only.
        uses: value -> uses, the empty tuple where there are none; read with ``[]`` only.
        blocked: value -> whether it is produced in blocks; read with ``[]`` only.
        leaves: value -> graph input or constant.
    """

    def __init__(self, blocks: Blocks) -> None:
        """Begin with nothing looked at, in the graph of some layouts."""
        graph = blocks.graph
        self.nodes: dict[int, Node] = _LookedAt(graph.nodes.__getitem__)
        self.uses: dict[int, tuple[int, ...]] = _LookedAt(lambda value: graph.uses.get(value, ()))
        self.blocked: dict[int, bool] = _LookedAt(blocks.__getitem__)
        self.leaves: Mapping[int, Leaf] = graph.leaves

    def type_of(self, value: int) -> ValueType:
        """Return the type of a value."""
        leaf = self.leaves.get(value)
        return leaf.type if leaf else self.nodes[value >> OUTPUT_BITS].sig.outputs[output_index(value)]

    def seen(self) -> Seen:
        """Return what was looked at."""
        return Seen(tuple(self.nodes.items()), tuple(self.uses.items()), tuple(self.blocked.items()))


class Seen(NamedTuple):
    """Nodes by id, and uses and layouts by value, that something was found from."""

    nodes: tuple[tuple[int, Node], ...]
    uses: tuple[tuple[int, tuple[int, ...]], ...]
    blocked: tuple[tuple[int, bool], ...]

    def holds_in(self, blocks: Blocks) -> bool:
        """Whether they are the same objects in a graph, and the same layouts."""
        nodes, uses = blocks.graph.nodes, blocks.graph.uses
        for node_id, node in self.nodes:
            if nodes.get(node_id) is not node:
                return False
        for value, found in self.uses:
            if uses.get(value, ()) is not found:
                return False
        for value, in_blocks in self.blocked:  # noqa: SIM110  (a generator takes three times as long)
            if blocks[value] != in_blocks:
                return False
        return True


class Remembered(Generic[T]):
    """A function of a graph's node that is computed again only where something that it looked at has changed."""

    def __init__(self, function: Callable[[Window, int], T], layouts: Layouts) -> None:
        """Take the function, which looks at nothing but its window, and the layouts of the machine."""
        self._function, self._blocks = function, BlocksByGraph(layouts)
        self._found: dict[int, list[tuple[Seen, T]]] = {}
        self._looked: dict[int, set[int]] = {}
        self._asked: dict[int, set[int]] = {}

    def __call__(self, graph: Graph, node_id: int) -> T:
        """Return the function's value at a node."""
        blocks, kept = self._blocks[graph], self._found.setdefault(node_id, [])
        for place, (seen, found) in enumerate(kept):
            if seen.holds_in(blocks):
                if place:
                    kept.insert(0, kept.pop(place))
                return found
        window = Window(blocks)
        found = self._function(window, node_id)
        for looked_at in (*window.nodes, *(value >> OUTPUT_BITS for value in window.uses)):
            self._looked.setdefault(looked_at, set()).add(node_id)
        for value in window.blocked:
            self._asked.setdefault(value, set()).add(node_id)
        kept.insert(0, (window.seen(), found))
        del kept[KEPT:]
        return found

    def affected(self, before: Graph, after: Graph, node_ids: Iterable[int]) -> set[int]:
        """Return the nodes at which the function may differ between two graphs, but for nodes of one of them only.

        Args:
            before: a graph.
            after: a graph that is the same but for some nodes.
            node_ids: these, of both; those whose outputs have gained or lost a reader are among them.
        """
        node_ids = set(node_ids)
        moved = self._blocks.moved(before, after, node_ids)
        there = (i for i in node_ids if i in before.nodes or value_of(i) in before.leaves)
        looked = (self._looked.get(node_id, ()) for node_id in there)
        return set[int]().union(*looked, *(self._asked.get(value, ()) for value in moved))
