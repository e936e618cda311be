"""Regions whose costs are asked for soon are measured together, as they would be one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from cost_graphs import weight

from taso_gym.builder import GraphBuilder
from taso_gym.cost import measured
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.runtime import Runtime
from taso_gym.errors import KernelError
from taso_gym.graph import Graph
from taso_gym.tensor import TensorType

pytest.importorskip("onnxruntime")

LAYERS = 64, 96, 128, 160


def chain() -> Graph:
    """A product from each width of `LAYERS` to the next."""
    b = GraphBuilder({"": 20})
    value = b.input("x", TensorType("float", (4, LAYERS[0])))
    for name, rows, columns in zip("uvw", LAYERS, LAYERS[1:], strict=False):
        value = b.add("MatMul", value, weight(b, name, rows, columns))
    b.output("y", value)
    return b.build()


def cold(
    cache: Path, monkeypatch: pytest.MonkeyPatch, threads: int = 1
) -> tuple[OnnxRuntimeCost, Graph, list[tuple[int, bool]]]:
    """Return a model of a graph that doesn't stay in the cache, and how many nodes are measured together, when."""
    monkeypatch.setattr("taso_gym.cost.placed.KEPT", 1e-9)
    graph, groups = chain(), list[tuple[int, bool]]()
    model = OnnxRuntimeCost(start=graph, cache=cache, outside=0.5, threads=threads)

    def times(_: Runtime, models: Sequence[Any], cold: bool = False) -> list[int]:
        groups.append((len(models), cold))
        return [sum(value.shape()[-1] for value in feeds.values()) * (2 if cold else 1) for _, feeds in models]

    monkeypatch.setattr(Runtime, "times", times)
    return model, graph, groups


@pytest.mark.parametrize("threads", [1, 2])
def test_a_graph_is_measured_together(threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, graph, groups = cold(tmp_path / "c", monkeypatch, threads)
    whole = model.graph(graph)
    distinct = len(LAYERS) - 1
    assert groups.count((distinct, True)) == 1
    groups.clear()
    alone = OnnxRuntimeCost(start=graph, cache=tmp_path / "d", outside=0.5, threads=threads)
    parts = [alone.node(node.sig, alone.context(graph, i)) for i, node in graph.operators()]
    assert sum(part.time_ps for part in parts) == whole.time_ps
    assert all(count == 1 for count, _ in groups)
    groups.clear()
    again = OnnxRuntimeCost(start=graph, cache=tmp_path / "c", outside=0.5, threads=threads)
    assert again.graph(graph) == whole and not groups


@pytest.mark.parametrize("asked", [lambda model, graph: model.in_turns([graph], 0.0), OnnxRuntimeCost.slower_in_place])
def test_regions_of_a_graph_are_measured_together(
    asked: Callable[[OnnxRuntimeCost, Graph], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, graph, groups = cold(tmp_path / "c", monkeypatch)
    asked(model, graph)
    assert groups.count((len(LAYERS) - 1, True)) == 1


def test_more_is_not_held_in_memory_than_has_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "TOGETHER_BYTES", 0)
    model, graph, groups = cold(tmp_path / "c", monkeypatch)
    model.graph(graph)
    assert all(count == 1 for count, _ in groups)


def test_what_fails_together_is_said_by_the_operator_that_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, graph, groups = cold(tmp_path / "c", monkeypatch)
    times = Runtime.times

    def failing(runtime: Runtime, models: Sequence[Any], cold: bool = False) -> list[int]:
        if any(value.shape()[-1] == LAYERS[1] for _, feeds in models for value in feeds.values()) and cold:
            raise KernelError("no such kernel")
        return times(runtime, models, cold)

    monkeypatch.setattr(Runtime, "times", failing)
    found = [model.node(node.sig, model.context(graph, i)) for i, node in graph.operators()]
    known = model.graph(graph).time_ps
    assert known == sum(cost.time_ps for cost in found) and any(cold for _, cold in groups)


@pytest.mark.parametrize("is_cold", [False, True])
def test_what_is_expected_is_measured_when_that_is_said(
    is_cold: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the cache at least: who says so asks between two of them whether there is time."""
    model, graph, groups = cold(tmp_path / "c", monkeypatch)
    monkeypatch.setattr(model, "_cold", is_cold)
    nodes = [(node.sig, model.context(graph, i)) for i, node in graph.operators()]
    model.expect(nodes)
    asked = len(groups)
    assert asked and not any(cold for _, cold in groups)
    for sig, context in nodes:
        model.node(sig, context)
    assert [cold for _, cold in groups[asked:]] == [True] * is_cold


def test_a_pickled_model_expects_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, graph, groups = cold(tmp_path / "c", monkeypatch)
    nodes = [(node.sig, model.context(graph, i)) for i, node in graph.operators()]
    model.expect(nodes)
    assert groups and not any(cold for _, cold in groups)
    assert not model.bound({"batch": 2}).__getstate__()["_expected"]
    model.node(*next((sig, context) for sig, context in nodes if not (sig.const or sig.op.view)))
    assert [count for count, cold in groups if cold] == [len([count for count, cold in groups if not cold])]


def test_a_bound_stands_for_what_was_not_measured(tmp_path: Path) -> None:
    graph, measured = chain(), list[str]()
    first, second = (OnnxRuntimeCost(cache=tmp_path / "c", progress=measured.append) for _ in range(2))
    nodes = [(node.sig, first.context(graph, i)) for i, node in graph.operators()]
    bounds = [first.least_ps(*node) for node in nodes]
    assert not measured
    times = [first.node(*node).time_ps for node in nodes]
    assert all(0 < bound < time for bound, time in zip(bounds, times, strict=True))
    measured.clear()
    assert [model.least_ps(*node) for model in (first, second) for node in nodes] == [*times, *times]
    assert not measured
