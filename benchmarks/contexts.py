"""Are the kernels that costs are made of those that onnxruntime executes? Nothing is timed.

    python benchmarks/contexts.py [FILE.onnx or built-in network …] [--variants 20] [--rewrites 8] [--seed 0]

For each, by default all built-in networks: kernels that onnxruntime executes of the whole model, how many of them the
regions of its operators (`taso_gym.cost.region`) predict, and which are missing or too many; then the same of variants,
the ones that `taso-gym calibrate` compares, of which only those are named that aren't the same.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path

from support.graphs import SUFFIX, graph_of

from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.variants import random_variants
from taso_gym.errors import TasoError
from taso_gym.graph import Graph
from taso_gym.models import NETWORKS
from taso_gym.rules.ruleset import RuleSet

SHOWN = 3
VALUES = re.compile(r"(const float\[[0-9, ]*\])=\[[^\]]*\]")


def kernels(graph: Graph, model: OnnxRuntimeCost) -> tuple[Counter[str], Counter[str]]:
    """Return what is executed and what is predicted, by key."""
    executed = Counter(without_values(node.key) for node in model.executed_whole(graph))
    predicted: Counter[str] = Counter()
    for region, count in Counter(model.regions(graph)).items():
        for node in model.executed_alone(region):
            predicted[without_values(node.key)] += count
    return executed, predicted


def without_values(key: str) -> str:
    """Return a key without the values of small floating-point constants, which regions draw where they don't matter."""
    return VALUES.sub(r"\1", key)


def compare(name: str, graph: Graph, model: OnnxRuntimeCost, only_wrong: bool = False) -> bool:
    """Say how far the prediction is right, and return whether it is."""
    executed, predicted = kernels(graph, model)
    missing, surplus = executed - predicted, predicted - executed
    right = not missing and not surplus
    if not (right and only_wrong):
        said = f"{executed.total()} kernels, {(executed & predicted).total()} predicted, {surplus.total()} others"
        print(f"{name}: {said}", flush=True)
    for what, found in (("missing", missing), ("too many", surplus)):
        for key, count in found.most_common(SHOWN):
            print(f"    {what}: {count} {key[:100]}")
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(NETWORKS), metavar="model")
    parser.add_argument("--variants", type=int, default=0)
    parser.add_argument("--rewrites", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rules = RuleSet.load()
    for path in options.models:
        name = Path(path).name.removesuffix(SUFFIX)
        try:
            graph = graph_of(path)
            model = OnnxRuntimeCost(start=graph)
            compare(name, graph, model)
            variants = random_variants(graph, rules, options.variants, options.seed, options.rewrites)
            right = [compare(f"{name}, variant {i}", v, model, True) for i, v in enumerate(variants, 1)]
        except TasoError as error:
            print(f"{name}: {error}")
            continue
        if right:
            print(f"{name}: {sum(right)} of {len(right)} variants as predicted", flush=True)


if __name__ == "__main__":
    main()
