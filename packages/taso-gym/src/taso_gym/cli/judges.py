"""The cost model that a command is told to use, and what it measures on."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from taso_gym import cost as costs
from taso_gym.console import say
from taso_gym.cost.recorded import RecordedCost
from taso_gym.cost_model import CostModel
from taso_gym.errors import OptionError
from taso_gym.graph import Graph

ON_GPU = ("onnxruntime:cuda", "cupy")
"""Beginnings of the cost models whose costs are of a GPU."""


def judge_of(
    cost: str, graph: Graph, threads: int, cache: Path | None = None, progress: Callable[[str], None] | None = None
) -> CostModel:
    """Return a cost model for searches that begin with a graph; of a table with other threads a line says so.

    Args:
        cost: its specification.
        graph: the graph.
        threads: that are measured with, where it takes a number of threads.
        cache: file of the measurements, where it measures; None for the user's.
        progress: called with what is measured next.
    """
    given: dict[str, Any] = {"cache": cache, "progress": progress, "threads": threads}
    options = {name: given[name] for name in costs.options_of(cost) & given.keys()}
    judge = costs.load(cost, dims=costs.bind_dims(graph), start=graph, **options)
    recorded = judge.table.threads if isinstance(judge, RecordedCost) else None
    if recorded and recorded != threads:
        say(f"{cost} was recorded with --threads {recorded}, and --threads is {threads} here")
    return judge


def provider_of(cost: str, judge: CostModel, timed: bool = True) -> str:
    """Return the provider to measure whole models on where these costs are searched or judged.

    Raises:
        OptionError: they are to be timed, and the costs are of another device than the first.
    """
    if timed and re.fullmatch(r"cupy:0*[1-9][0-9]*", cost):
        raise OptionError(
            f"expected costs of the first device, on which whole models are timed, found {cost}: with "
            f"CUDA_VISIBLE_DEVICES={cost.removeprefix('cupy:')} it is --cost cupy, and optimize --no-measure times "
            "none without --session-settings"
        )
    if isinstance(judge, RecordedCost):
        return judge.table.provider
    return "cuda" if cost.startswith(ON_GPU) else "cpu"
