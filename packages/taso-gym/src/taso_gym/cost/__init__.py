"""Cost models: what a node, and so a graph, costs on a device."""

from __future__ import annotations

from taso_gym.cost_model import Cost, CostModel

__all__ = ["Cost", "CostModel"]
