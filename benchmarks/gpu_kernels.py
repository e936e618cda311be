"""CUDA kernels timed one by one by CuPy beside whole graphs in the CUDA provider.

    python benchmarks/gpu_kernels.py [network ...]

For each built-in network: the sum over its operators by the cost models `cupy` and `onnxruntime:cuda`, and what the
whole graph takes (IO bound to CuPy's arrays). The ratios say how much a cost model of isolated kernels leaves out; the
last column says into which operators the time goes.
"""

import argparse
from collections import Counter

from taso_gym import cost, models
from taso_gym.cost.cupy import graph_time_ms
from taso_gym.cost_model import CostModel
from taso_gym.errors import TasoError
from taso_gym.graph import Graph

NETWORKS = ("SqueezeNet1.1", "ResNet18", "ResNet50", "InceptionV3", "BERT")
OPERATORS = 5


def shares(graph: Graph, model: CostModel) -> str:
    """Return the operators that take most, with their part of the sum."""
    times: Counter[str] = Counter()
    for node_id, node in graph.operators():
        times[node.sig.op.key] += model.node(node.sig, model.context(graph, node_id)).time_ps
    total = max(sum(times.values()), 1)
    return ", ".join(f"{name} {time / total:.0%}" for name, time in times.most_common(OPERATORS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=NETWORKS, metavar="network")
    arguments = parser.parse_args()
    try:
        kernels, executed = cost.load("cupy"), cost.load("onnxruntime:cuda")
    except TasoError as error:
        raise SystemExit(f"not run: {error}") from error
    print(kernels.key)
    print("| network | whole graph ms | cupy ms | of it | onnxruntime:cuda ms | of it | operators by cupy |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in arguments.networks:
        graph = models.build(name)
        whole, sums = graph_time_ms(graph), [model.graph(graph).time_ms for model in (kernels, executed)]
        parts = " | ".join(f"{ms:.3f} | {ms / whole:.0%}" for ms in sums)
        print(f"| {name} | {whole:.3f} | {parts} | {shares(graph, kernels)} |", flush=True)


if __name__ == "__main__":
    main()
