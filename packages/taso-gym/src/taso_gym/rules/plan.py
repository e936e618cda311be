"""Plans: how a pattern is searched for from one of its nodes, as a list of instructions.

A plan fills registers with graph nodes: register 0 is the anchor, IN, USE and VAR fill the next one, the others test
what is filled. Each test stands as early as it can, then the step with the fewest candidates comes first. Plans are
data: tuples that can be printed and compared, and merged by their common beginnings (`taso_gym.rules.trie`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from taso_gym.rules.labels import Labels, label_of
from taso_gym.rules.pattern import Inner, Literal, Pattern, is_all
from taso_gym.rules.rule import Expr, Rest, Var

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
LITERAL r i value          r[i] is a weight all of whose elements are ``value``
CLOSED r counts default    each output has exactly that many uses; None: any number; ``default`` beyond ``counts``
EMIT variant registers     a match: its nodes in pattern order
"""

Instruction = tuple[Any, ...]
Operand = tuple[int, int]
"""(pattern node, position)."""


class Planner:
    """Makes the plans of one pattern."""

    def __init__(self, pattern: Pattern, conditions: tuple[Expr, ...], labels: Labels, variant: int) -> None:
        """Plan for ``pattern``, which EMIT calls ``variant``; enter its nodes' labels, ``conditions`` included."""
        self.pattern, self.variant = pattern, variant
        self.bits = [labels.bit(label_of(pattern, i, conditions)) for i in range(len(pattern.nodes))]
        self.edges = list(pattern.edges())
        self.singles = [
            (name, node, position)
            for name, node, position in pattern.variables()
            if isinstance(pattern.nodes[node].operands[position], Var)
        ]
        self.above = [self._ancestors(i) for i in range(len(pattern.nodes))]
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
            node, followed, step = min(self._steps(), key=lambda found: found[2][0])
            self.plan.append(step)
            self._fill(node, followed)
        self.plan.append((EMIT, self.variant, tuple([self.register[i] for i in range(len(self.pattern.nodes))])))
        return self.plan

    def _ancestors(self, node: int) -> frozenset[int]:
        """Return the pattern nodes that a node depends on, which can't be the same graph node as it."""
        inner = [o.node for o in self.pattern.nodes[node].operands if isinstance(o, Inner)]
        return frozenset(inner).union(*map(self._ancestors, inner))

    def _steps(self) -> Iterator[tuple[int, Operand, Instruction]]:
        """Yield the ways to fill the next register: the node, the operand that is followed, the instruction."""
        nodes = self.pattern.nodes
        for consumer, position, inner in self.edges:
            at, output = nodes[consumer].index(position), inner.output or 0
            operand = consumer, position
            if consumer in self.register and inner.node not in self.register:
                yield inner.node, operand, (IN, self.register[consumer], at, output, self.bits[inner.node])
            if inner.node in self.register and consumer not in self.register:
                yield consumer, operand, (USE, self.register[inner.node], output, at, self.bits[consumer])
        for name, node, position in self.singles:
            if node not in self.register and name in self.place:
                at = nodes[node].index(position)
                yield node, (node, position), (VAR, *self.place[name], at, self.bits[node])

    def _fill(self, node: int, followed: Operand | None) -> None:
        """Give a node the next register and add every test that has become possible."""
        own = self.register[node] = len(self.register)
        self._test_closed(node, own)
        for other in self.register:
            if other != node and self.pattern.nodes[other].op is self.pattern.nodes[node].op:
                self._test_distinct(other, node)
        for position, operand in enumerate(self.pattern.nodes[node].operands):
            if isinstance(operand, Inner):
                if operand.node in self.register:
                    self._test_edge(node, position, operand, followed)
            elif (node, position) != followed:
                self._test_operand(node, position, operand)
        for consumer, position, inner in self.edges:
            if inner.node == node and consumer in self.register:
                self._test_edge(consumer, position, inner, followed)

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
            self.plan.append((LITERAL, own, at, operand.value))
        elif isinstance(operand, Var):
            first = self.place.setdefault(operand.name, (own, at))
            if first != (own, at):
                self.plan.append((EQ, *first, own, at))
        elif isinstance(operand, Rest):
            rest = self.rests.setdefault(operand.name, (own, at, tail))
            if rest != (own, at, tail):
                self.plan.append((SAME, rest[0], rest[1:], own, (at, tail)))

    def _test_edge(self, consumer: int, position: int, inner: Inner, followed: Operand | None) -> None:
        """Test an edge between two filled registers, but for the one that has just been followed."""
        record = self.pattern.nodes[consumer]
        r, q, at = self.register[consumer], self.register[inner.node], record.index(position)
        if inner.output is None:
            self.plan.append((EDGES, r, at, len(record.operands) - 1 - position, q))
        elif (consumer, position) != followed:
            self.plan.append((EDGE, r, at, q, inner.output))

    def _test_closed(self, node: int, own: int) -> None:
        """Require that outputs which aren't replaced are used inside the pattern only."""
        roots = [root.output for root in self.pattern.roots if root.node == node]
        if None in roots:
            return
        wanted = [inner for _, _, inner in self.edges if inner.node == node]
        every = sum(map(is_all, wanted))
        counts = {i.output: every for i in wanted if i.output is not None}
        for inner in wanted:
            if inner.output is not None:
                counts[inner.output] += 1
        counts |= dict.fromkeys(roots)
        size = max((o for o in counts if o is not None), default=-1) + 1
        self.plan.append((CLOSED, own, tuple(counts.get(o, every) for o in range(size)), every))


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
