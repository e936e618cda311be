"""Are the kernels that costs are made of those that onnxruntime executes? Nothing is timed.

    python benchmarks/contexts.py [FILE.onnx or built-in network …]

For each, by default all built-in networks: kernels that onnxruntime executes of the whole model, how many of them the
regions of its operators (`taso_gym.cost.region`) predict, and which are missing or too many.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from support.graphs import SUFFIX, graph_of

from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.errors import TasoError
from taso_gym.graph import Graph
from taso_gym.models import NETWORKS

SHOWN = 3


def kernels(graph: Graph) -> tuple[Counter[str], Counter[str]]:
    """Return what is executed and what is predicted, by key."""
    model = OnnxRuntimeCost(start=graph)
    executed = Counter(node.key for node in model.executed_whole(graph))
    predicted: Counter[str] = Counter()
    for region, count in Counter(model.regions(graph)).items():
        for node in model.executed_alone(region):
            predicted[node.key] += count
    return executed, predicted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(NETWORKS), metavar="model")
    for name in parser.parse_args().models:
        try:
            executed, predicted = kernels(graph_of(name))
        except TasoError as error:
            print(f"{name}: {error}")
            continue
        missing, surplus = executed - predicted, predicted - executed
        right = (executed & predicted).total()
        said = f"{executed.total()} kernels, {right} predicted, {surplus.total()} others"
        print(f"{Path(name).name.removesuffix(SUFFIX)}: {said}", flush=True)
        for what, found in (("missing", missing), ("too many", surplus)):
            for key, count in found.most_common(SHOWN):
                print(f"    {what}: {count} {key[:100]}")


if __name__ == "__main__":
    main()
