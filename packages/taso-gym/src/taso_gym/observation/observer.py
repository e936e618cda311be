"""Observations of rewrite states: patched from a state to its child, handed out as fresh arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from taso_gym.cost_model import Cost
from taso_gym.observation.candidates import CandidateRows
from taso_gym.observation.features import Features
from taso_gym.observation.layout import GLOBAL_FEATURES, MAX_CHANGE_PERCENT, MAX_RATIO, Layout, Observation
from taso_gym.observation.rows import GraphRows
from taso_gym.rules.state import RewriteState


class Observer:
    """Observes one rewrite state at a time.

    Rows of nodes and edges depend on the way on which a graph was reached, since they are kept while a node lives; so a
    saved episode holds its observer too.

    Attributes:
        state: the observed state.
        layout: sizes of the arrays.
    """

    def __init__(self, layout: Layout, features: Features, state: RewriteState) -> None:
        """Lay out a state.

        Raises:
            OptionError: its graph is larger than the layout.
        """
        self.layout, self.state, self._features = layout, state, features
        self._graph = GraphRows(state.graph, features, layout.max_nodes, layout.max_edges)
        self._candidates = CandidateRows(layout, state.matches, self._graph.row_of)
        self._shared = False

    def fork(self) -> Observer:
        """Return an independent observer of the same state; what both hold is copied when either moves on."""
        other = Observer.__new__(Observer)
        self._shared = True
        other.__dict__.update(self.__dict__)
        return other

    def advance(self, child: RewriteState) -> None:
        """Go on to a child of the observed state, in time proportional to what the rewrite changed."""
        assert child.edit is not None
        if self._shared:
            self._graph, self._candidates, self._shared = self._graph.copy(), self._candidates.copy(), False
        self._graph.patch(self.state.graph, child.graph, child.edit)
        self._candidates.patch(child.matches, child.renewed, self._graph.row_of)
        self.state = child

    @property
    def counts(self) -> NDArray[np.int32]:
        """Legal locations of each rule and of NO-OP, (N + 1,); don't write to it."""
        return self._candidates.counts

    @property
    def total(self) -> int:
        """Number of candidates."""
        return self._candidates.total

    def action(self, candidate: int) -> tuple[int, int]:
        """Return (xfer, location) of a candidate, 0 … total-1."""
        return self._candidates.action(candidate)

    def row_of(self, node_id: int) -> int:
        """Return the row of an operator or graph input; -1 for what has none."""
        return self._graph.row_of.get(node_id, -1)

    def observe(self, step_fraction: float, out: Observation | None = None) -> Observation:
        """Return the observation as fresh arrays, or write it to ``out`` (arrays of the space's shapes and types).

        Args:
            step_fraction: steps taken / max_steps.
            out: where to write, for batches.
        """
        out = self.layout.empty() if out is None else out
        graph, candidates, counts = self._graph, self._candidates, self._candidates.counts
        self._features.nodes.take(graph.node_kinds, out["nodes"])
        self._features.edges.take(graph.edge_kinds, out["edge_features"])
        np.not_equal(graph.node_kinds, 0, out=out["node_mask"])
        np.not_equal(graph.edge_kinds, 0, out=out["edge_mask"])
        out["edges"][...] = graph.edge_ends
        out["globals"][...] = self._globals(step_fraction)
        np.not_equal(counts, 0, out=out["xfer_mask"])
        if self.layout.location_counts:
            out["location_counts"][...] = counts
        else:
            self.layout.ladder.take(counts, axis=0, out=out["location_masks"], mode="clip")
        candidates.write(out["matches"])
        out["match_mask"][...] = 0
        out["match_mask"][: candidates.total] = 1
        if "cost_changes" in self.layout.extra_views:
            self.cost_changes(out["cost_changes"])
        return out

    def cost_changes(self, out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """Return for each candidate the change of run time in % of the start graph's, (M,); negative is faster."""
        out = np.empty(self.layout.matches, np.float32) if out is None else out
        scale = 100 / max(self._features.scale.start.time_ps, 1)
        legal = (m for rule, count in enumerate(self.counts[:-1]) for m in self.state.matches[rule][:count])
        out[...] = 0
        out[: self.total] = [delta.time_ps * scale for _, delta in self.state.deltas(legal)]
        return np.clip(out, -MAX_CHANGE_PERCENT, MAX_CHANGE_PERCENT, out=out)

    def _globals(self, step_fraction: float) -> list[float]:
        now, start = self.state.cost, self._features.scale.start
        layout = self.layout
        values = [
            *(min(a / max(b, 1), MAX_RATIO) for a, b in zip(now, start, strict=True)),
            min(step_fraction, 1.0),
            self._graph.node_count / layout.max_nodes,
            self._graph.edge_count / layout.max_edges,
            self.total / layout.matches,
        ]
        assert len(values) == len(GLOBAL_FEATURES) and len(Cost._fields) == 4
        return values
