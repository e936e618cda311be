"""The legal matches of a graph: found once in full, then kept up by searching around each rewrite only.

What decides about a match are the records and uses of its own nodes, so after a rewrite only matches that touch a
changed node are dropped, and only plans anchored at changed nodes are searched (semi-naive evaluation). A node that
reads a new value where it read an old one of the same type isn't changed in this sense: in all its matches the one just
stands for the other.

Two things reach further. Where a template replaces an output by a value that exists, or leaves a bound value unused,
its effect depends on nodes beside the match: these are watched, and the effect is found again when one of them changes.
And for the few templates that could close a cycle, reachability is asked again after a rewrite that may have changed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from taso_gym.graph import OUTPUT_BITS, Graph
from taso_gym.rules.acyclic import Reachability
from taso_gym.rules.compiled import CompiledRules
from taso_gym.rules.effect import effect
from taso_gym.rules.overlay import copied
from taso_gym.rules.rewrite import Match, Rewriting, Site
from taso_gym.rules.search import search
from taso_gym.rules.template import Template


class Matches:
    """All matches of one graph; immutable once made.

    Attributes:
        compiled: the rules.
        legal: for each rule the legal matches in canonical order: no cycles, no no-ops, and of several matches that
            give the same graph (by its hash) the first.
        renewed: rules whose legal matches differ from those of the graph that this one was made from.
    """

    __slots__ = ("_blocked", "_first", "_others", "_rows", "_sites", "_watchers", "compiled", "legal", "renewed")

    def __init__(self, compiled: CompiledRules, rules: int) -> None:
        """Begin with none, for a set of ``rules`` rules."""
        self.compiled = compiled
        self.legal: tuple[tuple[Match, ...], ...] = ((),) * rules
        self.renewed: tuple[int, ...] = ()
        self._rows: dict[int, list[Match]] = {}  # of `legal`, while they are changed
        self._sites: dict[int, tuple[Site, ...]] = {}  # of all matches, by each of their nodes
        self._watchers: dict[int, tuple[Site, ...]] = {}
        self._first: dict[int, Match] = {}  # by the change of the hash; the one that is legal
        self._others: dict[int, tuple[Match, ...]] = {}  # that lead to the same graph, in order
        self._blocked: dict[Match, bool] = {}  # which close a cycle, of those that might

    @classmethod
    def full(cls, compiled: CompiledRules, rules: int, graph: Graph) -> Matches:
        """Return the matches of a graph, found from scratch."""
        matches = cls(compiled, rules)
        reach = Reachability(graph)
        for variant, nodes in search(graph, compiled.once, graph.nodes):
            matches._file(graph, reach, variant, nodes)
        return matches._settled()

    def update(self, graph: Graph, rewriting: Rewriting, template: Template) -> Matches:
        """Return the matches of the graph that a rewrite made.

        Args:
            graph: the new graph.
            rewriting: what was done.
            template: by which it was done.
        """
        new = self._fork()
        strong, weak = _changed(graph, rewriting, template)
        new._drop_at((*strong, *rewriting.removed), weak)
        if new._watchers:
            new._renew(graph, (*strong, *rewriting.rewired, *rewriting.touched, *rewriting.removed))
        reach = Reachability(graph)
        for variant, found in search(graph, self.compiled.anywhere, sorted(strong), every=True):
            new._file(graph, reach, variant, found)
        if weak:
            for variant, found in search(graph, self.compiled.within, sorted(weak), known=set(strong)):
                new._file(graph, reach, variant, found)
        if not template.preserving:
            new._ask_again(reach)
        return new._settled()

    def site(self, match: Match) -> Site:
        """Return what is known of a match of this graph, legal or not."""
        return next(site for site in self._sites[match.nodes[0]] if site.match == match)

    def sites(self) -> dict[Match, Site]:
        """Return all matches with a template, legal or not."""
        return {site.match: site for sites in self._sites.values() for site in sites}

    def _fork(self) -> Matches:
        new = Matches.__new__(Matches)
        new.compiled, new.legal, new._rows = self.compiled, self.legal, {}
        new._first, new._sites = copied(self._first), copied(self._sites)
        new._others, new._watchers, new._blocked = self._others.copy(), self._watchers.copy(), self._blocked.copy()
        return new

    def _settled(self) -> Matches:
        """Return these matches, none of them to change any more."""
        legal = list(self.legal)
        for rule, row in self._rows.items():
            legal[rule] = tuple(row)
        self.renewed = tuple([rule for rule in self._rows if legal[rule] != self.legal[rule]])
        self.legal, self._rows = tuple(legal), {}
        return self

    def _file(self, graph: Graph, reach: Reachability, number: int, nodes: tuple[int, ...]) -> None:
        """Enter an embedding if its rule applies there."""
        variant = self.compiled.variants[number]
        match = Match(variant.rule, nodes, variant.number)
        for site in self._sites.get(nodes[0], ()):
            if site.match == match:
                return
        records = [graph.nodes[i] for i in nodes]
        bound = variant.bound(records)
        for value in bound:
            if value >> OUTPUT_BITS in nodes:
                return
        template = variant.template(graph, records, bound)
        if template is None:
            return
        site = effect(graph, match, template, bound, records)
        if not site.change and not site.watched:
            return
        if template.guards:
            self._blocked[match] = reach.closes_cycle(nodes, template)
        self._enter(site)

    def _enter(self, site: Site) -> None:
        match, sites = site.match, self._sites
        for node_id in match.nodes:
            sites[node_id] = (*sites.get(node_id, ()), site)
        for node_id in site.watched:
            self._watchers[node_id] = (*self._watchers.get(node_id, ()), site)
        if not (site.template.guards and self._blocked[match]):
            self._join(match, site.change)

    def _drop_at(self, nodes: Iterable[int], inside: Iterable[int]) -> None:
        """Drop the matches of some nodes, and those that others are at the inside of."""
        for node_id in nodes:
            for site in self._sites.pop(node_id, ()):
                self._drop(site)
        for node_id in inside:
            for site in self._sites.get(node_id, ()):
                if site.template.inside and any(site.match.nodes[i] == node_id for i in site.template.inside):
                    self._drop(site)

    def _drop(self, site: Site) -> None:
        if not (site.template.guards and self._blocked.pop(site.match)):
            self._leave(site.match, site.change)
        for node_id in site.match.nodes:
            _forget(self._sites, node_id, site)
        for node_id in site.watched:
            _forget(self._watchers, node_id, site)

    def _renew(self, graph: Graph, changed: Iterable[int]) -> None:
        """Find the effects of matches again that depend on nodes beside them which have changed."""
        watching = {site.match: site for node_id in changed for site in self._watchers.get(node_id, ())}
        for match, site in watching.items():
            blocked = self._blocked.get(match)
            self._drop(site)
            if blocked is not None:
                self._blocked[match] = blocked
            records = [graph.nodes[i] for i in match.nodes]
            self._enter(effect(graph, match, site.template, site.template.bound(records), records))

    def _ask_again(self, reach: Reachability) -> None:
        """Ask again which matches close a cycle."""
        for match, blocked in tuple(self._blocked.items()):
            site = self.site(match)
            closes = self._blocked[match] = reach.closes_cycle(match.nodes, site.template)
            if closes and not blocked:
                self._leave(match, site.change)
            elif blocked and not closes:
                self._join(match, site.change)

    def _join(self, match: Match, change: int) -> None:
        """Make a match a candidate for the graph that it gives; no-ops never are."""
        if not change:
            return
        first = self._first.get(change)
        if first is not None:
            first, *others = sorted((match, first, *self._others.get(change, ())))
            self._others[change] = tuple(others)
            if first is not match:
                return
            self._unlist(others[0])
        self._list(change, match)

    def _leave(self, match: Match, change: int) -> None:
        if not change:
            return
        others = self._others.pop(change, ())
        if self._first[change] is match:
            self._unlist(match)
            if not others:
                del self._first[change]
                return
            self._list(change, others[0])
        if rest := tuple([m for m in others if m is not match and m is not self._first[change]]):
            self._others[change] = rest

    def _list(self, change: int, match: Match) -> None:
        """Make a match the legal one of those that lead to a graph."""
        self._first[change] = match
        insort(self._row(match.rule), match)

    def _unlist(self, match: Match) -> None:
        row = self._row(match.rule)
        del row[bisect_left(row, match)]

    def _row(self, rule: int) -> list[Match]:
        """Return the legal matches of a rule as a list, to be changed."""
        row = self._rows.get(rule)
        if row is None:
            row = self._rows[rule] = list(self.legal[rule])
        return row


def _changed(graph: Graph, rewriting: Rewriting, template: Template) -> tuple[list[int], list[int]]:
    """Return the nodes of a new graph at which any match may have changed, and those that only what is inside may.

    1. A node that is new: everything. A rewired one, too, if a value took the place of another that was there before.
       A new value takes it in all matches alike: they stay, and with them what they do to the graph.
    2. A node of which only the uses changed: a match at whose inside it is must still enclose them. Where its outputs
       are replaced the match stays, but which of several outputs are used is asked again.
    """
    nodes = graph.nodes
    strong = rewriting.added.copy() if template.exchanges else [*rewriting.rewired, *rewriting.added]
    weak: list[int] = []
    for node_id in rewriting.touched.difference(strong):
        node = nodes.get(node_id)
        if node is not None:
            (weak if len(node.sems) == 1 else strong).append(node_id)
    return strong, weak


def _forget(table: dict[int, tuple[Site, ...]], node_id: int, site: Site) -> None:
    sites = table.get(node_id, ())
    if len(sites) > 1:
        table[node_id] = tuple([s for s in sites if s is not site])
    elif sites:
        del table[node_id]
