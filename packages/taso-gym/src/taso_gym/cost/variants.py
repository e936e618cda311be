"""Graphs around a graph: what a search from it would meet, for recording and calibrating costs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

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


def neighbourhood(graph: Graph, rules: RuleSet, walks: int, seed: int = 0, longest: int = 8) -> Iterator[Graph]:
    """Yield a graph, all that are one rewrite away, and the same for the ends of some random walks."""
    for centre in (graph, *random_variants(graph, rules, walks, seed, longest)):
        yield centre
        state = RewriteState(centre, rules)
        for row in state.matches:
            for match in row:
                yield state.child_graph(match)
