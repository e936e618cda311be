"""The cost model that a command is told to use, and what it measures on."""

from __future__ import annotations

import re

from taso_gym import cost as costs
from taso_gym.console import say
from taso_gym.cost.recorded import RecordedCost
from taso_gym.cost.runtime import PROVIDERS
from taso_gym.cost_model import CostModel
from taso_gym.graph import Graph

ON_GPU = ("onnxruntime:cuda", "cupy")
"""Beginnings of the cost models whose costs are of a GPU."""


def judge_of(cost: str, graph: Graph, threads: int) -> CostModel:
    """Return a cost model for searches that begin with a graph; one that measures does so with that many threads.

    Of a table that was recorded with other threads a line says so.
    """
    measured = {"threads": threads} if cost.startswith("onnxruntime") else {}
    judge = costs.load(cost, dims=costs.bind_dims(graph), start=graph, **measured)
    recorded = re.search(r"\|(\d+) threads$", judge.table.device) if isinstance(judge, RecordedCost) else None
    if recorded and int(recorded[1]) != threads:
        say(f"{cost} was recorded with --threads {recorded[1]}, and what is measured here runs with {threads}")
    return judge


def provider_of(cost: str, judge: CostModel) -> str:
    """Return the provider to measure whole models on where these costs are searched or judged."""
    recorded = isinstance(judge, RecordedCost) and PROVIDERS["cuda"] in judge.table.device
    return "cuda" if recorded or cost.startswith(ON_GPU) else "cpu"
