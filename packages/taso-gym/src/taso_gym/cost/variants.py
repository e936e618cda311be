"""Graphs around a graph: what a search from it would meet, for recording and calibrating costs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taso_gym.cost.layout import Layouts
from taso_gym.cost.region import Region
from taso_gym.cost.regional import RegionalCost
from taso_gym.cost.work import Work
from taso_gym.graph import Graph
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState


def random_variants(graph: Graph, rules: RuleSet, count: int, seed: int = 0, longest: int = 8) -> Iterator[Graph]:
    """Yield ``count`` graphs that are one to ``longest`` random legal rewrites away, no two alike; fewer if there are.

    A rule is drawn first and then one of its places, so that rules with many places don't crowd out the others.
    """
    rng, start, seen = np.random.default_rng(seed), RewriteState(graph, rules), {graph.canonical_digest()}
    for _ in range(4 * count):
        state = start
        for _ in range(rng.integers(1, longest + 1)):
            rows = [row for row in state.matches if row]
            if not rows:
                break
            row = rows[rng.integers(len(rows))]
            state = state.apply(row[rng.integers(len(row))])
        if (digest := state.graph.canonical_digest()) not in seen:
            seen.add(digest)
            yield state.graph
        if len(seen) > count:
            return


def neighbourhood(graph: Graph, rules: RuleSet, model: RegionalCost, walks: int, longest: int = 8) -> list[Region]:
    """Return the regions of a graph, of all that are one rewrite away, and the same for the ends of some random walks.

    Args:
        graph: where walks begin.
        rules: for rewrites.
        model: says what a region is.
        walks: so many.
        longest: rewrites of a walk.
    """
    listening = _Listening(model)
    for centre in (graph, *random_variants(graph, rules, walks, longest=longest)):
        state = RewriteState(centre, rules, listening)
        for row in state.matches:
            for match in row:
                state.delta(match)
    return list(listening.heard)


class _Listening(RegionalCost):
    """Costs nothing, and keeps the regions that are asked for in their order."""

    def __init__(self, model: RegionalCost) -> None:
        super().__init__("listening", model.dims)
        self.heard: dict[Region, None] = {}
        self._layouts = model.layouts

    @property
    def key(self) -> str:
        return self.name

    @property
    def layouts(self) -> Layouts:
        return self._layouts

    def region_time(self, region: Region, load: Work) -> tuple[int, int]:  # noqa: ARG002
        self.heard[region] = None
        return 0, 1
