"""Applying a match: new nodes in, matched nodes out, consumers rewired, dead code removed, hash kept up.

The same steps run on copies of a graph's maps, which gives the new graph, and on overlays, which gives the change of
hash and the dead code without copying anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, NamedTuple, Protocol, TypeVar

from taso_gym.graph import (
    HASH_MODULUS,
    OUTPUT_BITS,
    SINK,
    Graph,
    Leaf,
    Node,
    node_hash,
    output_index,
    producer_of,
    value_of,
)
from taso_gym.rules.template import LiteralValue, Template
from taso_gym.signature import OpaqueOperator, Signature, stable_hash
from taso_gym.weights import literal

V = TypeVar("V")


class Match(NamedTuple):
    """A place where a rule applies.

    Attributes:
        rule: number of the rule in its set.
        nodes: ids of the matched operators in pattern order: roots left to right, depth first.
        variant: number of the operand order at commutative operators.
    """

    rule: int
    nodes: tuple[int, ...]
    variant: int


class Edit(NamedTuple):
    """What a rewrite did to the nodes of its parent graph, as ids.

    Attributes:
        removed: operators that are gone, dead code among them.
        added: new operators.
        rewired: operators that stayed and whose inputs changed; the sink (id 0) where a graph output was replaced.
    """

    removed: tuple[int, ...]
    added: tuple[int, ...]
    rewired: tuple[int, ...]


class Site(NamedTuple):
    """A match with what it would be rewritten into.

    Attributes:
        match: the match.
        template: the right side.
        bound: values of the rule's variables in a row.
    """

    match: Match
    template: Template
    bound: tuple[int, ...]


class Map(Protocol[V]):
    """The part of a dictionary that a rewrite needs."""

    def get(self, key: int, default: V | None = None, /) -> V | None:
        """Return the value at a key, or ``default``."""
        ...

    def __getitem__(self, key: int, /) -> V: ...
    def __setitem__(self, key: int, value: V, /) -> None: ...
    def pop(self, key: int, default: V | None = None, /) -> V | None:
        """Remove a key and return its value, or ``default``."""
        ...


class Overlay(Generic[V]):
    """A dictionary that keeps changes apart from the one beneath it."""

    def __init__(self, base: Mapping[int, V]) -> None:
        """Lie over ``base``, which stays as it is."""
        self._base = base
        self._changes: dict[int, V | None] = {}

    def get(self, key: int, default: V | None = None, /) -> V | None:
        """Return the value at a key, or ``default``."""
        value = self._changes[key] if key in self._changes else self._base.get(key)
        return default if value is None else value

    def __getitem__(self, key: int, /) -> V:
        """Return the value at a key."""
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: int, value: V, /) -> None:
        """Set the value at a key."""
        self._changes[key] = value

    def pop(self, key: int, default: V | None = None, /) -> V | None:
        """Remove a key and return its value, or ``default``."""
        value = self.get(key, default)
        self._changes[key] = None
        return value


@dataclass
class Rewriting:
    """A rewrite in progress on maps of its own.

    Attributes:
        graph: the graph it begins with.
        nodes, uses: copies or overlays of the graph's maps; changed by `run`.
        leaves: new literals.
        hash: of the new graph.
        next_id: of the new graph.
        removed, added, rewired: as in `Edit`.
        dead: signatures of the operators that were removed without having been matched.
        touched: producers of values that have gained or lost uses, and that are still there.
    """

    graph: Graph
    nodes: Map[Node]
    uses: Map[tuple[int, ...]]
    leaves: dict[int, Leaf] = field(default_factory=dict[int, Leaf])
    hash: int = 0
    next_id: int = 0
    removed: list[int] = field(default_factory=list[int])
    added: list[int] = field(default_factory=list[int])
    rewired: dict[int, None] = field(default_factory=dict[int, None])
    dead: list[Signature] = field(default_factory=list[Signature])
    touched: set[int] = field(default_factory=set[int])

    def run(self, site: Site) -> Rewriting:
        """Rewrite at a match and return self."""
        self.hash, self.next_id = self.graph.hash, self.graph.next_id
        records = [self.nodes[i] for i in site.match.nodes]
        values = [*site.bound, *map(self._add_literal, site.template.literals)]
        first = self.next_id
        self._add_nodes(site, records, values)
        self._unhook(site.match.nodes, records)
        self._hook()
        for matched, output, ref in site.template.outputs:
            old = value_of(site.match.nodes[matched], output)
            self._replace(old, values[ref] if ref >= 0 else value_of(first) + ~ref)
        self._remove_matched(site.match.nodes, records)
        self._remove_dead({*map(producer_of, site.bound), *self.added})
        return self

    def finish(self) -> Graph:
        """Return the new graph; only for a rewriting on copies."""
        graph = self.graph
        leaves = {**graph.leaves, **self.leaves} if self.leaves else graph.leaves
        assert isinstance(self.nodes, dict) and isinstance(self.uses, dict)
        return Graph(self.nodes, self.uses, leaves, self.next_id, self.hash % HASH_MODULUS, graph.info)  # pyright: ignore[reportUnknownArgumentType]

    def _sem(self, value: int) -> int:
        leaf = self.graph.leaves.get(value) or self.leaves.get(value)
        return leaf.sem if leaf else self.nodes[value >> OUTPUT_BITS].sems[output_index(value)]

    def _hash(self, sig: Signature, inputs: tuple[int | None, ...]) -> int:
        """Return a node's part of the graph hash."""
        return node_hash(sig, tuple([0 if v is None else self._sem(v) for v in inputs]))

    def _add_literal(self, value: LiteralValue) -> int:
        """Give a literal of the right side a leaf and return its value."""
        leaf = value_of(self.next_id)
        self.leaves[leaf] = literal_leaf(*value)._replace(name=f"literal_{self.next_id}")
        self.next_id += 1
        return leaf

    def _add_nodes(self, site: Site, records: list[Node], values: list[int]) -> None:
        """Add the right side; an output that replaces another inherits its semantic id and name."""
        base = value_of(self.next_id)
        heirs: dict[int, tuple[int, str | None]] = {}
        for matched, output, ref in reversed(site.template.outputs):
            heirs[ref] = records[matched].sems[output], records[matched].names[output]
        for number, (sig, refs) in enumerate(zip(site.template.sigs, site.template.inputs, strict=True)):
            inputs = tuple([None if r is None else values[r] if r >= 0 else base + ~r for r in refs])
            own = self._hash(sig, inputs)
            born = [
                heirs.get(~(number << OUTPUT_BITS | i)) or (hash((own, i)) % HASH_MODULUS, None)
                for i in range(len(sig.outputs))
            ]
            sems, names = tuple([sem for sem, _ in born]), tuple([name for _, name in born])
            self.nodes[self.next_id] = Node(sig, inputs, sems, names, own)
            self.added.append(self.next_id)
            self.hash += own
            self.next_id += 1

    def _hook(self) -> None:
        """Enter the new nodes' inputs into the uses."""
        for node_id in self.added:
            for i, value in enumerate(self.nodes[node_id].inputs):
                if value is not None:
                    self.uses[value] = (*self.uses.get(value, ()), value_of(node_id, i))  # pyright: ignore[reportGeneralTypeIssues]

    def _unhook(self, matched: tuple[int, ...], records: Iterable[Node]) -> None:
        """Take the matched nodes' inputs out of the uses."""
        for value in dict.fromkeys(v for record in records for v in record.inputs if v is not None):
            self._drop_uses(value, matched)

    def _drop_uses(self, value: int, consumers: tuple[int, ...]) -> None:
        kept = tuple([u for u in self.uses[value] if producer_of(u) not in consumers])
        if kept:
            self.uses[value] = kept
        else:
            self.uses.pop(value)
        self.touched.add(producer_of(value))

    def _replace(self, old: int, new: int) -> None:
        """Let every remaining consumer of a value read another one instead."""
        uses = self.uses.pop(old, ())
        if not uses:
            return
        renamed = self._sem(old) != self._sem(new)
        for consumer in dict.fromkeys(map(producer_of, uses)):
            node = self.nodes[consumer]
            inputs = tuple([new if v == old else v for v in node.inputs])
            own = self._hash(node.sig, inputs) if renamed else node.hash
            self.hash += own - node.hash
            self.nodes[consumer] = Node(node.sig, inputs, node.sems, node.names, own)
            self.rewired[consumer] = None
        self.uses[new] = (*self.uses.get(new, ()), *uses)  # pyright: ignore[reportGeneralTypeIssues]
        self.touched.add(producer_of(new))

    def _remove_matched(self, matched: tuple[int, ...], records: list[Node]) -> None:
        self.hash -= sum([record.hash for record in records])
        for node_id in matched:
            self.nodes.pop(node_id)
            self.touched.discard(node_id)
        self.removed += matched

    def _remove_dead(self, candidates: set[int]) -> None:
        """Remove pure operators without a use, and then what only they used."""
        waiting = sorted(candidates)
        while waiting:
            node_id = waiting.pop()
            node = self.nodes.get(node_id)
            if node is None or node_id == SINK or not _is_pure(node) or any(self._used(node_id, node)):
                continue
            self.hash -= node.hash
            for value in dict.fromkeys(v for v in node.inputs if v is not None):
                self._drop_uses(value, (node_id,))
                waiting.append(producer_of(value))
            self.nodes.pop(node_id)
            self.dead.append(node.sig)
            self.touched.discard(node_id)
            if node_id in self.added:
                self.added.remove(node_id)
            else:
                self.removed.append(node_id)

    def _used(self, node_id: int, node: Node) -> Iterator[bool]:
        return (bool(self.uses.get(value_of(node_id, i))) for i in range(len(node.sems)))


@lru_cache(maxsize=1024)
def literal_leaf(value: float | int, dtype: str) -> Leaf:
    """Return the leaf of a literal; its name is for the caller to make unique."""
    type_, weight = literal(value, dtype)
    return Leaf("", type_, weight, stable_hash("weight", weight.digest))


def _is_pure(node: Node) -> bool:
    return not isinstance(node.sig.op, OpaqueOperator) or node.sig.op.pure


def rewrite(graph: Graph, site: Site) -> Rewriting:
    """Rewrite on copies of the maps; `Rewriting.finish` gives the graph."""
    return Rewriting(graph, graph.nodes.copy(), graph.uses.copy()).run(site)


def predict(graph: Graph, site: Site) -> Rewriting:
    """Rewrite on overlays: gives hash, dead code and counts, but no graph."""
    return Rewriting(graph, Overlay(graph.nodes), Overlay(graph.uses)).run(site)
