"""One full match of the default rules, against the matchers that one would use otherwise.

    python benchmarks/matching.py [network ...]

The same left sides are searched for in the same graph in one run, with patterns and graphs built beforehand:

- ours: one search over all nodes, with attributes, conditions and closedness; "whole" adds what a state needs besides:
  right sides and their types, changes of hash, duplicates, cycles;
- rustworkx `vf2_mapping` and networkx `DiGraphMatcher`: every monomorphism, by operator and wiring alone;
- onnxscript's rewriter: `Pattern.match` at every node, which stops at the first match there. Left sides with three and
  more roots are left out: it tries every combination of candidates, which takes minutes.

The peers get each distinct left side once, without attributes, literals and conditions; those with any number of
operands are left out for them, since they can't say it. Times are CPU times of this process, the median of some runs;
"loops" is ours in units of a calibration loop, 100,000 additions in Python, to be compared between machines.
"""

import argparse
import gc
import inspect
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import networkx as nx
import onnx_ir as ir
import rustworkx as rx
from networkx.algorithms.isomorphism import DiGraphMatcher
from onnxscript.rewriter import pattern as onnxscript_pattern

from taso_gym.graph import Graph, output_index, producer_of
from taso_gym.models import build
from taso_gym.onnx_io import to_model
from taso_gym.rules.compiled import compiled
from taso_gym.rules.matching import Matches
from taso_gym.rules.pattern import Inner, Pattern
from taso_gym.rules.rule import Absent, Var
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.search import search
from taso_gym.rules.variants import variants_of

# Structure is what is matched, so BERT is narrow here: onnxscript wants the weights in memory.
NETWORKS: dict[str, dict[str, int]] = {"ResNet50": {}, "BERT": {"hidden": 48, "vocabulary": 100}}
TARGETS = {"rustworkx": 10, "networkx": 150, "onnxscript": 250}

Edges = tuple[tuple[int, int, frozenset[tuple[int, int]]], ...]


class Structure(NamedTuple):
    """A left side without attributes: what every matcher here understands.

    Attributes:
        operators: (domain, op type) of each node; None for a value that several operands share.
        edges: (producer, consumer, pairs of output and input) between nodes.
        outputs: the nodes whose outputs the rule replaces.
    """

    operators: tuple[tuple[str, str] | None, ...]
    edges: Edges
    outputs: tuple[tuple[int, int], ...]


def structure_of(pattern: Pattern) -> Structure | None:
    """Return the structure of a pattern, or None if it has any number of operands."""
    if any(node.spread is not None for node in pattern.nodes) or any(root.output is None for root in pattern.roots):
        return None
    operators: list[tuple[str, str] | None] = [(node.op.domain, node.op.name) for node in pattern.nodes]
    wires: dict[tuple[int, int], set[tuple[int, int]]] = {}
    places: dict[str, list[tuple[int, int]]] = {}
    for consumer, node in enumerate(pattern.nodes):
        for at, operand in enumerate(node.operands):
            if isinstance(operand, Inner):
                wires.setdefault((operand.node, consumer), set()).add((operand.output or 0, at))
            elif isinstance(operand, Var):
                places.setdefault(operand.name, []).append((consumer, at))
    for shared in (p for p in places.values() if len(p) > 1):
        for consumer, at in shared:
            wires.setdefault((len(operators), consumer), set()).add((0, at))
        operators.append(None)
    edges = tuple(sorted((a, b, frozenset(pairs)) for (a, b), pairs in wires.items()))
    return Structure(tuple(operators), edges, tuple((root.node, root.output or 0) for root in pattern.roots))


def fits(host: Any, wanted: Any) -> bool:
    """Whether a graph's node may be a pattern's."""
    return wanted is None or host == wanted


def joins(host: Any, wanted: Any) -> bool:
    """Whether a graph's edge has the wires of a pattern's."""
    return wanted <= host


def wires_of(graph: Graph) -> dict[tuple[int, int], set[tuple[int, int]]]:
    """Return (producer, consumer) -> pairs of output and input; graph inputs and weights are producers too."""
    wires: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for consumer, node in graph.operators():
        for at, value in enumerate(node.inputs):
            if value is not None:
                wires.setdefault((producer_of(value), consumer), set()).add((output_index(value), at))
    return wires


class Rustworkx:
    """VF2 in Rust, with Python's comparison of nodes and edges."""

    def __init__(self, graph: Graph, structures: list[Structure]) -> None:
        self.host, self.patterns = rx.PyDiGraph(), []
        index: dict[int, int] = {}
        operators = {i: (node.sig.op.domain, node.sig.op.name) for i, node in graph.operators()}
        for (producer, consumer), pairs in wires_of(graph).items():
            for i in (producer, consumer):
                if i not in index:
                    index[i] = self.host.add_node(operators.get(i, ("", "leaf")))
            self.host.add_edge(index[producer], index[consumer], frozenset(pairs))
        for structure in structures:
            pattern = rx.PyDiGraph()
            pattern.add_nodes_from(structure.operators)
            pattern.add_edges_from(structure.edges)
            self.patterns.append(pattern)
        self.ids = {at: i for i, at in index.items()}

    def embeddings(self, number: int) -> Iterator[dict[int, int]]:
        """Yield pattern node -> graph node of every embedding."""
        for mapping in rx.vf2_mapping(self.host, self.patterns[number], fits, joins, subgraph=True, induced=False):
            yield {theirs: self.ids[ours] for ours, theirs in mapping.items()}

    def run(self) -> int:
        return sum(
            sum(1 for _ in rx.vf2_mapping(self.host, p, fits, joins, subgraph=True, induced=False))
            for p in self.patterns
        )


class Networkx:
    """VF2 in Python."""

    def __init__(self, graph: Graph, structures: list[Structure]) -> None:
        self.host, self.patterns = nx.DiGraph(), []
        for i, node in graph.operators():
            self.host.add_node(i, op=(node.sig.op.domain, node.sig.op.name))
        for (producer, consumer), pairs in wires_of(graph).items():
            if producer not in self.host:
                self.host.add_node(producer, op=("", "leaf"))
            self.host.add_edge(producer, consumer, pairs=frozenset(pairs))
        for structure in structures:
            pattern = nx.DiGraph()
            for number, op in enumerate(structure.operators):
                pattern.add_node(number, op=op)
            for producer, consumer, pairs in structure.edges:
                pattern.add_edge(producer, consumer, pairs=pairs)
            self.patterns.append(pattern)

    def run(self) -> int:
        return sum(sum(1 for _ in self._matcher(pattern).subgraph_monomorphisms_iter()) for pattern in self.patterns)

    def _matcher(self, pattern: nx.DiGraph) -> DiGraphMatcher:
        return DiGraphMatcher(
            self.host, pattern, lambda a, b: fits(a["op"], b["op"]), lambda a, b: joins(a["pairs"], b["pairs"])
        )


class Onnxscript:
    """The rewriter of onnxscript."""

    def __init__(self, graph: Graph, patterns: list[Pattern]) -> None:
        self.model = ir.from_proto(to_model(graph))
        few = [p for p in patterns if len({root.node for root in p.roots}) < 3]
        self.patterns = [onnxscript_pattern.Pattern(construction(pattern)) for pattern in few]

    def run(self) -> int:
        found = 0
        for pattern in self.patterns:
            for node in self.model.graph:
                found += bool(pattern.match(self.model, self.model.graph, node))
        return found


def construction(pattern: Pattern) -> Callable[..., Any]:
    """Return a pattern as the function that onnxscript reads it from."""
    names = list(dict.fromkeys(name for name, _, _ in pattern.variables()))

    def construct(op: Any, *values: Any) -> Any:
        variables, made = dict(zip(names, values, strict=True)), {}

        def call(number: int) -> Any:
            if number not in made:
                node = pattern.nodes[number]
                used = [i.output or 0 for _, _, i in pattern.edges() if i.node == number]
                roots = [root.output or 0 for root in pattern.roots if root.node == number]
                made[number] = getattr(op, node.op.name)(
                    *map(operand, node.operands),
                    _domain=node.op.domain,
                    _outputs=max([*used, *roots]) + 1,
                    _allow_other_attributes=True,
                    _allow_other_inputs=True,
                )
            return made[number]

        def operand(term: Any) -> Any:
            if isinstance(term, Inner):
                return output(term)
            if isinstance(term, Var):
                return variables[term.name]
            return None if isinstance(term, Absent) else onnxscript_pattern.Var("")

        def output(inner: Inner) -> Any:
            values = call(inner.node)
            return values[inner.output or 0] if isinstance(values, list | tuple) else values

        return [output(root) for root in pattern.roots]

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    construct.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind) for name in ("op", *names)]
    )
    return construct


def cpu_ms(call: Callable[[], Any], runs: int) -> float:
    """Median CPU time of a call in milliseconds, after one that warms up."""
    call()
    gc.collect()
    times: list[float] = []
    for _ in range(runs):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return statistics.median(times) * 1e3


def calibrate() -> None:
    """Spend the time of the calibration loop."""
    total = 0
    for i in range(100_000):
        total += i


def measure(network: str, rules: RuleSet, runs: int) -> bool:
    """Print the comparison on a network; return whether the targets are reached."""
    graph = build(network, **NETWORKS.get(network, {}))
    made = compiled(rules, graph.info.opsets)
    orders = [variants_of(rules[variant.rule])[variant.number] for variant in made.variants]
    patterns = {structure: order for order in orders if (structure := structure_of(order)) is not None}
    structures = list(patterns)
    peers = {
        "rustworkx": Rustworkx(graph, structures),
        "networkx": Networkx(graph, structures),
        "onnxscript": Onnxscript(graph, list(patterns.values())),
    }
    found = search(graph, made.once, graph.nodes)
    check(graph, Matches.full(made, len(rules), graph), rules, structures, peers["rustworkx"])
    ours = cpu_ms(lambda: search(graph, made.once, graph.nodes), 10 * runs)
    whole = cpu_ms(lambda: Matches.full(made, len(rules), graph), 3 * runs)
    loops = ours / cpu_ms(calibrate, 10 * runs)
    print(
        f"{network}: {len(graph)} operators, {len(rules)} rules, {len(made.variants)} operand orders, "
        f"{len(structures)} distinct left sides for the peers"
    )
    print(f"  {'ours':12}{ours:10.2f} ms  ({loops:.2f} loops; whole {whole:.2f} ms; {len(found)} found)")
    reached = True
    for name, peer in peers.items():
        time_ms = cpu_ms(peer.run, max(1, runs // 3))
        ratio, target = time_ms / ours, TARGETS[name]
        reached &= ratio >= target
        verdict = "" if ratio >= target else "  MISSED"
        print(f"  {name:12}{time_ms:10.2f} ms  {ratio:8.0f} times ours (target {target}){verdict}")
    return reached


def check(graph: Graph, ours: Matches, rules: RuleSet, structures: list[Structure], peer: Rustworkx) -> None:
    """Assert that VF2 finds whatever we find, where no two variables share a value (VF2 never lets them)."""
    theirs: dict[Structure, set[tuple[int, ...]]] = {}
    for match, site in ours.sites().items():
        structure = structure_of(variants_of(rules[match.rule])[match.variant])
        bound = site.template.bound([graph.nodes[i] for i in match.nodes])
        if structure is None or len(set(bound)) < len(bound):
            continue
        if structure not in theirs:
            mappings = peer.embeddings(structures.index(structure))
            theirs[structure] = {tuple(m[i] for i in range(len(match.nodes))) for m in mappings}
        assert match.nodes in theirs[structure], f"VF2 misses {match} of {structure}"


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    rules = RuleSet.load()
    reached = [measure(network, rules, options.runs) for network in options.networks]
    raise SystemExit(0 if all(reached) else 1)


if __name__ == "__main__":
    main()
