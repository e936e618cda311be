"""How long a product's weights stay in the cache while this process reads nothing: others on the host push them out.

    python benchmarks/cache_decay.py [--kib 2048]

A product of one row in onnxruntime, at one thread, in a loop whose runs begin so many milliseconds after each other, or
right after everything has been read out of the cache: median thread-CPU time in microseconds. Costs of models that
need more than a part of the cache are made of the first and the last (`taso_gym.cost.placed.KEPT`).
"""

from __future__ import annotations

import argparse
import time
from statistics import median

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from rich.console import Console
from rich.table import Table

from taso_gym.cost.eviction import Eviction
from taso_gym.cost.runtime import Runtime

WIDTH = 512
GAPS_MS = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
RUNS = 30


def product(kib: int) -> bytes:
    """Return a model of a product whose weights take so many KiB."""
    weight = np.random.default_rng(0).standard_normal((WIDTH, kib * 256 // WIDTH), np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, WIDTH])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "product", [x], [y], [numpy_helper.from_array(weight, "w")])
    opset = helper.make_opsetid("", 20)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10).SerializeToString()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kib", type=int, default=2048, help="size of the weights")
    runtime = Runtime("cpu", 1)
    feeds = {"x": runtime.place(np.ones((1, WIDTH), np.float32))}
    run = runtime.bind(runtime.open(product(parser.parse_args().kib), optimise=False), feeds)
    evict = Eviction()

    def microseconds(gap_ms: float, cold: bool = False) -> float:
        times: list[int] = []
        for _ in range(RUNS):
            end = time.perf_counter() + gap_ms / 1e3
            while time.perf_counter() < end:  # a core that sleeps would wake up slower
                pass
            if cold:
                evict()
            start = time.thread_time_ns()
            run()
            times.append(time.thread_time_ns() - start)
        return median(times) / 1e3

    table = Table(*(f"{gap:g} ms" for gap in GAPS_MS), "out of the cache", title="microseconds of a run")
    table.add_row(*(f"{microseconds(gap):.0f}" for gap in GAPS_MS), f"{microseconds(0.0, cold=True):.0f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
