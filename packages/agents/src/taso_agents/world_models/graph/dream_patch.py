"""What a rewrite does to a graph, told from the matched nodes, so that it can be done elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from taso_agents.world_models.graph.dream_graph import (
    PORTS,
    Address,
    DreamNode,
    Link,
    Nodes,
    address_of,
    follow_address,
    with_codes,
)

Source = tuple[int, int]
"""(node, what it gives): one of a node's outputs."""
Wiring = tuple[int, tuple[Link, ...]]
"""(label, inputs) of a node."""


class Patch(NamedTuple):
    """What a rewrite does to a graph, told from the matched nodes.

    Nodes are numbered: first those that were matched, then those at ``further`` addresses; ~i is the i-th new one.

    Attributes:
        further: addresses.
        removed: numbers.
        labels: of new nodes, in the order of their ids.
        moved: (number, what it gave, number, what it gives) of outputs that others take the place of, for whoever
            uses them: what these are is no part of the rewrite.
        wired: (number, label, inputs) of nodes that are new, or not as they were in a way that ``moved`` doesn't tell.
    """

    further: tuple[Address, ...]
    removed: tuple[int, ...]
    labels: tuple[int, ...]
    moved: tuple[tuple[int, int, int, int], ...]
    wired: tuple[tuple[int, int, tuple[Link, ...]], ...]


def patch_of(before: Nodes, after: Nodes, matched: Sequence[int]) -> Patch | None:
    """Return what led from one graph to the next; None if it can't be told from the matched nodes."""
    removed = sorted(before.keys() - after.keys())
    added = sorted(after.keys() - before.keys())
    same = before.keys() & after.keys()
    changed = sorted(x for x in same if before[x].label != after[x].label or before[x].inputs != after[x].inputs)
    moves = _moves_of(before, after, changed)
    rest = [
        x
        for x in changed
        if before[x].label != after[x].label or moved_inputs(before[x].inputs, moves) != after[x].inputs
    ]
    number = {x: ~i for i, x in enumerate(added)}
    known = [x for x in matched if x >= 0]
    number.update((x, i) for i, x in reversed(list(enumerate(known))))
    further: list[Address] = []
    ends = [x for (old, _), (new, _) in moves.items() for x in (old, new)]
    sources = [y for x in (*rest, *added) for y, _ in after[x].inputs]
    for x in (*removed, *ends, *rest, *sources):
        if x not in number:
            address = address_of(before, known, x)
            if not address:
                return None
            number[x] = len(known)
            known.append(x)
            further.append(address)
    wired = [
        (number[x], after[x].label, tuple((number[y], kind) for y, kind in after[x].inputs)) for x in (*rest, *added)
    ]
    return Patch(
        tuple(further),
        tuple(sorted(number[x] for x in removed)),
        tuple(after[x].label for x in added),
        tuple(sorted((number[old], gave, number[new], gives) for (old, gave), (new, gives) in moves.items())),
        tuple(sorted(wired)),
    )


def _moves_of(before: Nodes, after: Nodes, changed: Iterable[int]) -> dict[Source, Source]:
    """Return which outputs took the place of which, where that is the same for all who use them and are still there."""
    moves: dict[Source, Source] = {}
    for x in changed:
        if [kind % PORTS for _, kind in before[x].inputs] == [kind % PORTS for _, kind in after[x].inputs]:
            for old, new in zip(before[x].inputs, after[x].inputs, strict=True):
                if old != new:
                    moves.setdefault((old[0], old[1] // PORTS), (new[0], new[1] // PORTS))

    def holds(old: Source, new: Source) -> bool:
        users = [(x, kind) for x, kind in before[old[0]].uses if kind // PORTS == old[1] and x in after]
        return all((new[0], PORTS * new[1] + kind % PORTS) in after[x].inputs for x, kind in users)

    return {old: new for old, new in moves.items() if holds(old, new)}


def moved_inputs(inputs: Iterable[Link], moves: Mapping[Source, Source]) -> tuple[Link, ...]:
    """Return inputs after outputs took the place of others."""
    found: list[Link] = []
    for y, kind in inputs:
        source, gives = moves.get((y, kind // PORTS), (y, kind // PORTS))
        found.append((source, PORTS * gives + kind % PORTS))
    return tuple(found)


def known_nodes(nodes: Nodes, matched: Sequence[int], patch: Patch) -> list[int] | None:
    """Return the nodes that a patch speaks of, by number; None if one isn't there."""
    known = [x for x in matched if x >= 0]
    for address in patch.further:
        x = follow_address(nodes, known, address)
        if x is None:
            return None
        known.append(x)
    return known


def relabelled(nodes: Nodes, known: Sequence[int], patch: Patch) -> tuple[list[int], list[int]]:
    """Return the labels that go and those that come."""
    changed = [(known[i], label) for i, label, _ in patch.wired if i >= 0]
    gone = [nodes[known[i]].label for i in patch.removed] + [nodes[x].label for x, _ in changed]
    return gone, [*patch.labels, *(label for _, label in changed)]


def apply_patch(
    nodes: Nodes, matched: Sequence[int], patch: Patch, next_id: int
) -> tuple[Nodes, list[set[int]]] | None:
    """Return a graph after a patch and what `with_codes` says of it; None if the patch doesn't fit here.

    New nodes are ``next_id`` and those that follow it.
    """
    known = known_nodes(nodes, matched, patch)
    if known is None:
        return None

    def node_at(number: int) -> int:
        return known[number] if number >= 0 else next_id + ~number

    removed = {known[i] for i in patch.removed}
    wired = {node_at(i): (label, tuple((node_at(j), kind) for j, kind in inputs)) for i, label, inputs in patch.wired}
    moves = {(known[i], gave): (node_at(j), gives) for i, gave, j, gives in patch.moved}
    wired |= _moved(nodes, moves, removed | wired.keys())
    uses = _uses_after(nodes, removed, {x: inputs for x, (_, inputs) in wired.items()})
    if any(uses.get(x, nodes[x].uses) for x in removed):
        return None  # what is still used can't go
    after = {x: node for x, node in nodes.items() if x not in removed}
    for x, (label, inputs) in wired.items():
        after[x] = nodes[x]._replace(label=label, inputs=inputs) if x in nodes else DreamNode(label, inputs, ())
    for x in uses.keys() - removed:
        after[x] = after[x]._replace(uses=uses[x])
    return after, with_codes(after, (wired.keys() | uses.keys()) - removed)


def _moved(nodes: Nodes, moves: Mapping[Source, Source], others: AbstractSet[int]) -> dict[int, Wiring]:
    """Return the wiring of nodes that use outputs whose place others take, but for some nodes."""
    users = {x for y, gave in moves for x, kind in nodes[y].uses if kind // PORTS == gave}
    return {x: (nodes[x].label, moved_inputs(nodes[x].inputs, moves)) for x in users - others}


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
