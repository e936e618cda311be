"""What a search found, as one that takes part in the contest of `taso_gym.search.contest`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost_model import CostModel
from taso_gym.errors import MatchError
from taso_gym.graph import Graph
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import Edit, Match, RewriteState
from taso_gym.search.run import SearchResult


class Rewrite(NamedTuple):
    """A rewrite on the way to what was found: its rule and place, what it gains in picoseconds, and what it does."""

    rule: str
    match: Match
    gain_ps: int
    edit: Edit


@dataclass(frozen=True)
class Finalist:
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

    @cached_property
    def way(self) -> tuple[Rewrite, ...]:
        """The rewrites that lead from the start to what was found."""
        way: list[Rewrite] = []
        state = self.start
        for match in self.found.path:
            child = state.apply(match)
            gain = state.cost.time_ps - child.cost.time_ps
            way.append(Rewrite(state.rules[match.rule].name, match, gain, _edit(child)))
            state = child
        return tuple(way)

    @cached_property
    def gains(self) -> Counter[str]:
        """For each rule on the way what it gains by the costs, in picoseconds."""
        gains: Counter[str] = Counter()
        for rewrite in self.way:
            gains[rewrite.rule] += rewrite.gain_ps
        return gains

    def costed_by(self, model: OnnxRuntimeCost, rules: RuleSet | None = None) -> Finalist:
        """Return the same with other costs, and with these rules, which have those of the way; None for the same."""
        kept = rules or self.start.rules
        state, path = RewriteState(self.start.graph, kept), list[Match]()
        for match in self.found.path:
            path.append(match._replace(rule=kept.index(self.start.rules[match.rule].name)))
            state = state.apply(path[-1])
        return self._ended(self.name, model, state, path)

    def without(self, rules: Collection[str]) -> Finalist:
        """Return what is left of it without some rules: every rewrite on the way that needs none of theirs."""
        bare = RewriteState(self.start.graph, remaining(self.start.rules, rules))
        state, path = retraced([rewrite for rewrite in self.way if rewrite.rule not in rules], bare)
        used = sorted(self.gains.keys() & set(rules))
        named = f"{self.name}, without {', '.join(used)}" if used else self.name
        return self._ended(named, self.start.cost_model, state, path)

    def _ended(self, name: str, model: CostModel | None, state: RewriteState, path: Sequence[Match]) -> Finalist:
        """Return what a way without costs leads to; between its ends are kernels that needn't be measured for it."""
        start, end = (RewriteState(graph, state.rules, model) for graph in (self.start.graph, state.graph))
        return Finalist(name, start, replace(self.found, state=end, path=tuple(path)))

    def without_least(self, below_ps: float, slack_ps: float, over: Callable[[], bool]) -> Finalist:
        """Return what is left without rules that gain too little by the costs; the least gain is tried first.

        Args:
            below_ps: what gains so much or more stays.
            slack_ps: so much dearer than the cheapest so far it may get without a rule that doesn't stay.
            over: returns whether there is no more time for this.
        """
        left, dropped, least_ps = self, frozenset[str](), self.found.state.cost.time_ps
        for name, gain in reversed(self.gains.most_common()):
            if gain >= below_ps or over():
                break
            fewer = self.without(dropped | {name})
            time_ps = fewer.found.state.cost.time_ps
            if time_ps <= least_ps + slack_ps:
                left, dropped, least_ps = fewer, dropped | {name}, min(least_ps, time_ps)
        return left


def retraced(
    way: Iterable[Rewrite], start: RewriteState, same: Mapping[int, int] | None = None
) -> tuple[RewriteState, list[Match]]:
    """Go a way as far as it leads from another start: every rewrite on it that finds there what it needs.

    Args:
        way: rewrites, whose rules the start has.
        start: where to go it.
        same: node of the way's start -> that of this one; default: they have the same ones.
    """
    state, path = start, list[Match]()
    known = dict(same) if same is not None else {node_id: node_id for node_id in start.graph.nodes}
    for rule, match, _, edit in way:
        if not all(node_id in known for node_id in match.nodes):
            continue
        here = Match(start.rules.index(rule), tuple(known[i] for i in match.nodes), match.variant)
        try:
            state = state.apply(here)
        except MatchError:  # it needs what isn't there
            continue
        path.append(here)
        if len(added := _edit(state).added) == len(edit.added):
            known |= dict(zip(edit.added, added, strict=True))
    return state, path


def _edit(state: RewriteState) -> Edit:
    assert state.edit
    return state.edit


def remaining(rules: RuleSet, dropped: Collection[str]) -> RuleSet:
    """Return the rules of a set but for some, given by name."""
    return RuleSet([rule for rule in rules if rule.name not in dropped])
