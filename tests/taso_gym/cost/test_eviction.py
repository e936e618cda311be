"""Weights out of the cache: a product of few rows reads its own from memory, and that takes longer."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cost_graphs import weight

from taso_gym.builder import GraphBuilder
from taso_gym.cost import eviction, placed
from taso_gym.cost.eviction import Eviction, cache_bytes
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.placed import KEPT
from taso_gym.graph import Graph
from taso_gym.tensor import TensorType

pytest.importorskip("onnxruntime")

CACHE = 1 << 24
"""Bytes of the cache of the machine that costs are of."""


def layers(width: int, depth: int) -> Graph:
    """A graph of so many layers of one row, each with its own weights."""
    b = GraphBuilder({"": 20})
    value = b.input("x", TensorType("float", (1, width)))
    for i in range(depth):
        value = b.add("MatMul", value, weight(b, f"w{i}", width, width))
    b.output("y", value)
    return b.build()


def test_the_largest_cache_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for level, size in ((1, "32K\n"), (2, "512K\n"), (3, "3M\n")):
        folder = tmp_path / f"index{level}"
        folder.mkdir()
        (folder / "level").write_text(f"{level}\n")
        (folder / "size").write_text(size)
    monkeypatch.setattr(eviction, "CACHES", tmp_path)
    assert cache_bytes() == 3 << 20
    assert cache_bytes(2) == 512 << 10
    assert cache_bytes(4) == 0


def test_a_system_that_does_not_say_has_no_known_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(eviction, "CACHES", tmp_path)
    assert cache_bytes() == 0


@pytest.mark.parametrize("size", [None, "", "unknown\n"])
def test_a_cache_that_does_not_say_its_size_is_passed_over(
    size: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for level, said in (("1", "32K\n"), ("2", size)):
        folder = tmp_path / f"index{level}"
        folder.mkdir()
        (folder / "level").write_text(level)
        if said is not None:
            (folder / "size").write_text(said)
    (tmp_path / "index3").mkdir()  # which says nothing at all
    monkeypatch.setattr(eviction, "CACHES", tmp_path)
    assert (cache_bytes(), cache_bytes(1), cache_bytes(2)) == (32 << 10, 32 << 10, 0)


@pytest.mark.parametrize("part", [KEPT, 1.0])
def test_weights_that_the_cache_does_not_keep_are_read_from_memory(
    part: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placed, "cache_bytes", lambda: CACHE)
    width, cache = 256, tmp_path / "cache.sqlite"
    few, many = layers(width, 1), layers(width, int(part * CACHE) // (4 * width * width) + 1)
    kept, read = (OnnxRuntimeCost(cache=cache, start=graph) for graph in (few, many))
    assert (kept.depends_on_cache, read.depends_on_cache) == (False, True)

    def times(models: list[object], cold: bool) -> list[int]:
        return [500 if cold else 100] * len(models)

    for found in (kept, read):
        monkeypatch.setattr(found.runtime, "times", times)
    assert kept.graph(few).time_ps == 100
    weights = width / (width + 1)  # part of what a product reads
    assert read.graph(few).time_ps == 100 + round(weights * 400)


@pytest.mark.parametrize(("cache_mib", "read_mib"), [(0, 1 / 128), (32, 64), (96, 128), (260, 260)])
def test_as_much_is_read_as_the_cache_holds_or_more(
    cache_mib: int, read_mib: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eviction, "cache_bytes", lambda: cache_mib << 20)
    others = Eviction()._others  # pyright: ignore[reportPrivateUsage]
    assert others.nbytes == int(read_mib * (1 << 20))


@pytest.mark.parametrize(("whole", "read"), [(True, 1000), (False, 64)])
def test_all_of_it_is_read_or_a_part(whole: bool, read: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eviction, "MOST", 64 * 4)
    evict, largest = Eviction(), list[float]()

    class Counting(np.ndarray[Any, Any]):
        def max(self, *_: object, **__: object) -> None:
            largest.append(float(self[-1]))

    monkeypatch.setattr(evict, "_others", np.arange(1, 1001, dtype=np.float32).view(Counting))
    evict(whole=whole)
    assert largest == [read]


def test_what_is_read_in_between_lies_on_small_pages() -> None:
    """Else the CPU still knows where an operator's pages are, which in a model it doesn't."""
    evict = Eviction()
    address = evict._others.ctypes.data  # pyright: ignore[reportPrivateUsage]
    inside, flags = False, ""
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if bounds := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(bounds[1], 16) <= address < int(bounds[2], 16)
        elif inside and line.startswith("VmFlags:"):
            flags = line
    assert "nh" in flags.split()
