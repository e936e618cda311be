"""Searching a graph for patterns: a small interpreter of merged plans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from taso_gym.graph import OUTPUT_BITS, Graph, Leaf, Node
from taso_gym.rules.compiled import Anchors
from taso_gym.rules.labels import Labels
from taso_gym.rules.plan import CLOSED, EDGE, EDGES, EMIT, EQ, IN, LITERAL, LT, NE, SAME, USE, VAR, Branch
from taso_gym.tensor import TensorType, numpy_dtype

Embedding = tuple[int, tuple[int, ...]]
"""(number of the variant, ids of the matched nodes in pattern order)."""

_OUTPUT = (1 << OUTPUT_BITS) - 1


def is_filled(leaf: Leaf, value: float) -> bool:
    """Whether a leaf is a weight all of whose elements are a number, as its element type holds it."""
    splat: float | None = getattr(leaf.weight, "splat", None)
    if splat is None or not isinstance(leaf.type, TensorType):
        return False
    return splat == value or splat == float(np.asarray(value, numpy_dtype(leaf.type.dtype)))


def search(graph: Graph, anchors: Anchors, labels: Labels, starts: Iterable[int]) -> list[Embedding]:
    """Return the embeddings of patterns that begin at the given nodes; one may come up from several anchors."""
    interpreter = _Interpreter(graph, labels)
    nodes = graph.nodes
    for start in starts:
        node = nodes[start]
        branches = anchors[node.sig]
        if branches:
            interpreter.ids[:] = [start]
            interpreter.records[:] = [node]
            interpreter.walk(branches)
    return interpreter.found


class _Interpreter:
    """Registers and results of one search; see `taso_gym.rules.plan` for the instructions."""

    def __init__(self, graph: Graph, labels: Labels) -> None:
        self.graph, self.labels = graph, labels
        self.nodes, self.uses = graph.nodes, graph.uses
        self.ids: list[int] = []
        self.records: list[Node] = []
        self.found: list[Embedding] = []

    def walk(self, branches: tuple[Branch, ...]) -> None:
        """Carry out each branch with the registers as they are."""
        ids, records = self.ids, self.records
        for code, a, b, c, d, rest in branches:
            if code == EMIT:
                self.found.append((a, tuple([ids[r] for r in b])))
            elif code == IN:
                value = records[a].inputs[b]
                if value & _OUTPUT == c:
                    self._enter(value >> OUTPUT_BITS, d, rest)
            elif code == USE:
                self._consumers(ids[a] << OUTPUT_BITS | b, c, d, rest)
            elif code == VAR:
                self._consumers(records[a].inputs[b], c, d, rest)
            elif self._test(code, a, b, c, d):
                self.walk(rest)

    def _enter(self, node_id: int, label: int, rest: tuple[Branch, ...]) -> None:
        """Fill the next register with a node that has a label, and go on."""
        node = self.nodes.get(node_id)
        if node is not None and self.labels[node.sig] & label:
            self.ids.append(node_id)
            self.records.append(node)
            self.walk(rest)
            self.ids.pop()
            self.records.pop()

    def _consumers(self, value: int, index: int, label: int, rest: tuple[Branch, ...]) -> None:
        for use in self.uses.get(value, ()):
            consumer = use >> OUTPUT_BITS
            at = use & _OUTPUT
            if at == index or (index < 0 and at == len(self.nodes[consumer].inputs) + index):
                self._enter(consumer, label, rest)

    def _test(self, code: int, a: Any, b: Any, c: Any, d: Any) -> bool:
        ids, records = self.ids, self.records
        if code == CLOSED:
            return self._closed(ids[a], len(records[a].sems), b, c)
        if code == EQ:
            return records[a].inputs[b] == records[c].inputs[d]
        if code == NE:
            return ids[a] != ids[b]
        if code == LT:
            return ids[a] < ids[b]
        if code == EDGE:
            return records[a].inputs[b] == ids[c] << OUTPUT_BITS | d
        if code == LITERAL:
            leaf = self.graph.leaves.get(records[a].inputs[b])  # pyright: ignore[reportArgumentType]
            return leaf is not None and is_filled(leaf, c)
        if code == SAME:
            return self._span(a, *b) == self._span(c, *d)
        assert code == EDGES
        outputs = range(ids[d] << OUTPUT_BITS, (ids[d] << OUTPUT_BITS) + len(records[d].sems))
        return self._span(a, b, c) == tuple(outputs)

    def _span(self, register: int, begin: int, tail: int) -> tuple[int | None, ...]:
        inputs = self.records[register].inputs
        return inputs[begin : len(inputs) - tail]

    def _closed(self, node_id: int, outputs: int, counts: tuple[int | None, ...], default: int) -> bool:
        """Whether each output has as many uses as the pattern gives it."""
        uses = self.uses
        for output in range(outputs):
            count = counts[output] if output < len(counts) else default
            if count is not None and len(uses.get(node_id << OUTPUT_BITS | output, ())) != count:
                return False
        return True
