"""What a rewrite does to a graph, told from the matched nodes, so that it can be done elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from taso_agents.world_models.graph.dream_graph import (
    Address,
    DreamNode,
    Link,
    Nodes,
    address_of,
    follow_address,
    with_codes,
)


class Patch(NamedTuple):
    """What a rewrite does to a graph, told from the matched nodes.

    Nodes are numbered: first those that were matched, then those at ``further`` addresses; ~i is the i-th new one.

    Attributes:
        further: addresses.
        removed: numbers.
        labels: of new nodes, in the order of their ids.
        wired: (number, label, inputs) of nodes that are new or not as they were.
    """

    further: tuple[Address, ...]
    removed: tuple[int, ...]
    labels: tuple[int, ...]
    wired: tuple[tuple[int, int, tuple[Link, ...]], ...]


def patch_of(before: Nodes, after: Nodes, matched: Sequence[int]) -> Patch | None:
    """Return what led from one graph to the next; None if it can't be told from the matched nodes."""
    removed = sorted(before.keys() - after.keys())
    added = sorted(after.keys() - before.keys())
    same = before.keys() & after.keys()
    changed = sorted(x for x in same if before[x].label != after[x].label or before[x].inputs != after[x].inputs)
    number = {x: ~i for i, x in enumerate(added)}
    known = [x for x in matched if x >= 0]
    number.update((x, i) for i, x in reversed(list(enumerate(known))))
    further: list[Address] = []
    sources = [y for x in (*changed, *added) for y, _ in after[x].inputs]
    for x in (*removed, *changed, *sources):
        if x not in number:
            address = address_of(before, known, x)
            if not address:
                return None
            number[x] = len(known)
            known.append(x)
            further.append(address)
    wired = tuple(
        (number[x], after[x].label, tuple((number[y], kind) for y, kind in after[x].inputs)) for x in (*changed, *added)
    )
    return Patch(tuple(further), tuple(number[x] for x in removed), tuple(after[x].label for x in added), wired)


def apply_patch(
    nodes: Nodes, matched: Sequence[int], patch: Patch, next_id: int
) -> tuple[Nodes, list[set[int]]] | None:
    """Return a graph after a patch and what `with_codes` says of it; None if the patch doesn't fit here.

    New nodes are ``next_id`` and those that follow it.
    """
    known = [x for x in matched if x >= 0]
    for address in patch.further:
        x = follow_address(nodes, known, address)
        if x is None:
            return None
        known.append(x)

    def node_at(number: int) -> int:
        return known[number] if number >= 0 else next_id + ~number

    removed = {known[i] for i in patch.removed}
    wired = {node_at(i): (label, tuple((node_at(j), kind) for j, kind in inputs)) for i, label, inputs in patch.wired}
    uses = _uses_after(nodes, removed, {x: inputs for x, (_, inputs) in wired.items()})
    if any(uses.get(x, nodes[x].uses) for x in removed):
        return None  # what is still used can't go
    after = {x: node for x, node in nodes.items() if x not in removed}
    for x, (label, inputs) in wired.items():
        after[x] = nodes[x]._replace(label=label, inputs=inputs) if x in nodes else DreamNode(label, inputs, ())
    for x in uses.keys() - removed:
        after[x] = after[x]._replace(uses=uses[x])
    return after, with_codes(after, (wired.keys() | uses.keys()) - removed)


def _uses_after(
    nodes: Nodes, removed: AbstractSet[int], inputs: Mapping[int, tuple[Link, ...]]
) -> dict[int, tuple[Link, ...]]:
    """Return the uses of all nodes whose uses may be others, once nodes are removed and these have such inputs."""
    uses: dict[int, set[Link]] = {}

    def uses_of(x: int) -> set[Link]:
        return uses.setdefault(x, set(nodes[x].uses) if x in nodes else set())

    for x in removed | (inputs.keys() & nodes.keys()):
        for y, kind in nodes[x].inputs:
            uses_of(y).discard((x, kind))
    for x, links in inputs.items():
        for y, kind in links:
            uses_of(y).add((x, kind))
    return {x: tuple(sorted(found)) for x, found in uses.items()}
