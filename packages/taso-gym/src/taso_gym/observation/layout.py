"""The observation's arrays: their sizes, bounds and meaning."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from taso_gym.observation.features import EDGE_FEATURES, NODE_FEATURES, Feature, highs

Observation = dict[str, NDArray[Any]]

MAX_RATIO = 8.0
GLOBAL_FEATURES: tuple[Feature, ...] = (
    Feature("time", "run time / run time of the start graph, at most 8", MAX_RATIO),
    Feature("flops", "floating-point operations / those of the start graph, at most 8", MAX_RATIO),
    Feature("bytes_moved", "bytes read and written / those of the start graph, at most 8", MAX_RATIO),
    Feature("kernels", "kernels launched / those of the start graph, at most 8", MAX_RATIO),
    Feature("step", "steps taken / max_steps"),
    Feature("nodes", "part of the rows of ``nodes`` that is in use"),
    Feature("edges", "part of the rows of ``edges`` that is in use"),
    Feature("candidates", "part of the rows of ``matches`` that is in use"),
)
"""Entries of ``globals``."""

MAX_CHANGE_PERCENT = 100.0
EXTRA_VIEWS = ("cost_changes",)
"""Names of the arrays that an observation holds only if asked for."""


@dataclass(frozen=True)
class Layout:
    """The sizes that fix an observation space.

    Attributes:
        max_nodes, max_edges: rows for operators and graph inputs, and for the values between them; constants have none.
        xfers: number of rules N; number N itself is NO-OP.
        locations: most locations L of a rule.
        matches: most candidates M in all.
        pattern_nodes: most operators P in the left side of a rule.
        location_counts: hold the number of legal locations of each rule in place of their masks.
        extra_views: names out of `EXTRA_VIEWS`.
    """

    max_nodes: int
    max_edges: int
    xfers: int
    locations: int
    matches: int
    pattern_nodes: int
    location_counts: bool = False
    extra_views: tuple[str, ...] = ()

    def space(self) -> spaces.Dict:
        """Return the observation space: finite boxes with exact bounds."""
        boxes: dict[str, spaces.Space[Any]] = {
            "nodes": _columns(np.zeros(len(NODE_FEATURES)), highs(NODE_FEATURES), self.max_nodes, np.float32),
            "node_mask": _mask(self.max_nodes),
            "edges": spaces.Box(0, self.max_nodes - 1, (self.max_edges, 2), np.int32),
            "edge_mask": _mask(self.max_edges),
            "edge_features": _columns(np.zeros(len(EDGE_FEATURES)), highs(EDGE_FEATURES), self.max_edges, np.float32),
            "globals": spaces.Box(np.zeros(len(GLOBAL_FEATURES), np.float32), highs(GLOBAL_FEATURES), dtype=np.float32),
            "xfer_mask": _mask(self.xfers + 1),
            "matches": _columns(*self._match_bounds(), self.matches, np.int32),
            "match_mask": _mask(self.matches),
        }
        if self.location_counts:
            boxes["location_counts"] = spaces.Box(0, self.locations, (self.xfers + 1,), np.int32)
        else:
            boxes["location_masks"] = _mask(self.xfers + 1, self.locations)
        if "cost_changes" in self.extra_views:
            high = MAX_CHANGE_PERCENT
            boxes["cost_changes"] = spaces.Box(-high, high, (self.matches,), np.float32)
        return spaces.Dict(boxes)

    def empty(self, *batch: int) -> Observation:
        """Return unfilled arrays of one observation, or of a batch."""
        return {k: np.empty((*batch, *shape), dtype) for k, (shape, dtype) in self._arrays.items()}

    @cached_property
    def ladder(self) -> NDArray[np.int8]:
        """Location masks by count, (min(L, M) + 1, L): row c has c ones in front; no rule has more than M."""
        return np.tri(min(self.locations, self.matches) + 1, self.locations, -1, dtype=np.int8)

    @cached_property
    def blank(self) -> NDArray[np.signedinteger[Any]]:
        """Rows of ``matches`` (L, 2 + P) of a rule that hold the locations, and -1 elsewhere; of the smallest type."""
        dtype = np.min_scalar_type(-max(self.max_nodes, self.xfers, self.locations))
        rows = np.full((self.locations, 2 + self.pattern_nodes), -1, dtype)
        rows[:, 1] = np.arange(self.locations)
        return rows

    @cached_property
    def _arrays(self) -> dict[str, tuple[tuple[int, ...], Any]]:
        return {k: (box.shape or (), box.dtype) for k, box in self.space().items()}

    def _match_bounds(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        high = [max(self.xfers - 1, 0), self.locations - 1] + [self.max_nodes - 1] * self.pattern_nodes
        return np.full(len(high), -1, np.int32), np.array(high, np.int32)


def size_bytes(space: spaces.Dict) -> int:
    """Return the bytes that one observation takes."""
    return sum(int(np.prod(s.shape or ())) * np.dtype(s.dtype).itemsize for s in space.values())


def _mask(*shape: int) -> spaces.Box:
    return spaces.Box(0, 1, shape, np.int8)


def _columns(low: NDArray[Any], high: NDArray[Any], rows: int, dtype: Any) -> spaces.Box:
    """Box of (rows, columns) whose bounds are those of its columns."""
    shape = rows, len(low)
    full_low, full_high = (np.broadcast_to(b.astype(dtype), shape).copy() for b in (low, high))
    return spaces.Box(full_low, full_high, dtype=dtype)
