"""A dreamt state, a graph with its candidates, and how it goes on by what was learned."""

from __future__ import annotations

import random
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from taso_agents.world_models.graph.dream_graph import Address, Nodes, addresses_of, match_at
from taso_agents.world_models.graph.dream_patch import apply_patch
from taso_agents.world_models.graph.lessons import Lessons, Place
from taso_agents.world_models.graph.recall import choose, ranked
from taso_agents.world_models.graph.seen_graph import Spot, anchor_of


class DreamCandidate(NamedTuple):
    """What can be done, ordered as locations are.

    Attributes:
        rule, nodes, number: as in `Spot`.
        anchor: the first of the nodes that is no constant, -1 if all are.
        code: what is one edge around the anchor.
        addresses: of the nodes; None if they are too far apart to say.
        reward: in %.
    """

    rule: int
    nodes: tuple[int, ...]
    number: int
    anchor: int
    code: int
    addresses: tuple[Address, ...] | None
    reward: float


class DreamState(NamedTuple):
    """A graph that is dreamt.

    Attributes:
        nodes: its nodes.
        candidates: in order.
        next_id: of the next new node.
    """

    nodes: Nodes
    candidates: list[DreamCandidate]
    next_id: int


def spot_of(candidate: DreamCandidate) -> Spot:
    """Return the candidate without what was learned of it."""
    return Spot(*candidate[:3])


class Imagination:
    """Goes on from states by what was learned.

    Args:
        lessons: what was learned.
    """

    def __init__(self, lessons: Lessons) -> None:
        self.lessons = lessons

    def see(
        self,
        nodes: Nodes,
        spots: Sequence[Spot],
        before: DreamState | None = None,
        differ: AbstractSet[int] = frozenset(),
    ) -> DreamState:
        """Return the state of a real graph.

        Args:
            nodes: the graph.
            spots: its candidates.
            before: a state that has much in common with it.
            differ: nodes that have other surroundings there.
        """
        rng, known = random.Random(0), {spot_of(c): c for c in before.candidates} if before else {}
        candidates: list[DreamCandidate] = []
        for spot in spots:
            same = known.get(spot)
            if same is None or not differ.isdisjoint(spot.nodes):
                same = self._candidate(nodes, spot, addresses_of(nodes, spot.nodes), 0.0, rng)
            candidates.append(same)
        return DreamState(nodes, candidates, max(nodes) + 1)

    def step(self, state: DreamState, index: int, temperature: float, rng: random.Random) -> DreamState:
        """Return the state after a candidate; where nothing is known of it, only the candidate is gone."""
        chosen = state.candidates[index]
        moved = self._rewrite(state, chosen, temperature, rng)
        if moved is None:
            left = [c for i, c in enumerate(state.candidates) if i != index]
            return state._replace(candidates=left)
        nodes, differ = moved
        candidates = self._match_again(state, nodes, differ, temperature, rng)
        return DreamState(nodes, candidates, max(state.next_id, max(nodes) + 1))

    def _rewrite(
        self, state: DreamState, chosen: DreamCandidate, temperature: float, rng: random.Random
    ) -> tuple[Nodes, list[set[int]]] | None:
        if chosen.addresses is None:
            return None
        cell = self.lessons.patches_at(state.nodes, spot_of(chosen), chosen.addresses)
        if cell is None:
            return None
        first = choose(cell, temperature, rng)
        for patch in (first, *(other for other in ranked(cell) if other != first)):
            moved = apply_patch(state.nodes, chosen.nodes, patch, state.next_id)
            if moved is not None:
                return moved
        return None

    def _match_again(
        self, state: DreamState, nodes: Nodes, differ: list[set[int]], temperature: float, rng: random.Random
    ) -> list[DreamCandidate]:
        """Return the candidates of a graph that came of another: those around what changed are found anew."""
        anew = self._due(nodes, differ)
        gone = state.nodes.keys() - nodes.keys()
        touched = gone.union(*differ)
        kept: list[DreamCandidate] = []
        for candidate in state.candidates:
            if touched.isdisjoint(candidate.nodes):
                kept.append(candidate)
            elif not (
                (candidate.rule, candidate.anchor) in anew
                or candidate.anchor in differ[0]
                or not gone.isdisjoint(candidate.nodes)
            ):
                addresses = addresses_of(nodes, candidate.nodes)
                kept.append(self._candidate(nodes, spot_of(candidate), addresses, temperature, rng))
        for rule, x in sorted(anew):
            for addresses, number in self._places(nodes, rule, x, temperature, rng):
                matched = match_at(nodes, x, addresses)
                if matched is not None:
                    kept.append(self._candidate(nodes, Spot(rule, matched, number), addresses, temperature, rng))
        return sorted(kept)

    def _due(self, nodes: Nodes, differ: list[set[int]]) -> set[tuple[int, int]]:
        """Return the rules and first nodes whose matches may be others than before."""
        lessons, due = self.lessons, set[tuple[int, int]]()
        for x in differ[0] | differ[-1]:
            known = nodes[x].codes in lessons.found
            for rule in lessons.rules_at.get(nodes[x].codes[0], ()) if known else lessons.places_of(nodes, x):
                if x in differ[0] or x in differ[lessons.matches.level.get(rule, 0)]:
                    due.add((rule, x))
        return due

    def _places(self, nodes: Nodes, rule: int, x: int, temperature: float, rng: random.Random) -> Sequence[Place]:
        """Return where a rule matches with this first node: as in these surroundings, or as at such nodes elsewhere."""
        cell = self.lessons.matches.known(rule, nodes[x].codes)
        if cell:
            return choose(cell, temperature, rng)
        found: list[Place] = []
        for place in sorted(self.lessons.places_of(nodes, x).get(rule, ())):
            matched = match_at(nodes, x, place[0])
            if matched is None:
                continue
            cell = self.lessons.holds.find(rule, self.lessons.held_keys(nodes, matched, place))
            if cell and choose(cell, temperature, rng):
                found.append(place)
        return found

    def _candidate(
        self, nodes: Nodes, spot: Spot, addresses: tuple[Address, ...] | None, temperature: float, rng: random.Random
    ) -> DreamCandidate:
        cell, anchor = None, anchor_of(spot)
        if addresses is not None:
            cell = self.lessons.rewards_at(nodes, spot, addresses)
        code = nodes[anchor].codes[1] if anchor >= 0 else 0
        reward = choose(cell, temperature, rng) if cell else self.lessons.hope
        return DreamCandidate(*spot, anchor, code, addresses, reward)
