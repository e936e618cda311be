"""What was found, with its chains of elementwise operators in tiles where that is faster.

Costs say of which chains it is: a loop over tiles is measured alone, as any operator that the table doesn't know. What
it reads is in the cache then, which it mayn't be in the model; so the whole runs against what was found without.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from taso_gym.cost.eviction import cache_bytes
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.equivalence import Baseline
from taso_gym.errors import CostError, TypeInferenceError
from taso_gym.graph import Graph
from taso_gym.search.bouts import expected_seconds
from taso_gym.signature import OpaqueOperator
from taso_gym.tiles import Chain, chains, in_tiles

IN_TILES, AS_FOUND = "in tiles", "as found"
WHOLE, TILE = 2, 16
"""What is larger than such a part of the cache doesn't stay there for the next operator, which writes as much; and such
a part of it is a tile, so that all values of a turn stay there and its own time hardly counts."""
MEASURING, MOST = 0.05, 0.2
"""Parts of the time that is left before the contest: for measuring loops, and for all."""
LEAST = 0.01
"""Part of the time that has to be saved by the costs: less is hardly seen when it is run."""


def chains_of(graph: Graph, model: OnnxRuntimeCost) -> list[Chain]:
    """Return the chains of a graph whose values don't fit into the cache of a core; none on a GPU."""
    cache = cache_bytes(2)
    return chains(graph, cache // WHOLE, cache // TILE) if cache and model.runtime.provider == "cpu" else []


def seconds_for(graph: Graph, model: OnnxRuntimeCost, left: float) -> float:
    """Return how many of the seconds that are left are for chains in tiles: none where a graph has no such."""
    if not chains_of(graph, model):
        return 0.0
    return min(expected_seconds(model.graph(graph).time_ms, 1) + MEASURING * left, MOST * left)


def in_faster_tiles(graph: Graph, model: OnnxRuntimeCost, left: Callable[[], float]) -> tuple[Graph, int]:
    """Return a graph with those chains in tiles that costs find faster so, and how many; none if they matter little.

    Args:
        graph: it.
        model: measures each loop that it doesn't know.
        left: returns the seconds that are left; no measurement begins where there are none.
    """
    before, saved = model.graph(graph).time_ps, 0
    gains, chosen = dict[Hashable, int](), list[Chain]()
    for chain in chains_of(graph, model):
        alike = (*(graph.nodes[node_id].sig for node_id in chain.nodes), chain.tiles, chain.axis)
        if alike not in gains and left() > 0:
            gains[alike] = _gain(graph, chain, model, before)
        if gains.get(alike, 0) > 0:
            chosen.append(chain)
            saved += gains[alike]
    return (in_tiles(graph, chosen), len(chosen)) if saved > LEAST * before else (graph, 0)


def _gain(graph: Graph, chain: Chain, model: OnnxRuntimeCost, before: int) -> int:
    """Return the picoseconds that a chain gains in tiles by the costs; none where its loop doesn't run alone."""
    try:
        tiled = in_tiles(graph, [chain])
        return before - model.graph(tiled).time_ps if _is_measured(tiled, model) else 0
    except (TypeInferenceError, CostError):
        return 0


def _is_measured(tiled: Graph, model: OnnxRuntimeCost) -> bool:
    sigs = (node.sig for _, node in tiled.operators())
    return all(model.runs_alone(s) for s in sigs if isinstance(s.op, OpaqueOperator) and s.op.name == "Scan")


def faster_in_tiles(
    graph: Graph, model: OnnxRuntimeCost, wins: Callable[[Graph], bool], left: Callable[[], float]
) -> tuple[Graph, int]:
    """Return a graph with chains in tiles, and how many these are; the graph itself and 0 unless it surely is faster.

    Args:
        graph: it.
        model: its costs.
        wins: whether another graph surely is faster when it is run.
        left: returns the seconds that are left.

    Raises:
        TasoError: one of the two can't be run.
    """
    tiled, count = in_faster_tiles(graph, model, left)
    if not count or left() <= 0 or Baseline(graph).differs(tiled) or not wins(tiled):
        return graph, 0
    return tiled, count
