"""What a match would do to the graph: its change of the hash, and which other nodes die of it."""

from __future__ import annotations

from collections.abc import Sequence

from taso_gym.graph import OUTPUT_BITS, OUTPUT_MASK, Graph, Node
from taso_gym.rules.rewrite import Match, Site, literal_leaf, predict
from taso_gym.rules.template import Template
from taso_gym.signature import HASH_MODULUS


def effect(graph: Graph, match: Match, template: Template, bound: tuple[int, ...], records: Sequence[Node]) -> Site:
    """Return what a match does to the graph; ``records`` are its nodes."""
    if (
        template.exchanges
        and _is_used(graph, match.nodes, template)
        and (not template.unused or all(bound[slot] in graph.leaves for slot in template.unused))
    ):
        return Site(match, template, _hash_change(graph, template, bound, records))
    site = Site(match, template)
    rewriting = predict(graph, site)
    change = (rewriting.hash - graph.hash) % HASH_MODULUS
    return site._replace(change=change, dead=tuple(rewriting.dead), watched=tuple(sorted(rewriting.read())))


def _is_used(graph: Graph, nodes: tuple[int, ...], template: Template) -> bool:
    """Whether each replaced output has a use besides those inside the match."""
    uses = graph.uses
    for node, output, inside in template.readers:
        if len(uses.get(nodes[node] << OUTPUT_BITS | output, ())) <= inside:
            return False
    return True


def _hash_change(graph: Graph, template: Template, bound: tuple[int, ...], records: Sequence[Node]) -> int:
    """Return the change of the graph hash by a rewrite that only exchanges nodes."""
    nodes, leaves = graph.nodes, graph.leaves
    sems = [leaves[v].sem if v in leaves else nodes[v >> OUTPUT_BITS].sems[v & OUTPUT_MASK] for v in bound]
    if template.literals:
        sems += [literal_leaf(*value).sem for value in template.literals]
    sems.append(0)
    total = -sum([record.hash for record in records])
    for step in template.steps:
        total += step.enter(sems, records)
    return total % HASH_MODULUS
