"""What a rewrite does where it wasn't seen: as where it was seen, but for what the matched nodes differ in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from taso_agents.world_models.graph.dream_graph import PORTS, Address, Link, Nodes
from taso_agents.world_models.graph.dream_patch import Patch
from taso_agents.world_models.graph.seen_graph import OPERATOR, OUTPUT, Kinds

Shape = tuple[int, tuple[Address, ...], int]
"""Rule, addresses of the match's nodes, and its number among those of its rule with the same nodes."""


class Matched(NamedTuple):
    """What is told of the nodes of a match.

    Attributes:
        labels: of the nodes.
        carried: what comes in at each of them.
    """

    labels: tuple[int, ...]
    carried: tuple[tuple[int, ...], ...]


def matched_of(nodes: Nodes, matched: Sequence[int]) -> Matched:
    """Return what is told of the nodes of a match."""
    there = [nodes[x] for x in matched if x >= 0]
    carried = tuple(tuple([kind // PORTS for _, kind in node.inputs]) for node in there)
    return Matched(tuple([node.label for node in there]), carried)


def given_of(nodes: Nodes, matched: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return what the nodes of a match give to those who use them: with `matched_of` it is all that `adapted` asks."""
    return tuple([tuple(dict.fromkeys(kind // PORTS for _, kind in nodes[x].uses)) for x in matched if x >= 0])


class Examples:
    """The last that was seen of what a rewrite did to each kind of match."""

    def __init__(self) -> None:
        self.of: dict[Shape, dict[Matched, Patch]] = {}

    def learn(self, shape: Shape, matched: Matched, patch: Patch) -> None:
        """Take note of what a rewrite did."""
        self.of.setdefault(shape, {})[matched] = patch

    def nearest(self, shape: Shape, matched: Matched, kinds: Kinds) -> tuple[Matched, Patch] | None:
        """Return the example of the same operators whose nodes differ least, and what it did; None if there is none."""
        rows, best = kinds.node_rows(), None
        own = rows[list(matched.labels)]
        for other, patch in self.of.get(shape, {}).items():
            theirs = rows[list(other.labels)]
            if [*map(len, other.carried)] != [*map(len, matched.carried)] or (theirs != own)[:, OPERATOR].any():
                continue
            distance = float(np.abs(theirs - own).sum())
            if best is None or distance < best[0]:
                best = distance, other, patch
        return best and best[1:]

    def rows(self) -> Iterator[tuple[Shape, Matched, Patch]]:
        """Return all, for `learn`."""
        for shape, found in self.of.items():
            for matched, patch in found.items():
                yield shape, matched, patch


def adapted(patch: Patch, seen: Matched, nodes: Nodes, known: Sequence[int], kinds: Kinds) -> Patch:
    """Return a patch for a match where it wasn't seen.

    Args:
        patch: what happened at other nodes.
        seen: those.
        nodes: a graph.
        known: the nodes that are matched in it.
        kinds: feature rows of nodes and edges.
    """
    here = matched_of(nodes, known)
    rows, carried = kinds.node_rows(), kinds.edge_rows()
    there, own = rows[list(seen.labels)], rows[list(here.labels)]
    come = {*patch.labels, *(label for _, label, _ in patch.wired)}
    labels = {x: _like(rows[: kinds.learned[0]], x, there, own, OPERATOR) for x in come}
    ends = [(i, gave, _given(nodes, known[i], gave, carried)) for i, gave, _, _ in patch.moved if i < len(known)]
    replaced = {(i, gave): gives for i, gave, gives in ends}
    pairs = [p for a, b in zip(seen.carried, here.carried, strict=True) for p in zip(a, b, strict=True)]
    pairs += [(gave, gives) for _, gave, gives in ends]
    old, new = (carried[[pair[i] for pair in pairs]] for i in range(2))

    def like(x: int) -> int:
        return _like(carried[: kinds.learned[1]], x, old, new, OUTPUT) if pairs else x

    def link(number: int, kind: int) -> Link:
        return number, PORTS * like(kind // PORTS) + kind % PORTS

    return Patch(
        patch.further,
        patch.removed,
        tuple([labels[x] for x in patch.labels]),
        tuple([(i, replaced.get((i, gave), gave), j, like(gives)) for i, gave, j, gives in patch.moved]),
        tuple([(i, labels[x], tuple([link(*end) for end in inputs])) for i, x, inputs in patch.wired]),
    )


def _like(rows: NDArray[Any], x: int, there: NDArray[Any], here: NDArray[Any], same: int) -> int:
    """Return the row that is here what row ``x`` is there: each number differs as much as that which is closest to it.

    Args:
        rows: (R, F) that were learned; those of graphs that were only looked at would tell what a test leads to.
        x: one of them.
        there: (K, F) rows around it.
        here: (K, F) rows that stand for these here.
        same: column that has to be equal.
    """
    nearest = np.abs(there - rows[x]).argmin(0)
    columns = np.arange(rows.shape[1])
    expected = rows[x] + (here - there)[nearest, columns]
    distances = np.abs(rows - expected)
    distances[:, same] = np.where(rows[:, same] == rows[x, same], 0, np.inf)
    return int(distances.sum(1).argmin())


def _given(nodes: Nodes, x: int, gave: int, carried: NDArray[Any]) -> int:
    """Return what a node gives at the same output, as its uses say; the same if nobody uses it."""
    found = [kind // PORTS for _, kind in nodes[x].uses]
    return next((gives for gives in found if carried[gives, OUTPUT] == carried[gave, OUTPUT]), gave)
