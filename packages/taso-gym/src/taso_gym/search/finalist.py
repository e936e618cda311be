"""What a search found, as one that takes part in the contest of `taso_gym.search.finalists`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.errors import MatchError
from taso_gym.graph import Graph
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search.run import SearchResult


class Finalist(NamedTuple):
    """What a search found.

    Attributes:
        name: how it differs from the first.
        start: where it began, with its rules and costs.
        found: what it found.
    """

    name: str
    start: RewriteState
    found: SearchResult

    @property
    def graph(self) -> Graph:
        """The graph that was found."""
        return self.found.state.graph

    @property
    def model(self) -> OnnxRuntimeCost:
        """The costs that it was found by."""
        model = self.start.cost_model
        assert isinstance(model, OnnxRuntimeCost)
        return model

    @property
    def rules(self) -> frozenset[str]:
        """Names of the rules that it was found with."""
        return frozenset(rule.name for rule in self.start.rules)

    def gains(self) -> Counter[str]:
        """Return for each rule on the way what it gains by the costs, in picoseconds."""
        gains: Counter[str] = Counter()
        state = self.start
        for match in self.found.path:
            child = state.apply(match)
            gains[state.rules[match.rule].name] += state.cost.time_ps - child.cost.time_ps
            state = child
        return gains

    def without(self, rules: Collection[str]) -> Finalist:
        """Return what is left of it without some rules: every rewrite on the way that needs none of theirs."""
        old = self.start
        new = start = RewriteState(old.graph, remaining(old.rules, rules), self.model)
        same = {node_id: node_id for node_id in old.graph.nodes}
        path: list[Match] = []
        for match in self.found.path:
            name, child = old.rules[match.rule].name, old.apply(match)
            if name not in rules and all(node_id in same for node_id in match.nodes):
                here = Match(start.rules.index(name), tuple(same[i] for i in match.nodes), match.variant)
                try:
                    after = new.apply(here)
                except MatchError:  # it needs what isn't there
                    after = None
                if after is not None:
                    same |= _partners(child, after)
                    new = after
                    path.append(here)
            old = child
        named = f"{self.name}, without {', '.join(sorted(rules))}"
        return Finalist(named, start, replace(self.found, state=new, path=tuple(path)))


def remaining(rules: RuleSet, dropped: Collection[str]) -> RuleSet:
    """Return the rules of a set but for some, given by name."""
    return RuleSet([rule for rule in rules if rule.name not in dropped])


def _partners(old: RewriteState, new: RewriteState) -> dict[int, int]:
    """Return the nodes that a rewrite added to one graph, each with that which it added to another."""
    assert old.edit and new.edit
    added = old.edit.added, new.edit.added
    return dict(zip(*added, strict=True)) if len(added[0]) == len(added[1]) else {}
