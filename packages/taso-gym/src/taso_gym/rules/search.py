"""Searching a graph for patterns: a small interpreter of merged plans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from taso_gym.graph import OUTPUT_BITS, OUTPUT_MASK, Graph, Leaf, Node
from taso_gym.rules.plan import CLOSED, EDGE, EDGES, EMIT, EQ, IN, LITERAL, LT, NE, SAME, USE, VAR
from taso_gym.rules.trie import Branch, Switch
from taso_gym.tensor import TensorType, numpy_dtype

Embedding = tuple[int, tuple[int, ...]]
"""(number of the variant, ids of the matched nodes in pattern order)."""


def is_filled(leaf: Leaf, value: float) -> bool:
    """Whether a leaf is a weight all of whose elements are a number, as its element type holds it."""
    splat: float | None = getattr(leaf.weight, "splat", None)
    if splat is None or not isinstance(leaf.type, TensorType):
        return False
    return splat == value or splat == float(np.asarray(value, numpy_dtype(leaf.type.dtype)))


def search(graph: Graph, anchors: Switch, starts: Iterable[int]) -> list[Embedding]:
    """Return the embeddings of patterns that begin at the given nodes; one may come up from several anchors."""
    interpreter = _Interpreter(graph)
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

    def __init__(self, graph: Graph) -> None:
        self.nodes, self.uses, self.leaves = graph.nodes, graph.uses, graph.leaves
        self.ids: list[int] = []
        self.records: list[Node] = []
        self.found: list[Embedding] = []

    def walk(self, branches: tuple[Branch, ...]) -> None:
        """Carry out each branch with the registers as they are."""
        for code, a, b, c, d, rest in branches:
            if code == IN:
                self._producer(self.operand(a, b), c, rest)
            elif code == CLOSED:
                if self._closed(a, b, c):
                    self.walk(rest.branches())
            elif code == EMIT:
                self.found.append((a, self._matched(b)))
            elif code == USE:
                self._consumers(self._value(a, b), c, rest)
            elif code == VAR:
                self._consumers(self.operand(a, b), c, rest)
            elif self._test(code, a, b, c, d):
                self.walk(rest.branches())

    def _matched(self, registers: tuple[int, ...]) -> tuple[int, ...]:
        ids = self.ids
        return tuple([ids[register] for register in registers])

    def _value(self, register: int, output: int) -> int:
        return self.ids[register] << OUTPUT_BITS | output

    def operand(self, register: int, index: int) -> int:
        """Return an input of the node in a register; its label has made sure that it is there."""
        return self.records[register].inputs[index]  # pyright: ignore[reportReturnType]

    def _producer(self, value: int, output: int, switch: Switch) -> None:
        """Fill the next register with the node that a value is a certain output of, and go on."""
        node = self.nodes.get(value >> OUTPUT_BITS)
        if node is not None and value & OUTPUT_MASK == output:
            self._enter(value >> OUTPUT_BITS, node, switch)

    def _enter(self, node_id: int, node: Node, switch: Switch) -> None:
        """Fill the next register and go on with what its signature allows."""
        below = switch[node.sig]
        if below:
            self.ids.append(node_id)
            self.records.append(node)
            self.walk(below)
            self.ids.pop()
            self.records.pop()

    def _consumers(self, value: int, index: int, switch: Switch) -> None:
        """Fill the next register with each consumer of a value at an input, and go on."""
        for use in self.uses.get(value, ()):
            node = self.nodes[use >> OUTPUT_BITS]
            if use & OUTPUT_MASK == (index if index >= 0 else len(node.inputs) + index):
                self._enter(use >> OUTPUT_BITS, node, switch)

    def _test(self, code: int, a: int, b: Any, c: Any, d: Any) -> bool:
        if code == EQ:
            return self.operand(a, b) == self.operand(c, d)
        if code in (NE, LT):
            return self._apart(a, b, code == LT)
        if code == EDGE:
            return self.operand(a, b) == self._value(c, d)
        if code == LITERAL:
            leaf = self.leaves.get(self.operand(a, b))
            return leaf is not None and is_filled(leaf, c)
        if code == SAME:
            return self._span(a, b) == self._span(c, d)
        assert code == EDGES
        return self._span(a, (b, c)) == self._outputs(d)

    def _span(self, register: int, ends: tuple[int, int]) -> tuple[int | None, ...]:
        begin, tail = ends
        inputs = self.records[register].inputs
        return inputs[begin : len(inputs) - tail]

    def _apart(self, a: int, b: int, ascending: bool) -> bool:
        """Whether two registers hold different nodes."""
        return self.ids[a] < self.ids[b] if ascending else self.ids[a] != self.ids[b]

    def _outputs(self, register: int) -> tuple[int, ...]:
        first = self.ids[register] << OUTPUT_BITS
        return tuple(range(first, first + len(self.records[register].sems)))

    def _closed(self, register: int, counts: tuple[int | None, ...], default: int) -> bool:
        """Whether each output has as many uses as the pattern gives it."""
        first, outputs = self.ids[register] << OUTPUT_BITS, len(self.records[register].sems)
        if outputs == 1 and counts:
            return counts[0] is None or len(self.uses.get(first, ())) == counts[0]
        for output in range(outputs):
            count = counts[output] if output < len(counts) else default
            if count is not None and len(self.uses.get(first | output, ())) != count:
                return False
        return True
