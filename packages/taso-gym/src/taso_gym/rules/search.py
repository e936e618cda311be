"""Searching a graph for patterns: a small interpreter of merged plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from functools import lru_cache
from math import copysign
from typing import Any

import numpy as np

from taso_gym.errors import TypeInferenceError
from taso_gym.graph import OUTPUT_BITS, OUTPUT_MASK, Graph, Leaf, Node
from taso_gym.ops import Operator
from taso_gym.rules.plan import CLOSED, EDGE, EDGES, EMIT, EQ, IN, LITERAL, LT, NE, SAME, USE, VAR
from taso_gym.rules.trie import Branch, Switch
from taso_gym.signature import Signature, signature
from taso_gym.tensor import FLOATS, TensorType, numpy_dtype

Embedding = tuple[int, tuple[int, ...]]
"""(number of the variant, ids of the matched nodes in pattern order)."""


def is_filled(leaf: Leaf, value: float) -> bool:
    """Whether a leaf is a weight all of whose elements are a number, as its floating type holds it; -0 isn't 0."""
    splat: float | None = getattr(leaf.weight, "splat", None)
    if splat is None or not isinstance(leaf.type, TensorType):
        return False
    if splat == value:
        return copysign(1, splat) == copysign(1, value)
    return leaf.type.dtype in FLOATS and splat == float(np.asarray(value, numpy_dtype(leaf.type.dtype)))


def search(
    graph: Graph, anchors: Switch, starts: Iterable[int], known: Set[int] = frozenset(), every: bool = False
) -> list[Embedding]:
    """Return the embeddings of patterns that begin at the given nodes.

    Args:
        graph: where to search.
        anchors: the plans.
        starts: the nodes; one embedding may come up from several of them.
        known: nodes whose embeddings aren't asked for.
        every: ``anchors`` has plans from every node of a pattern, so that an embedding that holds several starts needs
            to be found from the first of them only.
    """
    interpreter = Interpreter(graph, set(known))
    nodes = graph.nodes
    for start in starts:
        node = nodes[start]
        branches = anchors[node.sig]
        if branches:
            interpreter.ids[:] = [start]
            interpreter.records[:] = [node]
            interpreter.walk(branches)
        if every:
            interpreter.known.add(start)
    return interpreter.found


class Interpreter:
    """Registers and results of one search; see `taso_gym.rules.plan` for the instructions."""

    def __init__(self, graph: Graph, known: set[int]) -> None:
        self.nodes, self.uses, self.leaves = graph.nodes, graph.uses, graph.leaves
        self.known = known
        self.ids: list[int] = []
        self.records: list[Node] = []
        self.found: list[Embedding] = []

    def walk(self, branches: tuple[Branch, ...]) -> None:
        """Carry out each branch with the registers as they are; what follows a test that was passed is put behind."""
        ids, waiting = self.ids, [branches]
        for some in waiting:
            for code, a, b, c, d, rest in some:
                if code == IN:
                    value = self.operand(a, b)
                    if value & OUTPUT_MASK == c:
                        self._enter(value >> OUTPUT_BITS, rest)
                elif code == USE:
                    self._consumers(ids[a] << OUTPUT_BITS | b, c, rest)
                elif code == VAR:
                    self._consumers(self.operand(a, b), c, rest)
                elif code == EMIT:
                    self.found.append((a, self._matched(b)))
                elif _TESTS[code](self, a, b, c, d):
                    waiting.append(rest.made or rest.make())

    def operand(self, register: int, index: int) -> int:
        """Return an input of the node in a register; its label has made sure that it is there."""
        return self.records[register].inputs[index]  # pyright: ignore[reportReturnType]

    def _matched(self, registers: tuple[int, ...]) -> tuple[int, ...]:
        ids = self.ids
        return tuple([ids[register] for register in registers])

    def span(self, register: int, ends: tuple[int, int]) -> tuple[int | None, ...]:
        """Return the inputs of the node in a register without some at either end."""
        inputs = self.records[register].inputs
        return inputs[ends[0] : len(inputs) - ends[1]]

    def _enter(self, node_id: int, switch: Switch) -> None:
        """Fill the next register and go on with what its signature allows."""
        node = self.nodes.get(node_id)
        if node is None or node_id in self.known:
            return
        if below := switch[node.sig]:
            self.ids.append(node_id)
            self.records.append(node)
            self.walk(below)
            self.ids.pop()
            self.records.pop()

    def _consumers(self, value: int, index: int, switch: Switch) -> None:
        """Fill the next register with each consumer of a value at an input, and go on."""
        for use in self.uses.get(value, ()):
            at = index if index >= 0 else len(self.nodes[use >> OUTPUT_BITS].inputs) + index
            if use & OUTPUT_MASK == at:
                self._enter(use >> OUTPUT_BITS, switch)


def _is_same(at: Interpreter, r: int, i: int, q: int, j: int) -> bool:
    return at.records[r].inputs[i] == at.records[q].inputs[j]


def _is_edge(at: Interpreter, r: int, i: int, q: int, output: int) -> bool:
    return at.records[r].inputs[i] == at.ids[q] << OUTPUT_BITS | output


def _is_other(at: Interpreter, r: int, q: int, _: None, __: None) -> bool:
    return at.ids[r] != at.ids[q]


def _is_before(at: Interpreter, r: int, q: int, _: None, __: None) -> bool:
    return at.ids[r] < at.ids[q]


def _are_same(at: Interpreter, r: int, ends: tuple[int, int], q: int, others: tuple[int, int]) -> bool:
    return at.span(r, ends) == at.span(q, others)


def _is_literal(at: Interpreter, register: int, index: int, value: float, _: float) -> bool:
    leaf = at.leaves.get(at.operand(register, index))
    return leaf is not None and is_filled(leaf, value) and not _widens(at.records[register].sig, index)


@lru_cache(maxsize=1 << 16)
def _widens(sig: Signature, index: int) -> bool:
    """Whether a result is larger than it would be with a scalar as an operand: a literal of a rule stands for one."""
    operands = list(sig.inputs)
    literal = operands[index]
    assert isinstance(literal, TensorType) and isinstance(sig.op, Operator)
    if not literal.shape:
        return False
    operands[index] = literal._replace(shape=())
    try:
        return signature(sig.op, dict(sig.attrs), operands).outputs != sig.outputs
    except TypeInferenceError:
        return False  # it takes no scalar, so what it is given can't be wider than one


def _are_outputs(at: Interpreter, register: int, begin: int, tail: int, producer: int) -> bool:
    """Whether inputs are all outputs of a node, in order."""
    first = at.ids[producer] << OUTPUT_BITS
    outputs = range(first, first + len(at.records[producer].sems))
    return at.span(register, (begin, tail)) == tuple(outputs)


def _is_closed(at: Interpreter, register: int, counts: tuple[int | None, ...], default: int, _: None) -> bool:
    """Whether each output has as many uses as the pattern gives it."""
    first, outputs = at.ids[register] << OUTPUT_BITS, len(at.records[register].sems)
    if outputs == 1 and counts:
        return counts[0] is None or len(at.uses.get(first, ())) == counts[0]
    for output in range(outputs):
        count = counts[output] if output < len(counts) else default
        if count is not None and len(at.uses.get(first | output, ())) != count:
            return False
    return True


_TESTS: dict[int, Callable[[Interpreter, Any, Any, Any, Any], bool]] = {
    EQ: _is_same,
    SAME: _are_same,
    EDGE: _is_edge,
    EDGES: _are_outputs,
    NE: _is_other,
    LT: _is_before,
    LITERAL: _is_literal,
    CLOSED: _is_closed,
}
"""The instructions that test; see `taso_gym.rules.plan`."""
