"""What a graph world model learns from episodes: what rewrites do, what they save, and what matches where."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from taso_agents.data.episodes import EpisodeRecord
from taso_agents.data.graph_store import GraphStore, StoredGraph
from taso_agents.world_models.graph.dream_graph import RADIUS, Address, Nodes, addresses_of
from taso_agents.world_models.graph.dream_patch import patch_of
from taso_agents.world_models.graph.recall import Recall
from taso_agents.world_models.graph.seen_graph import Kinds, SeenGraph, Spot, anchor_of, inherit

DIGITS = 5
"""Of rewards in %, which are told apart."""

Place = tuple[tuple[Address, ...], int]
"""Addresses of a match's nodes, and its number among those of its rule with the same nodes."""


def keys_of(nodes: Nodes, spot: Spot, addresses: tuple[Address, ...]) -> tuple[int, ...]:
    """Return what surrounds a match, from near to far."""
    codes = [nodes[x].codes for x in spot.nodes if x >= 0]
    return tuple(hash((addresses, spot.number, tuple([c[r] for c in codes]))) for r in range(RADIUS + 1))


class Lessons:
    """All that was learned.

    Attributes:
        patches: what rewrites do, by rule.
        rewards: what they save in %, by rule.
        matches: where rules match, by rule: tuples of `Place`.
        rules_at: which rules ever matched at a node, by its code of radius 0.
        unplaced: matches that were left out since their nodes are too far apart, or constants all.
    """

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self.patches, self.rewards, self.matches = Recall(RADIUS + 1), Recall(RADIUS + 1), Recall(RADIUS + 1)
        self.rules_at: dict[int, set[int]] = {}
        self.found: dict[tuple[int, ...], dict[tuple[tuple[int, tuple[Place, ...]], ...], int]] = {}
        self.unplaced = 0
        self._store: tuple[int, ...] = ()
        self._tables: tuple[list[int], list[int]] = ([], [])

    def seen(self, store: GraphStore, stored: StoredGraph) -> SeenGraph:
        """Return a stored graph."""
        shape = (id(store), len(store.node_rows), len(store.edge_rows))
        if self._store != shape:
            rows = store.node_rows.rows(), store.edge_rows.rows()
            self._store, self._tables = shape, (self.kinds.label(rows[0]), self.kinds.edge(rows[1]))
        labels, kinds = (np.array(table) for table in self._tables)
        return SeenGraph.of(labels[stored.nodes], stored.ids, stored.ends, kinds[stored.edges], stored.candidates)

    def learn(self, store: GraphStore, episode: EpisodeRecord, see_costs: bool = True) -> None:
        """Take note of an episode; with ``see_costs`` of what every candidate saves, else of the steps taken only."""
        before: Nodes | None = None
        matched: dict[int, tuple[Spot, ...]] = {}
        pending = None
        for t, number in enumerate(episode.graphs):
            stored = store.graphs[number]
            seen = self.seen(store, stored)
            nodes = seen.wired(self.kinds.ports)
            differ = inherit(nodes, before)
            if pending and before is not None:
                self._note_patch(before, nodes, *pending)
            spots = seen.spots()
            matched = self._note_matches(nodes, spots, matched, differ[-1])
            if see_costs:
                self._note_rewards(nodes, spots, -stored.changes, differ[RADIUS])
            pending = None
            if t < len(episode.actions):
                xfer, location = episode.actions[t]
                rows = np.flatnonzero((stored.candidates[:, 0] == xfer) & (stored.candidates[:, 1] == location))
                pending = (spots[int(rows[0])],) if len(rows) else None
                if pending and not see_costs:
                    self._note_reward(nodes, *pending, episode.rewards[t])
            before = nodes

    def _note_patch(self, before: Nodes, after: Nodes, spot: Spot) -> None:
        addresses = addresses_of(before, spot.nodes)
        patch = patch_of(before, after, spot.nodes) if addresses else None
        if addresses is None or patch is None:
            self.unplaced += 1
            return
        self.patches.learn(spot.rule, keys_of(before, spot, addresses), patch)

    def _note_matches(
        self, nodes: Nodes, spots: list[Spot], known: dict[int, tuple[Spot, ...]], differ: set[int]
    ) -> dict[int, tuple[Spot, ...]]:
        at: dict[int, list[Spot]] = {}
        for spot in spots:
            at.setdefault(anchor_of(spot), []).append(spot)
        matched = {x: tuple(found) for x, found in at.items()}
        due = differ | {x for x in matched.keys() | known.keys() if x in nodes and matched.get(x) != known.get(x)}
        for x in due - {-1}:
            of_rule: dict[int, list[Place]] = {}
            for spot in matched.get(x, ()):
                addresses = addresses_of(nodes, spot.nodes)
                if addresses is None:
                    self.unplaced += 1
                else:
                    of_rule.setdefault(spot.rule, []).append((addresses, spot.number))
            outcome = tuple((rule, tuple(places)) for rule, places in of_rule.items())
            cell = self.found.setdefault(nodes[x].codes, {})
            cell[outcome] = cell.get(outcome, 0) + 1
        return matched

    def _note_rewards(self, nodes: Nodes, spots: list[Spot], rewards: NDArray[np.float32], differ: set[int]) -> None:
        for spot, reward in zip(spots, rewards.tolist(), strict=True):
            if not differ.isdisjoint(spot.nodes):
                self._note_reward(nodes, spot, reward)

    def _note_reward(self, nodes: Nodes, spot: Spot, reward: float) -> None:
        addresses = addresses_of(nodes, spot.nodes)
        if addresses is not None:
            self.rewards.learn(spot.rule, keys_of(nodes, spot, addresses), round(reward, DIGITS))

    def settle(self) -> None:
        """Make up one's mind from all that was noted."""
        self.rules_at = {}
        for codes, cell in self.found.items():
            rules = self.rules_at.setdefault(codes[0], set())
            rules.update(rule for outcome in cell for rule, _ in outcome)
        self.matches = Recall(RADIUS + 1)
        for codes, cell in self.found.items():
            for outcome, count in cell.items():
                places = dict(outcome)
                for rule in self.rules_at[codes[0]]:
                    self.matches.learn(rule, codes, places.get(rule, ()), count)
        for recall in (self.patches, self.rewards, self.matches):
            recall.settle()
