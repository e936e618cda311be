"""Weights out of the cache: a product of few rows reads its own from memory, and that takes longer."""

import time
from pathlib import Path

import numpy as np
import pytest
from cost_graphs import weight

from taso_gym.builder import GraphBuilder
from taso_gym.cost import eviction
from taso_gym.cost.eviction import cache_bytes
from taso_gym.cost.onnxruntime import KEPT, OnnxRuntimeCost
from taso_gym.cost.sessions import Runtime
from taso_gym.graph import Graph
from taso_gym.onnx_io import to_model
from taso_gym.tensor import TensorType

pytest.importorskip("onnxruntime")


def layers(width: int, depth: int, rows: int = 1) -> Graph:
    """A graph of so many layers, each with its own weights."""
    b = GraphBuilder({"": 20})
    value = b.input("x", TensorType("float", (rows, width)))
    for i in range(depth):
        value = b.add("MatMul", value, weight(b, f"w{i}", width, width))
    b.output("y", value)
    return b.build()


def test_the_largest_cache_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, text in (("index0", "32K\n"), ("index2", "3M\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "size").write_text(text)
    monkeypatch.setattr(eviction, "CACHES", tmp_path)
    assert cache_bytes() == 3 << 20


def test_a_system_that_does_not_say_has_no_known_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(eviction, "CACHES", tmp_path)
    assert cache_bytes() == 0


@pytest.mark.skipif(not cache_bytes(), reason="the size of the cache isn't known")
@pytest.mark.parametrize("part", [KEPT, 1.0])
def test_weights_that_the_cache_does_not_keep_are_read_from_memory(part: float, tmp_path: Path) -> None:
    width, cache = 256, tmp_path / "cache.sqlite"
    few, many = layers(width, 1), layers(width, int(part * cache_bytes()) // (4 * width * width) + 1)
    kept, read = (OnnxRuntimeCost(cache=cache, start=graph) for graph in (few, many))
    assert (kept.depends_on_cache, read.depends_on_cache) == (False, True)
    assert read.graph(few).time_ps > 1.2 * kept.graph(few).time_ps


def test_workers_that_do_not_spin_leave_their_core_to_others() -> None:
    runtime, width = Runtime("cpu", 2), 256
    model = to_model(layers(width, 1, rows=width)).SerializeToString()
    feeds = {"x": runtime.place(np.ones((width, width), np.float32))}
    run = runtime.bind(runtime.open(model, optimise=False, spin=False), feeds)
    run()
    begin = time.process_time()
    time.sleep(0.05)
    assert time.process_time() - begin < 0.02
