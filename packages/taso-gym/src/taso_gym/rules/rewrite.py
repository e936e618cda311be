"""Applying a match: new nodes in, matched nodes out, consumers rewired, dead code removed, hash kept up.

The same steps run on copies of a graph's maps, which gives the new graph, and on overlays, which gives the change of
hash and the dead code without copying anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from taso_gym.graph import OUTPUT_BITS, OUTPUT_MASK, Graph, Leaf, Node, producer_of, value_of
from taso_gym.rules.overlay import Overlay, copied
from taso_gym.rules.rightside import LiteralValue
from taso_gym.rules.template import Template
from taso_gym.signature import HASH_MODULUS, OpaqueOperator, Signature, node_hash, stable_hash
from taso_gym.weights import literal


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
    """A match with what it would be rewritten into, and what that does to the graph.

    Attributes:
        match: the match.
        template: the right side.
        change: of the graph hash, modulo `HASH_MODULUS`.
        dead: signatures of the operators that die without being matched.
        watched: nodes and leaves whose uses and records the effect depends on, where it doesn't follow from those of
            the matched nodes alone.
    """

    match: Match
    template: Template
    change: int = 0
    dead: tuple[Signature, ...] = ()
    watched: tuple[int, ...] = ()


@dataclass(slots=True)
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
    nodes: dict[int, Node] | Overlay[Node]
    uses: dict[int, tuple[int, ...]] | Overlay[tuple[int, ...]]
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
        matched, template = site.match.nodes, site.template
        self.hash, self.next_id = self.graph.hash, self.graph.next_id
        records = [self.nodes[i] for i in matched]
        bound = template.bound(records)
        values = [*bound, *map(self._add_literal, template.literals)]
        first = self.next_id << OUTPUT_BITS
        self._add_nodes(template, records, values)
        for value in {v for record in records for v in record.inputs if v is not None}:
            self._drop_uses(value, matched)
        for node, output, ref in template.outputs:
            self._replace(matched[node] << OUTPUT_BITS | output, values[ref] if ref >= 0 else first + ~ref)
        for node_id, record in zip(matched, records, strict=True):
            self.nodes.pop(node_id)
            self.hash -= record.hash
        self.touched.difference_update(matched)
        self.removed += matched
        unused = [v >> OUTPUT_BITS for v in bound if not self.uses.get(v)]
        self._remove_dead([*unused, *self.added])
        return self

    def finish(self) -> Graph:
        """Return the new graph; only for a rewriting on copies."""
        graph = self.graph
        leaves = {**graph.leaves, **self.leaves} if self.leaves else graph.leaves
        assert isinstance(self.nodes, dict) and isinstance(self.uses, dict)
        return Graph(self.nodes, self.uses, leaves, self.next_id, self.hash % HASH_MODULUS, graph.info)

    def read(self) -> set[int]:
        """Return the ids of nodes and leaves whose records or uses the rewrite has read; only on overlays."""
        assert isinstance(self.nodes, Overlay) and isinstance(self.uses, Overlay)
        ids = self.nodes.read.union(map(producer_of, self.uses.read))
        return {i for i in ids if i < self.graph.next_id}

    def _sem(self, value: int) -> int:
        node = self.nodes.get(value >> OUTPUT_BITS)
        if node is not None:
            return node.sems[value & OUTPUT_MASK]
        return (self.graph.leaves.get(value) or self.leaves[value]).sem

    def _hash(self, sig: Signature, inputs: tuple[int | None, ...]) -> int:
        """Return a node's part of the graph hash."""
        return node_hash(sig, tuple([0 if v is None else self._sem(v) for v in inputs]))

    def _add_literal(self, value: LiteralValue) -> int:
        """Give a literal of the right side a leaf and return its value."""
        leaf = value_of(self.next_id)
        self.leaves[leaf] = literal_leaf(*value)._replace(name=f"literal_{self.next_id}")
        self.next_id += 1
        return leaf

    def _add_nodes(self, template: Template, records: list[Node], slots: list[int]) -> None:
        """Add the right side; an output that replaces another inherits its semantic id and name."""
        nodes, uses, node_id = self.nodes, self.uses, self.next_id
        values, sems = [*slots, None], [*map(self._sem, slots), 0]  # see `Step`
        for sig, step in zip(template.sigs, template.steps, strict=True):
            inputs = step.read(values)
            known = len(sems)
            own = step.enter(sems, records)
            outputs = tuple(sems[known:])
            nodes[node_id] = Node(sig, inputs, outputs, step.names(records), own)
            value = node_id << OUTPUT_BITS
            for i, operand in enumerate(inputs):
                if operand is not None:
                    uses[operand] = (*(uses.get(operand) or ()), value | i)
            values += range(value, value + len(outputs))
            self.added.append(node_id)
            self.hash += own
            node_id += 1
        self.next_id = node_id

    def _drop_uses(self, value: int, consumers: Sequence[int]) -> None:
        """Take nodes out of the uses of a value."""
        kept = tuple([u for u in self.uses[value] if u >> OUTPUT_BITS not in consumers])
        if kept:
            self.uses[value] = kept
        else:
            self.uses.pop(value)
        self.touched.add(value >> OUTPUT_BITS)

    def _replace(self, old: int, new: int) -> None:
        """Let every remaining consumer of a value read another one instead."""
        uses = self.uses.pop(old, None)
        if not uses:
            return
        renamed = self._sem(old) != self._sem(new)
        for consumer in dict.fromkeys([use >> OUTPUT_BITS for use in uses]):
            node = self.nodes[consumer]
            inputs = tuple([new if v == old else v for v in node.inputs])
            own = self._hash(node.sig, inputs) if renamed else node.hash
            self.hash += own - node.hash
            self.nodes[consumer] = Node(node.sig, inputs, node.sems, node.names, own)
            self.rewired[consumer] = None
        self.uses[new] = (*(self.uses.get(new) or ()), *uses)
        self.touched.add(new >> OUTPUT_BITS)

    def _remove_dead(self, waiting: list[int]) -> None:
        """Remove pure operators without a use, and then what only they used."""
        while waiting:
            node_id = waiting.pop()
            node = self.nodes.get(node_id)
            if node is None or self._is_used(node_id, len(node.sems)) or not _is_pure(node):
                continue
            self.hash -= node.hash
            for value in {v for v in node.inputs if v is not None}:
                self._drop_uses(value, (node_id,))
                waiting.append(value >> OUTPUT_BITS)
            self.nodes.pop(node_id)
            self.dead.append(node.sig)
            self.touched.discard(node_id)
            if node_id in self.added:
                self.added.remove(node_id)
            else:
                self.removed.append(node_id)

    def _is_used(self, node_id: int, outputs: int) -> bool:
        first, uses = node_id << OUTPUT_BITS, self.uses
        if outputs == 1:
            return bool(uses.get(first))
        return any(uses.get(value) for value in range(first, first + outputs))


@lru_cache(maxsize=1024)
def literal_leaf(value: float | int | tuple[float | int, ...], dtype: str, _text: str) -> Leaf:
    """Return the leaf of a literal, given as `LiteralValue`; its name is for the caller to make unique."""
    type_, weight = literal(value, dtype, (len(value),) if isinstance(value, tuple) else ())
    return Leaf("", type_, weight, stable_hash("weight", weight.digest))


def _is_pure(node: Node) -> bool:
    return not isinstance(node.sig.op, OpaqueOperator) or node.sig.op.pure


def rewrite(graph: Graph, site: Site) -> Rewriting:
    """Rewrite on copies of the maps; `Rewriting.finish` gives the graph."""
    return Rewriting(graph, copied(graph.nodes), copied(graph.uses)).run(site)


def predict(graph: Graph, site: Site) -> Rewriting:
    """Rewrite on overlays: gives hash, dead code and counts, but no graph."""
    return Rewriting(graph, Overlay(graph.nodes), Overlay(graph.uses)).run(site)
