"""A graph with its legal matches, cost and hash: what searches and environments step through."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, cast

from taso_gym.checks import check_kind, check_limits
from taso_gym.cost_model import Cost, CostModel
from taso_gym.errors import MatchError
from taso_gym.graph import Graph
from taso_gym.graph import check as check_graph
from taso_gym.rules.collector import paused
from taso_gym.rules.compiled import compiled
from taso_gym.rules.cost_change import CostChanges
from taso_gym.rules.limits import Limits, Size, fitting, growth, size_of
from taso_gym.rules.matching import Matches
from taso_gym.rules.rewrite import Edit, Match, Site, rewrite
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.template import Template
from taso_gym.signature import HASH_MODULUS

__all__ = ["Edit", "Match", "RewriteState", "check", "size_of"]


class RewriteState:
    """A graph with the places where rules apply; immutable, so a fork is the state itself.

    Attributes:
        graph: the graph.
        rules: the rule set; `Match.rule` numbers its rules.
        cost: of the graph; zero without a cost model.
        edit: what the rewrite that led here did to its parent's nodes; None at the start.
        renewed: numbers of the rules whose matches differ from the parent's, in any order; of all rules at the start.
        matches: for each rule its legal matches in ascending order of (node ids, variant): those that make no cycle,
            respect the limits and change something. Of several matches that lead to the same graph only the first
            counts, whichever rule it belongs to.
    """

    __slots__ = (
        "_all", "_changes", "_limits", "_size", "_whole", "cost", "edit", "graph", "matches", "renewed", "rules"
    )  # fmt: skip

    def __init__(
        self,
        graph: Graph,
        rules: RuleSet,
        cost: CostModel | None = None,
        *,
        max_locations: int | None = None,
        max_nodes: int | None = None,
        max_edges: int | None = None,
    ) -> None:
        """Find all matches of ``rules`` in ``graph``.

        Args:
            graph: where to begin.
            rules: what may be applied.
            cost: what graphs cost.
            max_locations: legal matches of one rule; those beyond it in order are left out. Default: no limit.
            max_nodes: operators that a graph may have, constants not counted; a match that leads to more isn't legal.
            max_edges: inputs of operators that a graph may have, constants not counted (see `size_of`).

        Raises:
            CostError: the cost model can't cost an operator.
            OptionError: an argument of a wrong kind, or a limit below 1.
        """
        check_kind("graph", graph, (Graph,), "a Graph")
        check_kind("rules", rules, (RuleSet,), "a RuleSet")
        check_kind("cost", cost, (CostModel, type(None)), "a CostModel")
        check_limits(max_locations=max_locations, max_nodes=max_nodes, max_edges=max_edges)
        self.graph, self.rules, self._changes = graph, rules, CostChanges(cost)
        self.cost = cost.graph(graph) if cost else Cost()
        self.edit: Edit | None = None
        self._limits = Limits(max_locations, max_nodes, max_edges)
        self._size = size_of(graph)
        self._all = Matches.full(compiled(rules, graph.info.opsets), len(rules), graph)
        self.matches: tuple[tuple[Match, ...], ...] = self._limited(None)
        self.renewed: tuple[int, ...] = tuple(range(len(self.matches)))

    @property
    def cost_model(self) -> CostModel | None:
        """What `cost` is by."""
        return self._changes.model

    @property
    def hash(self) -> int:
        """Incremental hash of the graph: equal for equal graphs of one process and one start graph."""
        return self.graph.hash

    def apply(self, match: Match) -> RewriteState:
        """Return the state after a legal match.

        Raises:
            MatchError: the match isn't legal here.
        """
        site = self._site(match)
        rewriting = rewrite(self.graph, site)
        child = RewriteState.__new__(RewriteState)
        child.graph = rewriting.finish()
        child.rules, child._limits, child._changes = self.rules, self._limits, self._changes
        child.cost = self.cost + self._changes.of(self.graph, site, (rewriting, child.graph))()
        child.edit = Edit(tuple(rewriting.removed), tuple(rewriting.added), tuple(rewriting.rewired))
        child._size = self._size + growth(self.graph, site, self._all.compiled)
        child._all = self._all.update(child.graph, rewriting, site.template)
        child.matches = child._limited(self)
        child.renewed = child._all.renewed
        if not (self._whole and child._whole):
            pairs = zip(self.matches, child.matches, strict=True)
            child.renewed = tuple([rule for rule, (old, new) in enumerate(pairs) if old != new])
        return child

    def prepare(self, rewrites: int = 192) -> RewriteState:
        """Do now what the first rewrites of a process would else wait for, and return self.

        Plans every search, and makes one rewrite of each kind, then of each kind that these bring about, which finds
        the types and templates that come next.

        Args:
            rewrites: how many are enough.
        """
        self._all.compiled.prepare(self.graph)
        known: set[Template] = set()
        waiting: list[RewriteState] = [self]
        with paused():
            for state in waiting:
                if len(waiting) > rewrites:
                    break
                kinds = {state._all.site(match).template: match for row in state.matches for match in row}
                waiting += [state.apply(match) for template, match in kinds.items() if template not in known]
                known.update(kinds)
        return self

    def delta(self, match: Match) -> Cost:
        """Return by how much a legal match changes the cost.

        Raises:
            MatchError: the match isn't legal here.
        """
        return self.deltas([match])[0][1]

    def deltas(self, matches: Iterable[Match], *, bounded: bool = False) -> list[tuple[Match, Cost]]:
        """Return legal matches with what `delta` says of each; what has to be measured for that, may be together.

        Args:
            matches: these.
            bounded: of what surely is far dearer a bound of the time is enough, for which nothing is measured.

        Raises:
            MatchError: a match isn't legal here.
        """
        pending = [(match, self._changes.of(self.graph, self._site(match), bounded=bounded)) for match in matches]
        return [(match, change()) for match, change in pending]

    @property
    def size(self) -> Size:
        """Operators that aren't constant, and their inputs that aren't."""
        return self._size

    def growth(self, match: Match) -> Size:
        """Return by how much a legal match changes the size.

        Raises:
            MatchError: the match isn't legal here.
        """
        return growth(self.graph, self._site(match), self._all.compiled)

    def child_hash(self, match: Match) -> int:
        """Return the hash of the graph after a legal match, without making it.

        Raises:
            MatchError: the match isn't legal here.
        """
        return (self.graph.hash + self._site(match).change) % HASH_MODULUS

    def child_graph(self, match: Match) -> Graph:
        """Return the graph after a legal match, without finding its matches.

        Raises:
            MatchError: the match isn't legal here.
        """
        return rewrite(self.graph, self._site(match)).finish()

    def check(self, children: int = 8) -> None:
        """Assert every invariant; see `taso_gym.rules.state.check`."""
        check_graph(self.graph)
        whole = _restore(self.graph, self.rules, self.cost_model, self._limits, self.edit)
        assert self.matches == whole.matches, "matches differ from a full match"
        assert self._all.sites() == whole._all.sites(), "sites differ from a full match"
        assert self._size == whole._size, f"size {self._size} differs from {whole._size}"
        assert self.cost == whole.cost, f"cost {self.cost} differs from {whole.cost}"
        legal = [match for row in self.matches for match in row]
        hashes = [self.child_hash(match) for match in legal]
        assert len(set(hashes)) == len(hashes) and self.hash not in hashes, "two matches, or none, give one graph"
        for match in legal[:: max(1, len(legal) // max(children, 1))]:
            self._check_child(match)

    def _check_child(self, match: Match) -> None:
        child, model, (_, nodes, edges) = self.child_graph(match), self.cost_model, self._limits
        check_graph(child)
        assert child.hash == self.child_hash(match), f"{match}: the hash differs from what was predicted"
        assert model is None or model.graph(child) == self.cost + self.delta(match), f"{match}: the cost differs"
        size = size_of(child)
        assert nodes is None or size.nodes <= nodes, f"{match}: too many nodes"
        assert edges is None or size.edges <= edges, f"{match}: too many edges"

    def __repr__(self) -> str:
        matches = sum(map(len, self.matches))
        return f"<RewriteState: {len(self.graph)} operators, {matches} matches of {len(self.rules)} rules, {self.cost}>"

    def __copy__(self) -> RewriteState:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> RewriteState:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the graph; the matches are found again."""
        return _restore, (self.graph, self.rules, self.cost_model, self._limits, self.edit)

    def _site(self, match: Match) -> Site:
        if not isinstance(cast("object", match), Match):
            raise MatchError(f"expected a Match of this state, found {match!r}")
        legal = self.matches[match.rule] if 0 <= match.rule < len(self.matches) else ()
        place = bisect_left(legal, match)
        if place == len(legal) or legal[place] != match:
            raise MatchError(f"expected a legal match of this state, found {match}")
        return self._all.site(match)

    def _limited(self, parent: RewriteState | None) -> tuple[tuple[Match, ...], ...]:
        """Return the legal matches within the limits; lists that are as the parent's are shared with it."""
        found, most = self._all, sys.maxsize if self._limits.locations is None else self._limits.locations
        fits = fitting(self.graph, self._size, self._limits, found.compiled)
        self._whole = fits is None
        if fits is not None:
            return tuple([tuple([m for m in row if fits(found.site(m))][:most]) for row in found.legal])
        if parent is not None and parent._whole:
            if parent.matches is parent._all.legal and all(len(found.legal[rule]) <= most for rule in found.renewed):
                return found.legal
            rows = list(parent.matches)
            for rule in found.renewed:
                rows[rule] = found.legal[rule][:most]
            return tuple(rows)
        return found.legal if max(map(len, found.legal), default=0) <= most else tuple([r[:most] for r in found.legal])


def _restore(graph: Graph, rules: RuleSet, model: CostModel | None, limits: Limits, edit: Edit | None) -> RewriteState:
    locations, nodes, edges = limits
    state = RewriteState(graph, rules, model, max_locations=locations, max_nodes=nodes, max_edges=edges)
    state.edit = edit
    return state


def check(state: RewriteState, children: int = 8) -> None:
    """Assert every invariant: of the graph, and that cost, matches and predictions equal recomputation from scratch.

    Args:
        state: the state.
        children: how many matches, spread evenly, are applied to test what was predicted of them.
    """
    state.check(children)
