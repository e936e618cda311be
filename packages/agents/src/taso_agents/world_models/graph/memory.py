"""Graphs that are seen and dreamt, by numbers, which stand for them in latents."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_agents.world_models.graph.dream_state import DreamCandidate, DreamState, Imagination
from taso_agents.world_models.graph.lessons import Lessons
from taso_agents.world_models.graph.seen_graph import SeenGraph, inherit
from taso_gym.errors import OptionError

LIVE = 6000
"""Dreamt graphs that are kept, or twice as many as dreams go on at once; each needs its last one, of about 50 KB."""
NUMBERS = 2**24
"""Graphs that are told apart: a 32-bit float holds these numbers exactly."""
NUMBER_SCALE = 2.0**-20
"""What numbers are multiplied by in latents."""


class GraphMemory:
    """Real graphs, which are kept as arrays, and the last that were seen or dreamt.

    Args:
        lessons: what dreams go on by.
        width: numbers that stand for the surroundings of a candidate.
        start: the graph that episodes begin with, number 0, if it is known.
    """

    def __init__(self, lessons: Lessons, width: int, start: SeenGraph | None = None) -> None:
        self.lessons = lessons
        self._imagination = Imagination(lessons)
        self._real: dict[int, SeenGraph] = {}
        self._number_of: dict[bytes, int] = {}
        self._live: OrderedDict[int, DreamState] = OrderedDict()
        self._followed: dict[tuple[int, int], int] = {}
        self._next = self._at_once = 0
        self._last: DreamState | None = None
        self._looks, self._look_of = np.zeros((64, width), np.float32), dict[int, int]()
        if start is not None:
            self._take(start)

    @property
    def start(self) -> SeenGraph | None:
        """The graph that episodes begin with, which is the first that was seen."""
        return self._real.get(0)

    def enter(self, observation: Mapping[str, NDArray[Any]]) -> int:
        """Return the number of the graph of an observation with ``ids``, the same whenever it is seen."""
        nodes, edges = observation["node_mask"] > 0, observation["edge_mask"] > 0
        compact, kinds = np.cumsum(nodes) - 1, self.lessons.kinds
        matches = observation["matches"][observation["match_mask"] > 0]
        return self._take(
            SeenGraph.of(
                kinds.label(observation["nodes"][nodes]),
                observation["ids"][nodes],
                compact[observation["edges"][edges]],
                kinds.edge(observation["edge_features"][edges]),
                np.concatenate([matches[:, :2], np.where(matches[:, 2:] < 0, -1, compact[matches[:, 2:]])], 1),
            )
        )

    @property
    def most(self) -> int:
        """How many of the dreamt graphs are kept that were last used."""
        return max(LIVE, 2 * self._at_once)

    def make_room(self, dreams: int) -> None:
        """Keep what so many dreams need that go on at once: the graph of each, and the next."""
        self._at_once = max(self._at_once, dreams)

    def state(self, number: int) -> DreamState:
        """Return the graph of a number.

        Raises:
            OptionError: it was dreamt so long ago that it is forgotten.
        """
        found = self._live.get(number)
        if found is None:
            if number not in self._real:
                raise OptionError(f"expected a graph of the last {self.most} that were dreamt, found number {number}")
            found = self._see(self._real[number])
        self._keep(number, found)
        return found

    def following(self, number: int, place: int, temperature: float = 0.0, seed: int = 0) -> int:
        """Return the number of the graph after a candidate of another; that one itself if there is no candidate."""
        if place < 0:
            return number
        known = self._followed.get((number, place)) if temperature == 0 else None
        if known is not None and known in self._live:
            self._live.move_to_end(known)
            return known
        child = self._imagination.step(self.state(number), place, temperature, random.Random(seed))
        found = self._number()
        self._keep(found, child)
        if temperature == 0:
            self._followed[number, place] = found
        return found

    def looks(self, candidates: Sequence[DreamCandidate]) -> NDArray[np.float32]:
        """Return numbers (c, D) that stand for the surroundings of candidates: equal for equal ones, else by chance."""
        look_of = self._look_of
        for code in {c.code for c in candidates} - look_of.keys():
            look_of[code] = len(look_of)
            if look_of[code] == len(self._looks):
                self._looks = np.concatenate([self._looks, np.zeros_like(self._looks)])
            drawn = np.random.default_rng(code % 2**63).uniform(-1, 1, self._looks.shape[1])
            self._looks[look_of[code]] = drawn
        return self._looks[[look_of[c.code] for c in candidates]]

    def forget_dreams(self) -> None:
        """Forget all that was dreamt, since there is more to go by now."""
        self._live.clear()
        self._followed.clear()
        self._last = None

    def _take(self, real: SeenGraph) -> int:
        key = real.digest()
        number = self._number_of.get(key)
        if number is None:
            number = self._number_of[key] = self._number()
            self._real[number] = real
        return number

    def _number(self) -> int:
        """Return a number that no real graph has."""
        while self._next in self._real:
            self._next = (self._next + 1) % NUMBERS
        found, self._next = self._next, (self._next + 1) % NUMBERS
        return found

    def _keep(self, number: int, state: DreamState) -> None:
        """Keep a graph as the last that was used."""
        self._live[number] = state
        self._live.move_to_end(number)
        if len(self._live) > self.most:
            self._live.popitem(last=False)
        if len(self._followed) > self.most:
            self._followed.clear()

    def _see(self, real: SeenGraph) -> DreamState:
        nodes, before = real.wired(), self._last
        differ = inherit(nodes, before.nodes if before else None)
        self._last = self._imagination.see(nodes, real.spots(), before, set().union(*differ))
        return self._last
