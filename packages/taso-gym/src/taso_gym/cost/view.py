"""A graph seen through a window that remembers what was looked at, so that what follows from it can be kept.

Graphs of one origin share all untouched records. So something that was found by looking at certain nodes and uses
holds in any other graph in which those are the same objects; to see that takes far less time than to find it again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from taso_gym.graph import OUTPUT_BITS, Graph, Leaf, Node, output_index
from taso_gym.tensor import ValueType

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T", bound=Hashable)
KEPT = 4
"""Findings kept per node: of a graph, and of a few neighbours that are compared with it."""


class _Nodes(dict[int, Node]):
    """The nodes that were looked at; the others are fetched."""

    def __init__(self, source: Mapping[int, Node]) -> None:
        super().__init__()
        self._source = source

    def __missing__(self, node_id: int) -> Node:
        found = self[node_id] = self._source[node_id]
        return found


class _Uses(dict[int, tuple[int, ...]]):
    """The uses that were looked at; the others are fetched, none for a value without."""

    def __init__(self, source: Mapping[int, tuple[int, ...]]) -> None:
        super().__init__()
        self._source = source

    def __missing__(self, value: int) -> tuple[int, ...]:
        found = self[value] = self._source.get(value, ())
        return found


class View:
    """A graph whose ``nodes`` and ``uses`` remember what was looked at.

    Attributes:
        nodes: id -> node; read with ``[]`` only.
        uses: value -> uses, the empty tuple where there are none; read with ``[]`` only.
        leaves: value -> graph input or constant.
    """

    def __init__(self, graph: Graph) -> None:
        """Begin with nothing looked at."""
        self.nodes: dict[int, Node] = _Nodes(graph.nodes)
        self.uses: dict[int, tuple[int, ...]] = _Uses(graph.uses)
        self.leaves: Mapping[int, Leaf] = graph.leaves

    def type_of(self, value: int) -> ValueType:
        """Return the type of a value."""
        leaf = self.leaves.get(value)
        return leaf.type if leaf else self.nodes[value >> OUTPUT_BITS].sig.outputs[output_index(value)]

    def seen(self) -> Seen:
        """Return what was looked at."""
        return Seen(tuple(self.nodes.items()), tuple(self.uses.items()))


class Seen(NamedTuple):
    """Nodes by id and uses by value that something was found from."""

    nodes: tuple[tuple[int, Node], ...]
    uses: tuple[tuple[int, tuple[int, ...]], ...]

    def holds_in(self, graph: Graph) -> bool:
        """Whether they are the same objects in a graph."""
        nodes, uses = graph.nodes, graph.uses
        for node_id, node in self.nodes:
            if nodes.get(node_id) is not node:
                return False
        for value, found in self.uses:  # noqa: SIM110  (a generator takes three times as long)
            if uses.get(value, ()) is not found:
                return False
        return True


class Remembered(Generic[T]):
    """A function of a graph's node that is computed again only where something that it looked at has changed."""

    def __init__(self, function: Callable[[View, int], T]) -> None:
        """Take the function; it looks at nothing but its view."""
        self._function = function
        self._found: dict[int, list[tuple[Seen, T]]] = {}
        self._looked: dict[int, set[int]] = {}

    def __call__(self, graph: Graph, node_id: int) -> T:
        """Return the function's value at a node."""
        kept = self._found.setdefault(node_id, [])
        for place, (seen, found) in enumerate(kept):
            if seen.holds_in(graph):
                if place:
                    kept.insert(0, kept.pop(place))
                return found
        view = View(graph)
        found = self._function(view, node_id)
        for looked_at in (*view.nodes, *(value >> OUTPUT_BITS for value in view.uses)):
            self._looked.setdefault(looked_at, set()).add(node_id)
        kept.insert(0, (view.seen(), found))
        del kept[KEPT:]
        return found

    def affected(self, node_ids: Iterable[int]) -> set[int]:
        """Return the nodes at which the function has ever looked at one of these, or at who reads its outputs."""
        return set[int]().union(*(self._looked.get(node_id, ()) for node_id in node_ids))
