"""The legal matches of a graph: found once in full, then kept up by searching around each rewrite only.

What decides about a match are the records and uses of its own nodes, so after a rewrite only matches that touch a
changed node are dropped, and only plans anchored at changed nodes are searched (semi-naive evaluation). Three things
aren't local and are looked at again: reachability, for the few templates that could close a cycle; the consumers of
outputs that a template replaces by an existing value, and what dies with a match, for templates that aren't `free`.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import NamedTuple

from taso_gym.graph import HASH_MODULUS, OUTPUT_BITS, Graph, node_hash, value_of
from taso_gym.rules.acyclic import Reachability
from taso_gym.rules.compiled import CompiledRules
from taso_gym.rules.rewrite import Match, Rewriting, Site, literal_leaf, predict
from taso_gym.rules.search import search
from taso_gym.signature import Signature


class Entry(NamedTuple):
    """A match of which the template exists.

    Attributes:
        site: the match and its rewrite.
        change: of the graph hash, modulo `HASH_MODULUS`.
        dead: signatures of the operators that die without being matched.
        local: hash and dead code follow from the matched nodes alone.
    """

    site: Site
    change: int
    dead: tuple[Signature, ...]
    local: bool


class Matches:
    """All matches of one graph; immutable once made.

    Attributes:
        compiled: the rules.
        entries: every match with a template, legal or not.
        legal: for each rule the legal matches in canonical order: no cycles, no no-ops, and of several matches that
            give the same graph (by its hash) the first.
    """

    __slots__ = ("_blocked", "_groups", "_owners", "_unsettled", "compiled", "entries", "legal")

    def __init__(self, compiled: CompiledRules, rules: int) -> None:
        """Begin with none, for a set of ``rules`` rules."""
        self.compiled = compiled
        self.entries: dict[Match, Entry] = {}
        self.legal: list[list[Match]] = [[] for _ in range(rules)]
        self._groups: dict[int, tuple[Match, ...]] = {}
        self._owners: dict[int, tuple[Match, ...]] = {}
        self._blocked: dict[Match, bool] = {}
        self._unsettled: dict[Match, None] = {}

    @classmethod
    def full(cls, compiled: CompiledRules, rules: int, graph: Graph) -> Matches:
        """Return the matches of a graph, found from scratch."""
        matches = cls(compiled, rules)
        reach = Reachability(graph)
        for variant, nodes in search(graph, compiled.once, graph.nodes):
            matches._file(graph, reach, variant, nodes)
        return matches

    def update(self, graph: Graph, rewriting: Rewriting, preserving: bool) -> Matches:
        """Return the matches of the graph that a rewrite made.

        Args:
            graph: the new graph.
            rewriting: what was done.
            preserving: reachability between the nodes that stayed is as it was.
        """
        new = self._fork()
        dirty = [i for i in {*rewriting.touched, *rewriting.rewired, *rewriting.added} if i in graph.nodes]
        stale: dict[Match, None] = {}
        for node_id in (*dirty, *rewriting.removed):
            stale |= dict.fromkeys(new._owners.pop(node_id, ()))
        for match in stale:
            new._drop(match)
        reach = Reachability(graph)
        for variant, nodes in search(graph, self.compiled.anywhere, sorted(dirty)):
            new._file(graph, reach, variant, nodes)
        new._settle(graph, reach, preserving)
        return new

    def _fork(self) -> Matches:
        new = Matches.__new__(Matches)
        new.compiled = self.compiled
        new.entries, new.legal = self.entries.copy(), self.legal.copy()
        new._groups, new._owners = self._groups.copy(), self._owners.copy()
        new._blocked, new._unsettled = self._blocked.copy(), self._unsettled.copy()
        return new

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
        entry = _entry(graph, site)
        if entry.local and not entry.change:
            return
        self.entries[match] = entry
        if not entry.local:
            self._unsettled[match] = None
        for node_id in nodes:
            self._owners[node_id] = (*self._owners.get(node_id, ()), match)
        if template.guards:
            self._blocked[match] = _closes_cycle(reach, site)
        if not self._blocked.get(match):
            self._join(match, entry.change)

    def _drop(self, match: Match) -> None:
        entry = self.entries.pop(match)
        self._unsettled.pop(match, None)
        if not self._blocked.pop(match, False):
            self._leave(match, entry.change)
        for node_id in match.nodes:
            owners = self._owners.get(node_id)
            if owners is not None:
                self._owners[node_id] = tuple([m for m in owners if m != match])

    def _settle(self, graph: Graph, reach: Reachability, preserving: bool) -> None:
        """Look again at what isn't local."""
        for match in self._unsettled:
            old = self.entries[match]
            entry = self.entries[match] = _entry(graph, old.site)
            if entry.change != old.change and not self._blocked.get(match):
                self._leave(match, old.change)
                self._join(match, entry.change)
        for match, blocked in () if preserving else tuple(self._blocked.items()):
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
            self._list(match)
        else:
            members = tuple(sorted((*group, match)))
            self._groups[change] = members
            if members[0] == match:
                self._unlist(group[0])
                self._list(match)

    def _leave(self, match: Match, change: int) -> None:
        if not change:
            return
        group = self._groups[change]
        members = tuple([m for m in group if m != match])
        if group[0] == match:
            self._unlist(match)
            if members:
                self._list(members[0])
        if members:
            self._groups[change] = members
        else:
            del self._groups[change]

    def _list(self, match: Match) -> None:
        places = self.legal[match.rule] = self.legal[match.rule].copy()
        insort(places, match)

    def _unlist(self, match: Match) -> None:
        places = self.legal[match.rule] = self.legal[match.rule].copy()
        del places[bisect_left(places, match)]


def _entry(graph: Graph, site: Site) -> Entry:
    """Find the change of hash and the dead code of a match."""
    template = site.template
    if template.free and all(graph.uses.get(value_of(site.match.nodes[n], out)) for n, out, _ in template.outputs):
        return Entry(site, _hash_change(graph, site), (), True)
    rewriting = predict(graph, site)
    return Entry(site, (rewriting.hash - graph.hash) % HASH_MODULUS, tuple(rewriting.dead), False)


def _hash_change(graph: Graph, site: Site) -> int:
    """Return the change of the graph hash by a rewrite that only exchanges nodes."""
    template, nodes = site.template, graph.nodes
    records = [nodes[i] for i in site.match.nodes]
    total = -sum([node_hash(r.sig, graph.sems_of(r.inputs)) for r in records])
    values = [graph.sem_of(v) for v in site.bound]
    values += [literal_leaf(*value).sem for value in template.literals]
    heirs = {ref: records[n].sems[out] for n, out, ref in template.outputs}
    born: dict[int | None, int] = {None: 0}
    for number, (sig, refs) in enumerate(zip(template.sigs, template.inputs, strict=True)):
        own = node_hash(sig, tuple([values[r] if r is not None and r >= 0 else born[r] for r in refs]))
        total += own
        for output in range(len(sig.outputs)):
            ref = ~(number << OUTPUT_BITS | output)
            sem = heirs.get(ref)
            born[ref] = hash((own, output)) % HASH_MODULUS if sem is None else sem
    return total % HASH_MODULUS


def _closes_cycle(reach: Reachability, site: Site) -> bool:
    """Whether a rewrite would make a value depend on itself."""
    outputs = site.template.outputs
    return any(
        reach.depends(site.bound[slot], value_of(site.match.nodes[outputs[j][0]], outputs[j][1]))
        for j, slot in site.template.guards
    )
