"""Which side of each rule onnxruntime runs faster, at the shapes of real networks: the audit that new rules come from.

    python benchmarks/kernels.py [--sites 2] [--only attention,prelu] [--seconds 600] [-o rows.jsonl] [FILE.onnx ...]

For each rule, its sites in the built-in networks (or those named by --networks) and in the files given are cut out; the
part as it is and the part as the rule writes it run side by side, at onnxruntime's default level, one thread, on normal
data of both signs. A row is a rule: sites, geometric mean of the ratios of thread-CPU times (above 1: the right side is
faster), the worst and the best. Rules without a site in the networks are counted at the end. With -o, each site is
written as soon as it is measured, and those that the file has aren't measured again. `expressions.py` asks the other
way round: for each kernel and pair of kernels that onnxruntime executes, which of its equal expressions is fastest.
"""

import argparse
import math
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, median
from typing import Any

from support.lines import append, read
from support.parts import part, weight_bytes
from support.timing import times_of

from taso_gym import load, models
from taso_gym.equivalence.site import site_of
from taso_gym.graph import Graph
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import Match, RewriteState

NETWORKS = (
    "AlexNet,BERT,DenseNet121,EfficientNetB0,GPT2,GoogLeNet,MobileNetV3,NasNetA,ResNeXt50,T5Encoder,ViT-B16,YOLOv8n"
)
LARGEST = 300_000_000
"""Bytes of the constants of a site that is measured."""


def sites(graph: Graph, rules: RuleSet, most: int, seen: dict[str, set[Any]]) -> Iterator[tuple[str, Graph, Graph]]:
    """For each rule some of its sites that are unlike those already seen: (rule, before, after)."""
    state = RewriteState(graph, rules)
    for number, matches in enumerate(state.matches):
        name = rules[number].name
        for match in matches:
            key = tuple(graph.nodes[i].sig for i in match.nodes)
            if key in seen.setdefault(name, set()) or len(seen[name]) >= most:
                continue
            seen[name].add(key)
            yield name, *both(state, match)


def both(state: RewriteState, match: Match) -> tuple[Graph, Graph]:
    child = state.child_graph(match)
    site = site_of(state.graph, child)
    before, after = (list(column) for column in zip(*site.outputs, strict=True))
    return part(state.graph, site.inputs, before), part(child, site.inputs, after)


def rows(lines: list[dict[str, Any]]) -> list[tuple[float, str, int, float, float, float]]:
    """(geometric mean, rule, sites, worst, best, microseconds before), best first."""
    by_rule: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        if "ratio" in line:
            by_rule.setdefault(line["rule"], []).append(line)
    found = []
    for name, listed in by_rule.items():
        ratios = [line["ratio"] for line in listed]
        mean = math.exp(fmean(math.log(r) for r in ratios))
        found.append((mean, name, len(ratios), min(ratios), max(ratios), median(line["us"] for line in listed)))
    return sorted(found, reverse=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--networks", default=NETWORKS)
    parser.add_argument("--sites", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    rules = RuleSet.load("default", numerics="fast")
    only = [word for word in arguments.only.split(",") if word]
    if only:
        rules = RuleSet([rule for rule in rules if any(word in rule.name for word in only)])
    lines = read(arguments.output)
    done = Counter((line["source"], line["rule"]) for line in lines)
    seen, end = dict[str, set[Any]](), time.time() + arguments.seconds
    for source in [*arguments.files, *(name for name in arguments.networks.split(",") if name)]:
        graph = load(source) if isinstance(source, Path) else models.build(source)
        for name, before, after in sites(graph, rules, arguments.sites, seen):
            origin = source.stem if isinstance(source, Path) else source
            if time.time() > end or max(map(weight_bytes, (before, after))) > LARGEST:
                continue
            if done[origin, name]:  # sites come in the same order each time
                done[origin, name] -= 1
                continue
            line: dict[str, Any] = {"source": origin, "rule": name}
            try:
                us, other = times_of((before, after), arguments.rounds)
                line |= {"us": us, "ratio": us / other}
            except Exception as error:  # onnxruntime's own errors: a kernel that fails is a row, too
                line |= {"failed": f"{type(error).__name__}: {error}"[:200]}
            lines.append(line)
            append(arguments.output, line)
    print("| rule | sites | µs before | ratio | worst | best |\n| --- | --- | --- | --- | --- | --- |")
    for mean, name, count, worst, best, us in rows(lines):
        print(f"| {name} | {count} | {us:.0f} | {mean:.2f} | {worst:.2f} | {best:.2f} |")
    measured = {line["rule"] for line in lines}
    print(
        f"\n{len(measured)} of {len(rules)} rules have a site; {sum('failed' in line for line in lines)} sites failed"
    )


if __name__ == "__main__":
    main()
