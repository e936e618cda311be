"""The cost model that a command is told to use, and what it measures on."""

from __future__ import annotations

from taso_gym import cost as costs
from taso_gym.cost_model import CostModel
from taso_gym.graph import Graph

ON_GPU = ("onnxruntime:cuda", "cupy")
"""Beginnings of the cost models whose costs are of a GPU."""


def judge_of(cost: str, graph: Graph, threads: int) -> CostModel:
    """Return a cost model for searches that begin with a graph; one that measures does so with that many threads."""
    measured = {"threads": threads} if cost.startswith("onnxruntime") else {}
    return costs.load(cost, dims=costs.bind_dims(graph), start=graph, **measured)


def provider_of(cost: str) -> str:
    """Return the provider to measure whole models on where these costs are searched or judged."""
    return "cuda" if cost.startswith(ON_GPU) else "cpu"
