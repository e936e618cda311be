"""For each kernel that onnxruntime executes, and each frequent pair of them, which equal expression is fastest.

    python benchmarks/expressions.py [FILE.onnx or built-in network …] [--rules default,full] [-o rows.jsonl]

The audit that new rules come from, without a choice of rules or of sites: the operators that run as one kernel
(`taso_gym.cost.fusion`), and each two of them that follow each other, are cut out of the files. Parts of the same
operators are of a kind; kinds are taken in the order of their time, by the roofline bound, with the shapes that take
most of it. Whatever up to --steps rewrites of any rules make of a part is run beside it, at onnxruntime's default
level, one thread; those that aren't far behind after a few runs go on, and the fastest is measured again in new
sessions, whose ratio is the one reported. A part doesn't know its neighbours: what saves a change of layout here may
cost one there, and only a search of the whole network tells.

A row is a kind: how often it occurs, its share of the time of all kernels, how many shapes were measured, how many
expressions each has, and the best ratio with the rules that lead there. At the end: what share of the time has equal
expressions, and a faster one. With -o, each part is written at once, and those that the file has aren't measured again.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.progress import track
from support.graphs import graph_of
from support.lines import append, read
from support.parts import cut, kernels, pairs, weight_bytes
from support.timing import times_of

from taso_gym import cost
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.errors import TasoError
from taso_gym.graph import Graph
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.signature import OpaqueOperator

NETWORKS = ("BERT", "EfficientNetB0", "GPT2", "GoogLeNet", "NasNetA", "ResNeXt50", "ViT-B16", "YOLOv8n")
FIRST_ROUNDS, BEHIND, FINALISTS = 5, 1.25, 8
"""Runs of every expression; how many times the time of the fastest one may take to go on, and how many do."""
Name = tuple[int, str]
"""Of a kind: whether it is one kernel or two, and its operators."""
GAIN = 1.05
"""Ratio from which an expression counts as faster."""
LARGEST = 200_000_000
"""Bytes of the constants of a part that is measured."""


@dataclass
class Shape:
    """Parts of equal operators and types."""

    part: Graph
    source: str
    ms: float
    count: int = 0


@dataclass
class Kind:
    """Parts of the same operators."""

    shapes: dict[tuple[int, ...], Shape] = field(default_factory=dict)

    def ms(self) -> float:
        """By the roofline bound, all occurrences together."""
        return sum(shape.ms * shape.count for shape in self.shapes.values())


def name_of(graph: Graph, members: Iterable[int]) -> str:
    return " ".join(graph.nodes[i].sig.op.key for i in members)


def collect(files: list[str]) -> dict[Name, Kind]:
    """Return the kinds of kernels and pairs in some files."""
    bound, kinds = cost.load("roofline"), dict[Name, Kind]()
    for file in track(files, "cutting"):
        graph = graph_of(file)
        groups = list(kernels(graph, OnnxRuntimeCost(start=graph).layouts))
        parts = [*((1, members) for members in groups), *((2, members) for members in pairs(graph, groups))]
        for number, members in parts:
            sigs = [graph.nodes[i].sig for i in members]
            if any(isinstance(sig.op, OpaqueOperator) for sig in sigs):
                continue
            kind = kinds.setdefault((number, name_of(graph, members)), Kind())
            key = tuple(sig.hash for sig in sigs)
            if key not in kind.shapes:
                part = cut(graph, members)
                kind.shapes[key] = Shape(part, Path(file).stem, bound.graph(part).time_ms)
            kind.shapes[key].count += 1
    return kinds


def expressions(part: Graph, rules: RuleSet, steps: int, most: int) -> Iterator[tuple[tuple[str, ...], Graph]]:
    """Yield what up to ``steps`` rewrites make of a part, and by which rules, nearest first, all of other operators."""
    state = RewriteState(part, rules)
    waiting: list[tuple[tuple[str, ...], RewriteState]] = [((), state)]
    hashes, known = {state.hash}, {operators_of(part)}
    for way, at in waiting:
        for match in (match for row in at.matches for match in row):
            if len(known) > most:
                return
            if at.child_hash(match) in hashes:
                continue
            hashes.add(at.child_hash(match))
            further = (*way, rules[match.rule].name)
            child = at.apply(match) if len(further) < steps else None
            graph = child.graph if child else at.child_graph(match)
            if child:
                waiting.append((further, child))
            if (operators := operators_of(graph)) not in known:
                known.add(operators)
                yield further, graph


def operators_of(graph: Graph) -> tuple[int, ...]:
    return tuple(sorted(node.sig.hash for _, node in graph.operators()))


def fastest(part: Graph, found: list[tuple[tuple[str, ...], Graph]], rounds: int) -> dict[str, Any]:
    """Return how many times faster the fastest expression is, and the rules that lead to it."""
    runs: list[tuple[float, tuple[str, ...], Graph]] = []
    failed = 0
    for way, graph in found:
        try:
            us, other = times_of((part, graph), FIRST_ROUNDS)
            runs.append((other / us, way, graph))
        except Exception:  # onnxruntime's own errors: an expression without a kernel isn't in the race
            failed += 1
    runs.sort(key=lambda run: run[0])
    near = [run for run in runs if run[0] <= BEHIND * runs[0][0]][:FINALISTS]
    if not near:
        return {"failed": failed}
    us, *others = times_of((part, *(graph for _, _, graph in near)), rounds)
    best = min(range(len(near)), key=others.__getitem__)
    us, other = times_of((part, near[best][2]), rounds)
    return {"us": us, "ratio": us / other, "way": near[best][1], "failed": failed}


def measure(kinds: dict[Name, Kind], arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure the heaviest shapes of each kind, as long as there is time, and return a line for each."""
    rules = RuleSet([rule for name in arguments.rules.split(",") for rule in RuleSet.load(name, numerics="fast")])
    output, end = arguments.output, time.time() + arguments.seconds
    lines = read(output)
    known = {(line["kernels"], line["kind"], line["shape"], line["source"]) for line in lines}
    ranked = sorted(kinds.items(), key=lambda item: -item[1].ms())[: arguments.kinds]
    for (number, name), kind in track(ranked, "measuring"):
        heaviest = sorted(kind.shapes.values(), key=lambda s: -s.ms * s.count)[: arguments.shapes]
        for i, shape in enumerate(heaviest):
            if (number, name, i, shape.source) in known or time.time() > end or weight_bytes(shape.part) > LARGEST:
                continue
            line: dict[str, Any] = {"kind": name, "shape": i, "source": shape.source, "kernels": number}
            try:
                found = list(expressions(shape.part, rules, arguments.steps, arguments.expressions))
                line |= {"expressions": len(found)} | fastest(shape.part, found, arguments.rounds)
            except TasoError as error:
                line |= {"error": str(error)[:200]}
            lines.append(line)
            append(output, line)
    return lines


def report(kinds: dict[Name, Kind], lines: list[dict[str, Any]]) -> None:
    """Print a table of kinds, best first, and the shares of the time."""
    by_kind: dict[Name, list[dict[str, Any]]] = {}
    for line in lines:
        if (name := (line["kernels"], line["kind"])) in kinds:  # else of other files
            by_kind.setdefault(name, []).append(line)
    total = sum(kind.ms() for (number, _), kind in kinds.items() if number == 1)
    rows = []
    for name, listed in by_kind.items():
        best = max(listed, key=lambda line: line.get("ratio", 0))
        rows.append((best.get("ratio", 0.0), name, kinds[name], listed, best))
    print("| operators | kernels | occurrences | share | shapes | expressions | µs | times as fast | by |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for ratio, (number, name), kind, listed, best in sorted(rows, key=lambda row: -row[0]):
        count = sum(shape.count for shape in kind.shapes.values())
        cells = [name, number, count, f"{kind.ms() / total:.2%}", len(listed)]
        cells += [max(line.get("expressions", 0) for line in listed)]
        cells += [f"{best['us']:.0f}", f"{ratio:.2f}", ", ".join(best["way"])] if ratio else ["–", "–", "none"]
        print("| " + " | ".join(map(str, cells)) + " |")
    for number, what in ((1, "kernels"), (2, "pairs")):
        own = [row for row in rows if row[1][0] == number]
        shares: Counter[str] = Counter()
        for ratio, _, kind, _, _ in own:
            shares["measured"] += kind.ms()
            shares["equal"] += kind.ms() if ratio else 0
            shares["faster"] += kind.ms() if ratio >= GAIN else 0
        whole = sum(kind.ms() for (n, _), kind in kinds.items() if n == number)
        parts = ", ".join(f"{name} {ms / whole:.0%}" for name, ms in shares.items())
        print(f"\n{what}: {len(own)} kinds; of their time, by the bound: {parts}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=NETWORKS, help="ONNX files, or names of built-in networks")
    parser.add_argument("--rules", default="default,full", help="sets of rules that expressions come from")
    parser.add_argument("--steps", type=int, default=2, help="rewrites that lead to an expression, at most")
    parser.add_argument("--expressions", type=int, default=80, help="expressions of a part, at most")
    parser.add_argument("--kinds", type=int, default=300)
    parser.add_argument("--shapes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    kinds = collect(arguments.files)
    report(kinds, measure(kinds, arguments))


if __name__ == "__main__":
    main()
