"""A rule set made ready for matching in graphs of given opsets: labels, plans, and the templates found so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from taso_gym.graph import Graph, Node, Weight
from taso_gym.rules.binding import Binder, asks_for_values, value_variables
from taso_gym.rules.collector import paused
from taso_gym.rules.labels import Labels, conditions_on_types
from taso_gym.rules.limits import Size, total_size
from taso_gym.rules.pattern import operator_named
from taso_gym.rules.plan import Planner, Search
from taso_gym.rules.rule import Rule
from taso_gym.rules.ruleset import RuleSet, operators_of
from taso_gym.rules.search import search
from taso_gym.rules.template import Source, Template, build
from taso_gym.rules.trie import Switch
from taso_gym.rules.variants import variants_of


@dataclass
class Most:
    """The most operators, and the most inputs of new ones, that any template found so far adds; constants aside."""

    nodes: int = 0
    edges: int = 0

    def note(self, template: Template) -> None:
        """Take a new template into account."""
        nodes, edges = total_size(template.sigs)
        self.nodes, self.edges = max(self.nodes, nodes), max(self.edges, edges)


Templates = dict[tuple[object, ...], Template | None]
"""Matched signatures, and what else a template depends on -> the template, or None where the rule doesn't apply."""


class Variant:
    """One order of operands of one rule, with the templates found so far.

    Attributes:
        rule: number of the rule in its set.
        number: number of the order among the rule's; what `Match.variant` says.
    """

    def __init__(self, rule: int, number: int, source: Source, valued: frozenset[str], most: Most) -> None:
        """Hold what templates are made from; ``valued`` are the variables whose values matter to them."""
        self.rule, self.number = rule, number
        self._source = source
        self._valued = [(p.name, p.node, p.at) for p in source.binder.places if p.name in valued]
        self._most = most
        self._templates = Templates()
        known = "templates", number, *sorted(source.opsets.items())
        self._known: Templates = source.rule.kept.setdefault(known, Templates())

    def bound(self, records: Sequence[Node]) -> tuple[int, ...]:
        """Return the values that the variables are bound to, in a row."""
        return self._source.binder.values(records)

    def template(self, graph: Graph, records: Sequence[Node], bound: tuple[int, ...]) -> Template | None:
        """Return the template of a match, or None where the rule doesn't apply to it."""
        sigs = tuple([record.sig for record in records])
        key: tuple[object, ...] = sigs
        if len(set(bound)) != len(bound):
            key += tuple(map(bound.index, bound))
        weights: dict[str, Weight | None] = {}
        for name, node, index in self._valued:
            value = records[node].inputs[index]
            leaf = None if value is None else graph.leaves.get(value)
            weights[name] = None if leaf is None else leaf.weight
            key += (None if leaf is None or leaf.weight is None else leaf.weight.digest,)
        try:
            return self._templates[key]
        except KeyError:
            if key not in self._known:
                self._known[key] = build(self._source, sigs, tuple(map(bound.index, bound)), weights)
            found = self._templates[key] = self._known[key]
            if found is not None:
                self._most.note(found)
            return found


class CompiledRules:
    """A rule set for given opsets; shared by all states, since it depends on nothing else.

    Attributes:
        variants: all orders of all rules whose operators the opsets have.
        anywhere: plans from every node of every pattern, for a search at changed nodes.
        within: plans from nodes that patterns use inside, for a search at nodes of which only the uses have changed.
        once: one plan for each pattern, for a search over all nodes.
        most: what the largest template so far adds.
        growths: change of size by the templates that it was asked for.
    """

    def __init__(self, rules: RuleSet, opsets: Mapping[str, int]) -> None:
        """Compile ``rules`` for graphs of these opset imports."""
        labels = Labels(opsets.get("", 0))
        self.most = Most()
        self.growths: dict[Template, Size] = {}
        self.variants: list[Variant] = []
        anywhere: list[Search] = []
        within: list[Search] = []
        once: list[Search] = []
        for number, rule in enumerate(rules):
            if opset_of(rule) > opsets.get("", 0):
                continue
            conditions, valued = conditions_on_types(rule), value_variables(rule)
            ordered = tuple(sorted(rule.conditions, key=asks_for_values))
            for order, pattern in enumerate(variants_of(rule)):
                planner = Planner(pattern, conditions, labels, len(self.variants))
                searches = [Search(planner, i) for i in range(len(pattern.nodes))]
                source = Source(rule, pattern, Binder(pattern), ordered, opsets)
                self.variants.append(Variant(number, order, source, valued, self.most))
                anywhere += searches
                within += [search for i, search in enumerate(searches) if i in pattern.inside]
                once.append(searches[planner.best])
        self._searches = anywhere
        self.anywhere = Switch.of(labels, anywhere)
        self.within = Switch.of(labels, within)
        self.once = Switch.of(labels, once)

    def prepare(self, graph: Graph) -> None:
        """Plan every search, and merge plans as far as the nodes of a graph lead, so that no rewrite waits for it."""
        with paused():
            _ = [each.plan for each in self._searches]
            for anchors in (self.anywhere, self.within):
                search(graph, anchors, graph.nodes)


def opset_of(rule: Rule) -> int:
    """Return the opset that first has all operators of a rule; com.microsoft is imported when needed."""
    operators = map(operator_named, operators_of(rule.lhs) | operators_of(rule.rhs))
    return max((op.since for op in operators if not op.domain), default=0)


@lru_cache(maxsize=64)
def _compiled(rules: RuleSet, opsets: tuple[tuple[str, int], ...]) -> CompiledRules:
    with paused():
        return CompiledRules(rules, dict(opsets))


def compiled(rules: RuleSet, opsets: Mapping[str, int]) -> CompiledRules:
    """Return the rule set made ready for these opsets; made once per process."""
    return _compiled(rules, tuple(sorted(opsets.items())))
