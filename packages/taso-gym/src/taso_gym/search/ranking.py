"""A learned change of cost that ranks candidates, for costs that take long to measure.

What a rewrite removes and adds is known without measuring: `change_features` says it by operator. `ChangeModel` begins
with what the roofline model expects and learns from each measurement, so that with none it ranks as that model does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from taso_gym.cost_model import CostModel
from taso_gym.graph import Graph

Features = Mapping[str, float]

ROOFLINE = "roofline"
"""The feature that is the roofline model's own answer."""

LARGEST_PERCENT = 0.5
"""Larger changes count as this much, so that an operator that doesn't run isn't all that is learnt about."""

NOISE_PERCENT = 0.05
"""Standard deviation of what a linear model can't say about a change."""


def change_features(before: Graph, after: Graph, rule: str, model: CostModel, whole_ps: int) -> dict[str, float]:
    """Describe a rewrite by the operators that it adds, less those that it removes; constants and views are left out.

    Args:
        before: the graph.
        after: what the rewrite makes of it.
        rule: its name.
        model: an analytic cost model without contexts.
        whole_ps: cost of the start graph by that model, which times are in % of.
    """
    found = {ROOFLINE: 0.0, f"rule {rule}": 1.0}
    nodes, others = before.nodes, after.nodes
    sides = ((-1.0, nodes, nodes.keys() - others.keys()), (1.0, others, others.keys() - nodes.keys()))
    for sign, side, ids in sides:
        for i in sorted(ids):
            sig = side[i].sig
            if not sig.const and not sig.op.view:
                percent = sign * 100 * model.node(sig).time_ps / max(whole_ps, 1)
                found[ROOFLINE] += percent
                for name, value in ((sig.op.key, sign), (f"{sig.op.key} time", percent)):
                    found[name] = found.get(name, 0.0) + value
    return found


class Expected(NamedTuple):
    """Changes (C,) of candidates in % of the start's cost: mean and standard deviation."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]


class ChangeModel:
    """Bayesian linear regression (Bishop 2006, §3.3) on what the roofline model leaves over.

    Args:
        prior: standard deviation of the weights before anything is measured.
    """

    def __init__(self, prior: float = 0.5) -> None:
        self.prior = prior
        self._seen: list[tuple[dict[str, float], float]] = []

    @property
    def seen(self) -> list[tuple[dict[str, float], float]]:
        """What was learnt from: (features, change in %)."""
        return self._seen

    def learn(self, features: Features, change: float) -> None:
        """Take a measured change, in % of the start's cost, into account."""
        self._seen.append((dict(features), float(np.clip(change, -LARGEST_PERCENT, LARGEST_PERCENT))))

    def expect(self, candidates: Sequence[Features]) -> Expected:
        """Return what is expected of candidates."""
        known, asked = matrices([features for features, _ in self._seen], candidates)
        width = known.shape[1]
        left = np.array([change - features[ROOFLINE] for features, change in self._seen], np.float64)
        precision = np.eye(width) / self.prior**2 + known.T @ known / NOISE_PERCENT**2
        covariance = np.linalg.inv(precision)
        weights = covariance @ (known.T @ left) / NOISE_PERCENT**2
        base = np.array([features[ROOFLINE] for features in candidates], np.float64)
        variance = np.einsum("cd,de,ce->c", asked, covariance, asked)
        return Expected(base + asked @ weights, np.sqrt(np.maximum(variance, 0.0)))


def matrices(learnt: Sequence[Features], asked: Sequence[Features]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both as rows, a column for each name that one of them has, in the same order whatever was asked before."""
    names = sorted({name for features in (*learnt, *asked) for name in features})

    def rows(found: Sequence[Features]) -> NDArray[np.float64]:
        return np.array([[features.get(name, 0.0) for name in names] for features in found]).reshape(-1, len(names))

    return rows(learnt), rows(asked)
