"""What rules take before they rewrite: reading them, the first state of a model, and states without one rule each.

    python benchmarks/rule_sets.py [FILE.onnx] [--without 8]

A search ends with further ones that leave out one rule after the other, each of another rule set. Printed is CPU time
of the process in seconds and in units of a calibration loop (10,000 additions in Python); of states without one rule
the median. Without a file the model is the built-in ResNet50.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeVar

from rich.console import Console
from rich.table import Table
from step import calibration_ms

from taso_gym import load
from taso_gym.graph import Graph
from taso_gym.models import build
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.search.finalist import remaining

T = TypeVar("T")


def timed(make: Callable[[], T]) -> tuple[T, float]:
    """Return what is made, and the seconds of CPU time that it took."""
    began = time.process_time()
    return make(), time.process_time() - began


def without(graph: Graph, rules: RuleSet, name: str) -> RewriteState:
    """Return the first state without one rule."""
    return RewriteState(graph, remaining(rules, [name]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--without", type=int, default=8)
    options = parser.parse_args()

    graph, unit_ms = load(options.model) if options.model else build("ResNet50"), calibration_ms()
    rules, reading = timed(lambda: RuleSet.load(numerics="fast"))
    _, first = timed(lambda: RewriteState(graph, rules))
    further = [timed(partial(without, graph, rules, rule.name))[1] for rule in rules[: options.without]]
    table = Table(title=f"{len(rules)} rules")
    for name in ("", "s of CPU time", "loops"):
        table.add_column(name, justify="right" if name else "left")
    for name, seconds in (
        ("reading the rules", reading),
        ("the first state", first),
        (f"a state without one rule, median of {options.without}", median(further)),
    ):
        table.add_row(name, f"{seconds:.2f}", f"{1e3 * seconds / unit_ms:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
