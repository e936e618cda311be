"""Graphs that are dreamt: nodes with what surrounds each, and how nodes are found from others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

HUB = 8
"""A node with so many uses says nothing of its consumers: else a mask that all layers read would join them all."""
RADIUS = 3
"""How many edges a code looks beyond its node."""
REACH = 3
"""How many edges an address may go from a known node to the next."""

PORTS = 256
"""A kind of edge is this many times the number of what it carries (type, output of the producer), and the input of the
consumer; from the 256th on these aren't told apart."""

Link = tuple[int, int]
"""(node, kind of the edge to or from it)."""
Address = tuple[int, ...]
"""(number of a known node, moves): move i ≥ 0 goes to the producer of input i, -2 - i to consumer i; empty for none.

No move is -1, for Python hashes it as it does -2."""


class DreamNode(NamedTuple):
    """A node and what surrounds it.

    Attributes:
        label: number of its features, consumers left out.
        inputs: producers by port.
        uses: consumers, ascending.
        codes: hash of all that is at most 0, 1, … `RADIUS` edges away, in order.
    """

    label: int
    inputs: tuple[Link, ...]
    uses: tuple[Link, ...]
    codes: tuple[int, ...] = ()


Nodes = dict[int, DreamNode]


def with_codes(nodes: Nodes, changed: Iterable[int]) -> list[set[int]]:
    """Give nodes their codes, in place; return for each radius the nodes whose code has become another.

    Codes are hashes of tuples of integers, as in the Weisfeiler-Leman test, so they are the same in every process.

    Args:
        nodes: all of a graph.
        changed: those whose label, inputs or uses are new.
    """
    first = set(changed)
    fresh: dict[int, list[int]] = {}
    around = {y for x in first for y, _ in (*nodes[x].inputs, *nodes[x].uses)}
    differ: list[set[int]] = []
    for radius in range(RADIUS + 1):
        due = first if not radius else first | around | differ[-1]
        if radius:
            due = due | {y for x in differ[-1] if len(nodes[x].uses) < HUB for y, _ in nodes[x].inputs + nodes[x].uses}
        found = {x: _code(nodes, x, radius, fresh) for x in due}
        differ.append({x for x, code in found.items() if not nodes[x].codes or nodes[x].codes[radius] != code})
        for x, code in found.items():
            fresh.setdefault(x, list(nodes[x].codes) or [0] * (RADIUS + 1))[radius] = code
    for x, codes in fresh.items():
        nodes[x] = nodes[x]._replace(codes=tuple(codes))
    return differ


def _code(nodes: Nodes, x: int, radius: int, fresh: dict[int, list[int]]) -> int:
    node = nodes[x]
    if not radius or len(node.uses) >= HUB:
        return hash((node.label, min(len(node.uses), HUB)))

    def inner(y: int) -> int:
        return fresh[y][radius - 1] if y in fresh else nodes[y].codes[radius - 1]

    above = tuple([(kind, _place(nodes[y], x, kind), inner(y)) for y, kind in node.inputs])
    return hash((inner(x), above, tuple([(kind, inner(y)) for y, kind in node.uses])))


def _place(producer: DreamNode, consumer: int, kind: int) -> int:
    """Return which of a producer's uses this is; a hub doesn't say."""
    return 0 if len(producer.uses) >= HUB else producer.uses.index((consumer, kind))


def address_of(nodes: Nodes, known: Sequence[int], target: int) -> Address:
    """Return how a node is found from known ones, the shortest way; empty if it is too far."""
    if target in known:
        return (known.index(target),)
    frontier: list[tuple[int, Address]] = [(x, (i,)) for i, x in enumerate(known)]
    passed = set(known)
    for _ in range(REACH):
        further: list[tuple[int, Address]] = []
        for x, way in frontier:
            node = nodes[x]
            for i, (y, _) in enumerate(node.inputs):
                if y == target:
                    return (*way, i)
                if y not in passed:
                    passed.add(y)
                    further.append((y, (*way, i)))
            for i, (y, _) in enumerate(node.uses if len(node.uses) < HUB else ()):
                if y == target:
                    return (*way, -2 - i)
                if y not in passed:
                    passed.add(y)
                    further.append((y, (*way, -2 - i)))
        frontier = further
    return ()


def follow_address(nodes: Nodes, known: Sequence[int], address: Address) -> int | None:
    """Return the node at an address, or None where there is none."""
    if address[0] >= len(known):
        return None
    x = known[address[0]]
    for move in address[1:]:
        links = nodes[x].inputs if move >= 0 else nodes[x].uses
        i = move if move >= 0 else -2 - move
        if i >= len(links):
            return None
        x = links[i][0]
    return x


def addresses_of(nodes: Nodes, matched: Sequence[int]) -> tuple[Address, ...] | None:
    """Return how the nodes of a match are found from the first that there is; None if one is too far.

    What has no node, a constant, has an empty address.
    """
    known: list[int] = []
    found: list[Address] = []
    for x in matched:
        address: Address = ()
        if x >= 0:
            address = address_of(nodes, known, x) if known else (0,)
            if not address:
                return None
            known.append(x)
        found.append(address)
    return tuple(found)


def match_at(nodes: Nodes, anchor: int, addresses: Sequence[Address]) -> tuple[int, ...] | None:
    """Return the matched nodes at addresses, given the first of them; -1 for what has none."""
    known: list[int] = []
    found: list[int] = []
    for address in addresses:
        x = -1
        if address:
            place = follow_address(nodes, known, address) if known else anchor
            if place is None:
                return None
            known.append(x := place)
        found.append(x)
    return tuple(found)
