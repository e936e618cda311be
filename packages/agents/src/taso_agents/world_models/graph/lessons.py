"""What a graph world model learns from episodes: what rewrites do, what they save, and what matches where."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from taso_agents.data.episodes import EpisodeRecord
from taso_agents.data.graph_store import GraphStore, StoredGraph
from taso_agents.world_models.graph.analogy import Examples, Matched, Shape, adapted, given_of, matched_of
from taso_agents.world_models.graph.dream_graph import RADIUS, Address, Nodes, addresses_of, match_at
from taso_agents.world_models.graph.dream_patch import Patch, known_nodes, patch_of, relabelled
from taso_agents.world_models.graph.recall import Cell, Recall, ranked
from taso_agents.world_models.graph.seen_graph import Kinds, SeenGraph, Spot, anchor_of, inherit

DIGITS = 5
"""Of rewards in %, which are told apart."""

HELD = 4
"""Ways to tell the nodes of a place: by what they are without sizes, by labels, by those and the numbers of uses, and
by what is next to them."""
LOOKS = 4
"""How often the same surroundings are looked at for places where nothing matches."""

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
        matches: where rules match, by rule and surroundings of the first node: tuples of `Place`.
        holds: whether they match at a place, by rule and the nodes there, which tells it where `matches` doesn't.
        rewrites: examples of what they do, for matches whose nodes were never seen.
        places: of each rule where it ever matched, by what the first node is without its sizes.
        rules_at: which rules ever matched at a node, by its code of radius 0.
        hope: what a rewrite is thought to save in % of which nothing is known.
        unplaced: matches that were left out since their nodes are too far apart, or constants all.
    """

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self.patches, self.rewards, self.matches = Recall(RADIUS + 1), Recall(RADIUS + 1), Recall(RADIUS + 1)
        self.holds = Recall(HELD)
        self.rewrites = Examples()
        self._adapted: dict[tuple[Shape, Matched, tuple[tuple[int, ...], ...]], Patch | None] = {}
        self.places: dict[int, dict[int, set[Place]]] = {}
        self.rules_at: dict[int, set[int]] = {}
        self.found: dict[tuple[int, ...], dict[tuple[tuple[int, tuple[Place, ...]], ...], int]] = {}
        self.hope = 0.0
        self.unplaced = 0
        self._store: tuple[GraphStore, int, int] | None = None
        self._tables: tuple[list[int], list[int]] = ([], [])

    def seen(self, store: GraphStore, stored: StoredGraph) -> SeenGraph:
        """Return a stored graph."""
        shape = store, len(store.node_rows), len(store.edge_rows)
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
            nodes = seen.wired()
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
        self.rewrites.learn((spot.rule, addresses, spot.number), matched_of(before, spot.nodes), patch)

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
            if sum(cell.values()) < LOOKS:
                self._note_holds(nodes, x, of_rule)
            cell[outcome] = cell.get(outcome, 0) + 1
        return matched

    def _note_holds(self, nodes: Nodes, x: int, of_rule: dict[int, list[Place]]) -> None:
        known = self.places.setdefault(self.kinds.rough(nodes[x].label), {})
        for rule, places in of_rule.items():
            known.setdefault(rule, set()).update(places)
        for rule, places in known.items():
            there = of_rule.get(rule, ())
            for place in sorted(places):
                matched = match_at(nodes, x, place[0])
                if matched is not None:
                    self.holds.learn(rule, self.held_keys(nodes, matched, place), place in there)

    def places_of(self, nodes: Nodes, x: int) -> dict[int, set[Place]]:
        """Return where rules may match with a first node, by rule: where they did at any node like it."""
        return self.places.get(self.kinds.rough(nodes[x].label), {})

    def held_keys(self, nodes: Nodes, matched: tuple[int, ...], place: Place) -> tuple[int, ...]:
        """Return how the nodes of a place are told, from a little to much; equal nodes are told as such."""
        there = [nodes[x] for x in matched if x >= 0]
        same = tuple([matched.index(x) for x in matched])
        ways = (
            [self.kinds.rough(n.label) for n in there],
            [n.label for n in there],
            [n.codes[0] for n in there],
            [n.codes[1] for n in there],
        )
        return tuple(hash((place, same, tuple(way))) for way in ways)

    def _note_rewards(self, nodes: Nodes, spots: list[Spot], rewards: NDArray[np.float32], differ: set[int]) -> None:
        for spot, reward in zip(spots, rewards.tolist(), strict=True):
            if not differ.isdisjoint(spot.nodes):
                self._note_reward(nodes, spot, reward)

    def _note_reward(self, nodes: Nodes, spot: Spot, reward: float) -> None:
        addresses = addresses_of(nodes, spot.nodes)
        if addresses is not None:
            self.rewards.learn(spot.rule, keys_of(nodes, spot, addresses), round(reward, DIGITS))

    def patches_at(self, nodes: Nodes, spot: Spot, addresses: tuple[Address, ...]) -> Cell | None:
        """Return what a rewrite does: what was seen in such surroundings, or what it would be by analogy; else None."""
        cell = self.patches.find(spot.rule, keys_of(nodes, spot, addresses))
        if cell is not None:
            return cell
        shape, matched = (spot.rule, addresses, spot.number), matched_of(nodes, spot.nodes)
        key = shape, matched, given_of(nodes, spot.nodes)
        if key not in self._adapted:
            found = self.rewrites.nearest(shape, matched, self.kinds)
            known = [x for x in spot.nodes if x >= 0]
            self._adapted[key] = found and adapted(found[1], found[0], nodes, known, self.kinds)
        patch = self._adapted[key]
        return {patch: 1} if patch else None

    def rewards_at(self, nodes: Nodes, spot: Spot, addresses: tuple[Address, ...]) -> Cell | None:
        """Return what a rewrite saves: what was seen in such surroundings, or the run times that go and don't come."""
        cell = self.rewards.find(spot.rule, keys_of(nodes, spot, addresses))
        patches = {} if cell is not None else self.patches_at(nodes, spot, addresses) or {}
        for patch in ranked(patches):
            known = known_nodes(nodes, spot.nodes, patch)
            if known is not None:
                gone, come = (self.kinds.time_percent(labels) for labels in relabelled(nodes, known, patch))
                return {round(gone - come, DIGITS): 1}
        return cell

    def settle(self) -> None:
        """Make up one's mind from all that was noted."""
        self.kinds.settle()
        self._adapted.clear()
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
        for recall in (self.patches, self.rewards, self.matches, self.holds):
            recall.settle()
