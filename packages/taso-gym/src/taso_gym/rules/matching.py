"""The legal matches of a graph: found once in full, then kept up by searching around each rewrite only.

What decides about a match are the records and uses of its own nodes, so after a rewrite only matches that touch a
changed node are dropped, and only plans anchored at changed nodes are searched (semi-naive evaluation). Two things
reach further. Where a template replaces an output by a value that exists, or leaves a bound value unused, its effect
depends on nodes beside the match: these are watched, and the effect is found again when one of them changes. And for
the few templates that could close a cycle, reachability is asked again after a rewrite that may have changed it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import NamedTuple

from taso_gym.graph import HASH_MODULUS, OUTPUT_BITS, OUTPUT_MASK, Graph, Node, value_of
from taso_gym.rules.acyclic import Reachability
from taso_gym.rules.compiled import CompiledRules
from taso_gym.rules.rewrite import Match, Rewriting, Site, copied, literal_leaf, predict
from taso_gym.rules.search import search
from taso_gym.signature import Signature


class Entry(NamedTuple):
    """A match of which the template exists, and its effect on the graph.

    Attributes:
        site: the match and its rewrite.
        change: of the graph hash, modulo `HASH_MODULUS`.
        dead: signatures of the operators that die without being matched.
        watched: nodes and leaves whose uses and records the effect depends on, where it doesn't follow from those of
            the matched nodes alone.
    """

    site: Site
    change: int
    dead: tuple[Signature, ...]
    watched: tuple[int, ...]


class Matches:
    """All matches of one graph; immutable once made.

    Attributes:
        compiled: the rules.
        entries: every match with a template, legal or not.
        legal: for each rule the legal matches in canonical order: no cycles, no no-ops, and of several matches that
            give the same graph (by its hash) the first.
        renewed: rules whose legal matches may differ from those of the graph that this one was made from.
    """

    __slots__ = ("_blocked", "_groups", "_owners", "_rows", "_watchers", "compiled", "entries", "legal", "renewed")

    def __init__(self, compiled: CompiledRules, rules: int) -> None:
        """Begin with none, for a set of ``rules`` rules."""
        self.compiled = compiled
        self.entries: dict[Match, Entry] = {}
        self.legal: list[tuple[Match, ...]] = [()] * rules
        self.renewed: tuple[int, ...] = ()
        self._rows: dict[int, list[Match]] = {}  # of `legal`, while they are changed
        self._groups: dict[int, tuple[Match, ...]] = {}
        self._owners: dict[int, tuple[Match, ...]] = {}
        self._watchers: dict[int, tuple[Match, ...]] = {}
        self._blocked: dict[Match, bool] = {}

    @classmethod
    def full(cls, compiled: CompiledRules, rules: int, graph: Graph) -> Matches:
        """Return the matches of a graph, found from scratch."""
        matches = cls(compiled, rules)
        reach = Reachability(graph)
        for variant, nodes in search(graph, compiled.once, graph.nodes):
            matches._file(graph, reach, variant, nodes)
        return matches._settled()

    def update(self, graph: Graph, rewriting: Rewriting, preserving: bool) -> Matches:
        """Return the matches of the graph that a rewrite made.

        Args:
            graph: the new graph.
            rewriting: what was done.
            preserving: reachability between the nodes that stayed is as it was.
        """
        new = self._fork()
        nodes = graph.nodes
        # 1. Matches of nodes that are new, gone or rewired: gone, and found again where they still exist.
        strong = [*rewriting.rewired, *rewriting.added]
        weak = [i for i in rewriting.touched.difference(strong) if i in nodes]
        # 2. A node of which only the uses changed: a match at whose inside it is must still enclose them. Where its
        #    outputs are replaced the match stays, but which of several outputs are used is asked again.
        strong += [i for i in weak if len(nodes[i].sems) > 1]
        weak = [i for i in weak if len(nodes[i].sems) == 1]
        for node_id in (*strong, *rewriting.removed):
            for match in new._owners.pop(node_id, ()):
                new._drop(match)
        for node_id in weak:
            for match in new._owners.get(node_id, ()):
                if any(match.nodes[i] == node_id for i in new.entries[match].site.template.inside):
                    new._drop(match)
        reach = Reachability(graph)
        # 3. Matches whose effect depends on a node beside them.
        for match in {m for i in (*strong, *rewriting.touched, *rewriting.removed) for m in new._watchers.get(i, ())}:
            new._renew(graph, match)
        for variant, found in search(graph, self.compiled.anywhere, sorted(strong), every=True):
            new._file(graph, reach, variant, found)
        for variant, found in search(graph, self.compiled.within, sorted(weak), known=set(strong)):
            new._file(graph, reach, variant, found)
        if not preserving:
            new._ask_again(reach)
        return new._settled()

    def _fork(self) -> Matches:
        new = Matches.__new__(Matches)
        new.compiled, new.legal, new._rows = self.compiled, self.legal.copy(), {}
        new.entries = copied(self.entries)
        new._groups, new._owners = copied(self._groups), copied(self._owners)
        new._watchers, new._blocked = self._watchers.copy(), self._blocked.copy()
        return new

    def _settled(self) -> Matches:
        """Return these matches, none of them to change any more."""
        for rule, row in self._rows.items():
            self.legal[rule] = tuple(row)
        self.renewed, self._rows = tuple(self._rows), {}
        return self

    def _file(self, graph: Graph, reach: Reachability, number: int, nodes: tuple[int, ...]) -> None:
        """Enter an embedding if its rule applies there."""
        variant = self.compiled.variants[number]
        match = Match(variant.rule, nodes, variant.number)
        if match in self.entries:
            return
        records = [graph.nodes[i] for i in nodes]
        bound = variant.bound(records)
        for value in bound:
            if value >> OUTPUT_BITS in nodes:
                return
        template = variant.template(graph, records, bound)
        if template is None:
            return
        site = Site(match, template, bound)
        entry = effect(graph, site, records)
        if not entry.change and not entry.watched:
            return
        if template.guards:
            self._blocked[match] = _closes_cycle(reach, site)
        self._enter(entry)

    def _enter(self, entry: Entry) -> None:
        match = entry.site.match
        self.entries[match] = entry
        for node_id in match.nodes:
            self._owners[node_id] = (*self._owners.get(node_id, ()), match)
        for node_id in entry.watched:
            self._watchers[node_id] = (*self._watchers.get(node_id, ()), match)
        if not self._blocked.get(match):
            self._join(match, entry.change)

    def _drop(self, match: Match) -> None:
        entry = self.entries.pop(match)
        if not self._blocked.pop(match, False):
            self._leave(match, entry.change)
        for node_id in match.nodes:
            _forget(self._owners, node_id, match)
        for node_id in entry.watched:
            _forget(self._watchers, node_id, match)

    def _renew(self, graph: Graph, match: Match) -> None:
        """Find the effect of a match again, since a node that it watches has changed."""
        entry = self.entries[match]
        blocked = self._blocked.get(match)
        self._drop(match)
        if blocked is not None:
            self._blocked[match] = blocked
        self._enter(effect(graph, entry.site, [graph.nodes[i] for i in match.nodes]))

    def _ask_again(self, reach: Reachability) -> None:
        """Ask again which matches close a cycle."""
        for match, blocked in tuple(self._blocked.items()):
            entry = self.entries[match]
            closes = self._blocked[match] = _closes_cycle(reach, entry.site)
            if closes and not blocked:
                self._leave(match, entry.change)
            elif blocked and not closes:
                self._join(match, entry.change)

    def _join(self, match: Match, change: int) -> None:
        """Make a match a candidate for the graph that it gives; no-ops never are."""
        if not change:
            return
        group = self._groups.get(change)
        if group is None:
            self._groups[change] = (match,)
            insort(self._row(match.rule), match)
            return
        members = self._groups[change] = tuple(sorted((*group, match)))
        if members[0] == match:
            self._unlist(group[0])
            insort(self._row(match.rule), match)

    def _leave(self, match: Match, change: int) -> None:
        if not change:
            return
        group = self._groups[change]
        members = tuple([m for m in group if m != match])
        if group[0] == match:
            self._unlist(match)
            if members:
                insort(self._row(members[0].rule), members[0])
        if members:
            self._groups[change] = members
        else:
            del self._groups[change]

    def _row(self, rule: int) -> list[Match]:
        """Return the legal matches of a rule as a list, to be changed."""
        row = self._rows.get(rule)
        if row is None:
            row = self._rows[rule] = list(self.legal[rule])
        return row

    def _unlist(self, match: Match) -> None:
        row = self._row(match.rule)
        del row[bisect_left(row, match)]


def _forget(table: dict[int, tuple[Match, ...]], node_id: int, match: Match) -> None:
    matches = table.get(node_id, ())
    if len(matches) > 1:
        table[node_id] = tuple([m for m in matches if m is not match])
    elif matches:
        del table[node_id]


def effect(graph: Graph, site: Site, records: Sequence[Node]) -> Entry:
    """Return what a match does to the graph; ``records`` are its nodes."""
    template = site.template
    if (
        template.exchanges
        and _is_used(graph, site)
        and all(site.bound[slot] in graph.leaves for slot in template.unused)
    ):
        return Entry(site, _hash_change(graph, site, records), (), ())
    rewriting = predict(graph, site)
    change = (rewriting.hash - graph.hash) % HASH_MODULUS
    return Entry(site, change, tuple(rewriting.dead), tuple(sorted(rewriting.read())))


def _is_used(graph: Graph, site: Site) -> bool:
    """Whether each replaced output has a use besides those inside the match."""
    uses, nodes = graph.uses, site.match.nodes
    for node, output, inside in site.template.readers:
        if len(uses.get(nodes[node] << OUTPUT_BITS | output, ())) <= inside:
            return False
    return True


def _hash_change(graph: Graph, site: Site, records: Sequence[Node]) -> int:
    """Return the change of the graph hash by a rewrite that only exchanges nodes."""
    nodes, leaves = graph.nodes, graph.leaves
    sems = [leaves[v].sem if v in leaves else nodes[v >> OUTPUT_BITS].sems[v & OUTPUT_MASK] for v in site.bound]
    if site.template.literals:
        sems += [literal_leaf(*value).sem for value in site.template.literals]
    sems.append(0)
    total = -sum([record.hash for record in records])
    for own, symmetric, read, heirs in site.template.steps:
        operands = read(sems)
        if symmetric and operands[0] > operands[1]:
            operands = (operands[1], operands[0], *operands[2:])
        found = hash((own, operands)) % HASH_MODULUS
        total += found
        for output, heir in enumerate(heirs):
            sems.append(hash((found, output)) % HASH_MODULUS if heir is None else records[heir[0]].sems[heir[1]])
    return total % HASH_MODULUS


def _closes_cycle(reach: Reachability, site: Site) -> bool:
    """Whether a rewrite would make a value depend on itself."""
    outputs = site.template.outputs
    return any(
        reach.depends(site.bound[slot], value_of(site.match.nodes[outputs[j][0]], outputs[j][1]))
        for j, slot in site.template.guards
    )
