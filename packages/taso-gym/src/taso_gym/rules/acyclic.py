"""Which rewrites would close a cycle: found per template from its dependencies, tested by reachability where need be.

A rewrite can only close a cycle where the right side makes an output depend on an input that the left side's output
didn't depend on, and that input depends on the output. Constant inputs depend on nothing. Most rules have no such pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from taso_gym.graph import OUTPUT_BITS, Graph, value_of
from taso_gym.rules.pattern import Inner, Pattern
from taso_gym.rules.rule import Rest, Var

if TYPE_CHECKING:
    from taso_gym.rules.template import Template


def dependencies(pattern: Pattern, spans: Mapping[str, range], same: Sequence[int]) -> list[frozenset[int]]:
    """Return, for each matched node, the slots that it depends on.

    Args:
        pattern: what is matched.
        spans: the slots of each variable.
        same: for each slot the first one that holds the same value.
    """
    found: dict[int, frozenset[int]] = {}

    def visit(number: int) -> frozenset[int]:
        if number not in found:
            slots: set[int] = set()
            for operand in pattern.nodes[number].operands:
                if isinstance(operand, Inner):
                    slots |= visit(operand.node)
                elif isinstance(operand, Var | Rest):
                    slots |= {same[i] for i in spans[operand.name]}
            found[number] = frozenset(slots)
        return found[number]

    return [visit(i) for i in range(len(pattern.nodes))]


def guards(before: Sequence[frozenset[int]], after: Sequence[frozenset[int]]) -> Iterator[tuple[int, int]]:
    """Yield (output, slot) pairs such that there is a cycle only if some such slot depends on its output.

    Args:
        before: for each replaced output the varying slots that it depends on, on the left.
        after: the same on the right.
    """
    new = [a - b for b, a in zip(before, after, strict=True)]
    for output, slots in enumerate(new):
        # 1. The right side itself leads from the slot to the output.
        risky = set(slots)
        # 2. It leads there through another output that newly depends on the slot, and back by a new dependency of
        #    this one. Rare, so it is refused without a look at the second half of the way.
        if slots:
            risky |= set[int]().union(*(others for i, others in enumerate(new) if i != output)) - before[output]
        yield from ((output, slot) for slot in sorted(risky))


class Reachability:
    """Which nodes of a graph depend on which; found when it is first asked for."""

    def __init__(self, graph: Graph) -> None:
        """Ask about ``graph``."""
        self._graph = graph

    def depends(self, value: int, output: int) -> bool:
        """Whether ``value`` depends on the value ``output``, or is it."""
        if value == output:
            return True
        above = self._ancestors.get(value >> OUTPUT_BITS, 0)
        return any(above >> (use >> OUTPUT_BITS) & 1 for use in self._graph.uses.get(output, ()))

    def closes_cycle(self, matched: Sequence[int], template: Template) -> bool:
        """Whether a rewrite of these nodes would make a value depend on itself."""
        bound = template.bound([self._graph.nodes[i] for i in matched])
        outputs = template.outputs
        return any(
            self.depends(bound[slot], value_of(matched[outputs[j][0]], outputs[j][1])) for j, slot in template.guards
        )

    @cached_property
    def _ancestors(self) -> dict[int, int]:
        """For each node that isn't constant, the bits of the nodes it depends on, itself included."""
        nodes = self._graph.nodes
        found: dict[int, int] = {}
        for start in nodes:
            stack = [start]
            while stack:
                node_id = stack[-1]
                if node_id in found:
                    stack.pop()
                    continue
                above = {v >> OUTPUT_BITS for v in nodes[node_id].inputs if v is not None}
                above = {p for p in above if p in nodes and not nodes[p].sig.const}
                missing = [p for p in above if p not in found]
                if missing:
                    stack += missing
                    continue
                bits = 1 << node_id
                for p in above:
                    bits |= found[p]
                found[node_id] = bits
                stack.pop()
        return found
