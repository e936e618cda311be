"""Names for the values of a graph that is written: those of the file where they still mean the same value."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from taso_gym.errors import ModelError
from taso_gym.graph import Graph, output_index, producer_of
from taso_gym.onnx_io.reference import blank_node
from taso_gym.onnx_io.scope import inner_names
from taso_gym.signature import OpaqueOperator


class Names:
    """Gives every value one name, and says which further names a value must be known by.

    A graph output must have its name, and so must a value that a subgraph reads, and a weight of which annotations of
    the file speak. All other names may change.
    """

    def __init__(self, graph: Graph, pinned: Collection[str], declared: Collection[str]) -> None:
        """Collect the names that are settled.

        Args:
            graph: the graph.
            pinned: names in annotations.
            declared: names that the file gives a type; no other value than its own gets one of them.

        Raises:
            ModelError: two values must have the same name.
        """
        self._graph = graph
        self._required: dict[str, int] = {}
        self._wanted: dict[int, list[str]] = {}
        self._names: dict[int, str] = {}
        self._inner: set[str] = set()
        for value in graph.info.inputs:
            self._require(graph.leaves[value].name, value)
        for name, value in zip(graph.info.output_names, graph.outputs, strict=True):
            self._require(name, value)
        for _, node in graph.operators():
            op = node.sig.op
            if isinstance(op, OpaqueOperator) and op.captures:
                for name, value in zip(op.captures, node.inputs[-len(op.captures) :], strict=True):
                    assert value is not None
                    self._require(name, value)
            if isinstance(op, OpaqueOperator):
                self._inner |= inner_names(blank_node(op))
        for value, leaf in graph.leaves.items():
            if leaf.weight and leaf.name in pinned:
                self._require(leaf.name, value)
        self._taken = set(self._required) | self._inner
        self._declared = declared

    def _require(self, name: str, value: int) -> None:
        if self._required.setdefault(name, value) != value:
            raise ModelError(f"expected the name {name!r} for one value, found two that need it")
        if name not in self._wanted.setdefault(value, []):
            self._wanted[value].append(name)

    def of(self, value: int) -> str:
        """Return the name of a value; the first call settles it."""
        if value not in self._names:
            self._names[value] = self._choose(value)
        return self._names[value]

    def others(self, value: int) -> list[str]:
        """Return the further names that a value must be known by."""
        return [name for name in self._wanted.get(value, ()) if name != self.of(value)]

    def _choose(self, value: int) -> str:
        own, wanted = self._own(value), self._wanted.get(value, [])
        if wanted and own not in wanted and not self._is_opaque(value):
            return wanted[0]
        if own in wanted or (own and own not in self._taken):
            self._taken.add(own)
            return own
        return wanted[0] if wanted else self.fresh(own or f"{self._op_type(value)}_{producer_of(value)}")

    def _is_opaque(self, value: int) -> bool:
        """Whether open dimensions of a value are named after it, so that it keeps its name."""
        node = self._graph.nodes.get(producer_of(value))
        return node is not None and isinstance(node.sig.op, OpaqueOperator)

    def _own(self, value: int) -> str:
        leaf = self._graph.leaves.get(value)
        if leaf:
            return leaf.name
        return self._graph.nodes[producer_of(value)].names[output_index(value)] or ""

    def _op_type(self, value: int) -> str:
        return "weight" if value in self._graph.leaves else self._graph.nodes[producer_of(value)].sig.op.name

    def fresh(self, base: str) -> str:
        """Return a name that nothing has yet, and of which the file says nothing."""
        name = next(n for n in _candidates(base) if n not in self._taken and n not in self._declared)
        self._taken.add(name)
        return name

    def settle(self, values: Iterable[int]) -> None:
        """Give values their names now, so that those that have one in the file keep it."""
        for value in sorted(values, key=lambda v: not self._own(v)):
            self.of(value)


def _candidates(base: str) -> Iterator[str]:
    yield base
    number = 1
    while True:
        yield f"{base}_{number}"
        number += 1
