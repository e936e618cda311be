"""Plans: how a pattern is searched for from one of its nodes, as a list of instructions.

A plan fills registers with graph nodes: register 0 is the anchor, IN, USE and VAR fill the next one, the others test
what is filled. Each test stands as early as it can, then the step with the fewest candidates comes first. Plans are
data: tuples that can be printed and compared, and merged by their common beginnings (`taso_gym.rules.trie`).
"""

from __future__ import annotations

from functools import cached_property
from math import copysign
from typing import Any, NamedTuple

from taso_gym.rules.labels import Conditions, Labels, label_of
from taso_gym.rules.pattern import Inner, Literal, Pattern
from taso_gym.rules.rule import Rest, Var

IN, USE, VAR, EQ, SAME, EDGE, EDGES, NE, LT, LITERAL, CLOSED, EMIT = range(12)
"""Instructions; ``r[i]`` is input i of the node in register r, a label is a bit of `Labels`.

IN r i output label        the producer of r[i], of which r[i] is that output
USE r output i label       a consumer of that output of r, at its input i
VAR r i j label            a consumer, at its input j, of the value r[i]
EQ r i q j                 r[i] and q[j] are the same value
SAME r (i, tail) q (j, tail)  the inputs from i on but for ``tail`` at the end are the same values
EDGE r i q output          r[i] is that output of q
EDGES r i tail q           the inputs from i on but for ``tail`` at the end are all outputs of q in order
NE r q, LT r q             different nodes; the first has the smaller id
LITERAL r i value sign     r[i] is a weight all of whose elements are ``value``, which has a sign if it is 0, too
CLOSED r counts default    each output has exactly that many uses; None: any number; ``default`` beyond ``counts``
EMIT variant registers     a match: its nodes in pattern order
"""

Instruction = tuple[Any, ...]


class Edge(NamedTuple):
    """An operand that another pattern node computes.

    Attributes:
        consumer, position: whose operand it is.
        at: the input index that it is found at.
        inner: the producer.
    """

    consumer: int
    position: int
    at: int
    inner: Inner


class Planner:
    """Makes the plans of one pattern."""

    def __init__(self, pattern: Pattern, conditions: Conditions, labels: Labels, variant: int) -> None:
        """Plan for ``pattern``, which EMIT calls ``variant``; enter its nodes' labels, ``conditions`` included."""
        self.pattern, self.variant = pattern, variant
        self.bits = [labels.bit(label_of(pattern, i, conditions)) for i in range(len(pattern.nodes))]
        self.edges = [Edge(c, p, pattern.nodes[c].index(p), inner) for c, p, inner in pattern.edges()]
        self.above = [self._ancestors(i) for i in range(len(pattern.nodes))]
        self.closed = [self._closed(i) for i in range(len(pattern.nodes))]
        self.register: dict[int, int] = {}
        self.place: dict[str, tuple[int, int]] = {}
        self.rests: dict[str, tuple[int, int, int]] = {}
        self.plan: list[Instruction] = []

    @property
    def best(self) -> int:
        """The node to search from in a whole graph: most others are reached by following inputs."""
        return max(range(len(self.above)), key=lambda i: len(self.above[i]))

    def make(self, anchor: int) -> list[Instruction]:
        """Return the instructions of a search that begins at the node ``anchor``; the last is EMIT."""
        self.register, self.place, self.rests, self.plan = {}, {}, {}, []
        self._fill(anchor, None)
        while len(self.register) < len(self.pattern.nodes):
            self._fill(*self._step())
        self.plan.append((EMIT, self.variant, tuple([self.register[i] for i in range(len(self.pattern.nodes))])))
        return self.plan

    def _ancestors(self, node: int) -> frozenset[int]:
        """Return the pattern nodes that a node depends on, which can't be the same graph node as it."""
        inner = [o.node for o in self.pattern.nodes[node].operands if isinstance(o, Inner)]
        return frozenset(inner).union(*map(self._ancestors, inner))

    def _step(self) -> tuple[int, Edge | int]:
        """Fill the next register by the step with the fewest candidates; return the node and the operand followed."""
        register, bits = self.register, self.bits
        for edge in self.edges:
            if edge.consumer in register and edge.inner.node not in register:
                node, output = edge.inner.node, edge.inner.output or 0
                self.plan.append((IN, register[edge.consumer], edge.at, output, bits[node]))
                return node, edge
        for edge in self.edges:
            if edge.inner.node in register and edge.consumer not in register:
                self.plan.append((USE, register[edge.inner.node], edge.inner.output or 0, edge.at, bits[edge.consumer]))
                return edge.consumer, edge
        for name, node, position in self.pattern.variables():
            if node not in register and name in self.place:
                at = self.pattern.nodes[node].index(position)
                self.plan.append((VAR, *self.place[name], at, bits[node]))
                return node, position
        raise AssertionError(f"{self.pattern} isn't connected")

    def _fill(self, node: int, followed: Edge | int | None) -> None:
        """Give a node the next register and add every test that has become possible.

        Args:
            node: the pattern node.
            followed: the edge, or the position of the variable, by which the register is filled.
        """
        own = self.register[node] = len(self.register)
        if closed := self.closed[node]:
            self.plan.append((CLOSED, own, *closed))
        for other in self.register:
            if other != node and self.pattern.nodes[other].op is self.pattern.nodes[node].op:
                self._test_distinct(other, node)
        for position, operand in enumerate(self.pattern.nodes[node].operands):
            if position != followed:
                self._test_operand(node, position, operand)
        for edge in self.edges:
            if node in (edge.consumer, edge.inner.node) and edge.consumer in self.register:
                self._test_edge(edge, followed)

    def _test_distinct(self, a: int, b: int) -> None:
        if a in self.above[b] or b in self.above[a]:
            return
        if (b, a) in self.pattern.ascending:
            a, b = b, a
        sign = LT if (a, b) in self.pattern.ascending else NE
        self.plan.append((sign, self.register[a], self.register[b]))

    def _test_operand(self, node: int, position: int, operand: object) -> None:
        record, own = self.pattern.nodes[node], self.register[node]
        at, tail = record.index(position), len(record.operands) - 1 - position
        if isinstance(operand, Literal):
            self.plan.append((LITERAL, own, at, operand.value, copysign(1, operand.value)))
        elif isinstance(operand, Var):
            first = self.place.setdefault(operand.name, (own, at))
            if first != (own, at):
                self.plan.append((EQ, *first, own, at))
        elif isinstance(operand, Rest):
            rest = self.rests.setdefault(operand.name, (own, at, tail))
            if rest != (own, at, tail):
                self.plan.append((SAME, rest[0], rest[1:], own, (at, tail)))

    def _test_edge(self, edge: Edge, followed: Edge | int | None) -> None:
        """Test an edge between two filled registers, but for the one that has just been followed."""
        if edge.inner.node not in self.register:
            return
        r, q = self.register[edge.consumer], self.register[edge.inner.node]
        if edge.inner.output is None:
            tail = len(self.pattern.nodes[edge.consumer].operands) - 1 - edge.position
            self.plan.append((EDGES, r, edge.at, tail, q))
        elif edge is not followed:
            self.plan.append((EDGE, r, edge.at, q, edge.inner.output))

    def _closed(self, node: int) -> tuple[tuple[int | None, ...], int] | None:
        """Return how often each output of a node may be used, if any is used inside the pattern only."""
        roots = [root.output for root in self.pattern.roots if root.node == node]
        if None in roots:
            return None
        wanted = [edge.inner.output for edge in self.edges if edge.inner.node == node]
        every = wanted.count(None)
        size = max([-1, *(o for o in (*roots, *wanted) if o is not None)]) + 1
        return tuple([None if o in roots else every + wanted.count(o) for o in range(size)]), every


class Search:
    """The search for a pattern from one of its nodes; it is planned when it is first needed."""

    def __init__(self, planner: Planner, anchor: int) -> None:
        """Search from the pattern node ``anchor``."""
        self._planner, self._anchor = planner, anchor
        self.bit = planner.bits[anchor]

    @cached_property
    def plan(self) -> list[Instruction]:
        """The instructions."""
        return self._planner.make(self._anchor)
