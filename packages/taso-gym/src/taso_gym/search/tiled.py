"""What was found, with its chains of elementwise operators in tiles where that is faster.

Costs say of which chains it is: a loop over tiles is measured alone, as any operator that the table doesn't know. What
it reads is in the cache then, which it mayn't be in the model; so the whole runs against what was found without.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from taso_gym.cost.eviction import cache_bytes
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.equivalence import Baseline
from taso_gym.errors import CostError, TypeInferenceError
from taso_gym.graph import Graph, value_of
from taso_gym.search.race import race_seconds
from taso_gym.signature import OpaqueOperator, Signature
from taso_gym.tiles import Chain, chains, in_tiles

IN_TILES, AS_FOUND = "in tiles", "as found"
WHOLE, TILE = 2, 16
"""What is larger than the first part of the cache doesn't stay there for the next operator, which writes as much; the
second is a tile, so that all values of a turn stay there and its own time hardly counts."""
MEASURING, MOST = 0.05, 0.3
"""Parts of the time that is left before the contest: what is kept for measuring loops, and at most for all."""
LEAST = 0.01
"""Part of the time that has to be saved by the costs: less is hardly seen when it is run."""


class Tiles(NamedTuple):
    """How many chains are in tiles, and the picoseconds that this saves by the costs."""

    number: int = 0
    saved_ps: int = 0


NO_TILES = Tiles()


def chains_of(graph: Graph, model: OnnxRuntimeCost) -> list[Chain]:
    """Return the chains of a graph whose values don't fit into the cache of a core; none on a GPU."""
    cache = cache_bytes(2)
    return chains(graph, cache // WHOLE, cache // TILE) if cache and model.runtime.provider == "cpu" else []


def seconds_for(graph: Graph, model: OnnxRuntimeCost, run_ms: float, left: float) -> float:
    """Return how many of the seconds that are left are for chains in tiles: none where a graph has no such.

    Args:
        graph: what is found, or for one sample of what is run.
        model: its costs.
        run_ms: milliseconds of what is run.
        left: seconds.
    """
    if not chains_of(graph, model):
        return 0.0
    return min(race_seconds(run_ms, 1) + MEASURING * left, MOST * left)


def in_faster_tiles(graph: Graph, model: OnnxRuntimeCost, left: Callable[[], float]) -> tuple[Graph, Tiles]:
    """Return a graph with those chains in tiles that costs find faster so; none if they matter little.

    Args:
        graph: it.
        model: measures each loop that it doesn't know.
        left: returns the seconds that are left; no measurement begins where there are none.
    """
    before, saved = model.graph(graph).time_ps, 0
    gains, chosen = dict[Hashable, int](), list[Chain]()
    for chain in chains_of(graph, model):
        alike = described(graph, chain)
        if alike not in gains and left() > 0:
            gains[alike] = _gain(graph, chain, model, before)
        if gains.get(alike, 0) > 0:
            chosen.append(chain)
            saved += gains[alike]
    return (in_tiles(graph, chosen), Tiles(len(chosen), saved)) if saved > LEAST * before else (graph, NO_TILES)


def described(graph: Graph, chain: Chain) -> Hashable:
    """Return what chains have in common whose loops take the same time: operators, their wiring, and tiles."""
    order: dict[int | None, int] = {}
    nodes = ((node_id, graph.nodes[node_id]) for node_id in chain.nodes)
    wired = [
        (node.sig, *(order.setdefault(value, len(order)) for value in (*node.inputs, value_of(node_id))))
        for node_id, node in nodes
    ]
    return (*wired, chain.tiles, chain.axis)


def _gain(graph: Graph, chain: Chain, model: OnnxRuntimeCost, before: int) -> int:
    """Return the picoseconds that a chain gains in tiles by the costs; none where its loop doesn't run alone."""
    try:
        tiled = in_tiles(graph, [chain])
        return before - model.graph(tiled).time_ps if all(map(model.runs_alone, _loops(tiled) - _loops(graph))) else 0
    except (TypeInferenceError, CostError):
        return 0


def _loops(graph: Graph) -> set[Signature]:
    sigs = (node.sig for _, node in graph.operators())
    return {sig for sig in sigs if isinstance(sig.op, OpaqueOperator) and sig.op.name == "Scan"}


def faster_in_tiles(
    graph: Graph, model: OnnxRuntimeCost, wins: Callable[[Graph], bool], left: Callable[[], float], run_ms: float
) -> tuple[Graph, Tiles]:
    """Return a graph with chains in tiles; the graph itself unless it surely is faster, or where no race has room.

    Args:
        graph: it.
        model: its costs.
        wins: whether another graph surely is faster when it is run.
        left: returns the seconds that are left.
        run_ms: milliseconds of what is run.

    Raises:
        TasoError: one of the two can't be run.
    """
    racing = race_seconds(run_ms, 1)
    tiled, tiles = in_faster_tiles(graph, model, lambda: left() - racing)
    if not tiles.number or left() < racing or Baseline(graph).differs(tiled) or left() < racing or not wins(tiled):
        return graph, NO_TILES
    return tiled, tiles
