"""What it gains to search data layout together with all other substitutions, as TASO proposes.

    python benchmarks/layout.py [network ...] [--budget 60] [--folder FOLDER] [--rules default]

Four searches with measured costs on the same exported file: all rules together; the rules without those of layout, and
then those of layout alone on what they found (each with half of the budget); layout alone; and without layout. A rule
is one of layout if it computes the same operators on both sides but for moves of data, and there is a transposition,
or an attribute that says one, in it. A search that measures first fills the cache for those after it, so all are run
twice and the second time counts. The five files are measured against each other, interleaved, in fresh sessions.
"""

import argparse
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table
from support.networks import file_of, networks

from taso_gym.cost.measure import measure
from taso_gym.graph import Graph
from taso_gym.onnx_io import load
from taso_gym.optimizer import optimize
from taso_gym.rules.pattern import calls_of
from taso_gym.rules.rule import Root, Rule
from taso_gym.rules.ruleset import RuleSet

MOVES = frozenset({"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten"})
PLAIN = {"ms.FusedMatMul": "MatMul"}
TRANSPOSING = frozenset({"transA", "transB"})


def is_layout(rule: Rule) -> bool:
    """Whether a rule only changes the order in which data lie."""
    calls = [*calls_of(rule.lhs), *calls_of(rule.rhs)]
    transposes = any(c.op == "Transpose" or TRANSPOSING & {name for name, _ in c.attrs} for c in calls)
    return transposes and computed(rule.lhs) == computed(rule.rhs)


def computed(roots: tuple[Root, ...]) -> Counter[str]:
    """Count the operators that compute something; a call that is written twice is one."""
    return Counter(PLAIN.get(c.op, c.op) for c in set(calls_of(roots)) if c.op not in MOVES)


def searched(graph: Graph, rules: RuleSet, budget: float) -> tuple[Graph, int]:
    """Return what a search finds, and how many substitutions it took."""
    for _ in range(2):
        found = optimize(graph, "taso", rules, "onnxruntime", budget, finalists=False)
    return found.graph, len(found.applied)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=["LeViT-128", "MobileViT-s", "Swin-T"])
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of each search")
    parser.add_argument("--folder", type=Path, default=Path("build/end_to_end"))
    parser.add_argument("--rules", default="default")
    settings = parser.parse_args()

    every = RuleSet.load(settings.rules)
    layout, rest = (RuleSet(r for r in every if is_layout(r) is wanted) for wanted in (True, False))
    table = Table(title=f"{len(layout)} rules of layout, {len(rest)} others; {settings.budget:g} s a search")
    for name in ("network", "rules", "substitutions", "times faster"):
        table.add_column(name)
    for network in (n for n in networks() if n.name in settings.networks):
        try:
            graph = load(file_of(network, 1, settings.folder))
        except ImportError as error:  # of what exports it (benchmarks/requirements.txt)
            print(f"{network.name}: {error}", flush=True)
            continue
        found = {"as given": (graph, 0), "together": searched(graph, every, settings.budget)}
        first, count = searched(graph, rest, settings.budget / 2)
        then, more = searched(first, layout, settings.budget / 2)
        found["one after the other"] = (then, count + more)
        found["layout alone"] = searched(graph, layout, settings.budget)
        found["without layout"] = searched(graph, rest, settings.budget)
        times = measure({name: g for name, (g, _) in found.items()})
        for name, (_, count) in found.items():
            table.add_row(network.name, name, str(count), str(times.speedup(name)))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
