"""Statistics over few runs: interquartile mean with bootstrap intervals (Agarwal et al. 2021, "rliable")."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Estimate(NamedTuple):
    """A point estimate with its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def iqm(samples: ArrayLike) -> NDArray[np.float64]:
    """Return the mean of the middle half along the last axis: a quarter, rounded down, is left out at each end."""
    ordered = np.sort(np.asarray(samples, np.float64), axis=-1)
    count = ordered.shape[-1]
    cut = count // 4
    return ordered[..., cut : count - cut].mean(axis=-1)


def iqm_estimate(samples: ArrayLike, resamples: int = 2000) -> Estimate:
    """Return the interquartile mean of samples (one per run) with its 95 % percentile bootstrap interval.

    With a single sample the interval is that sample: it says nothing about other runs.
    """
    values = np.asarray(samples, np.float64)
    assert values.ndim == 1 and len(values), f"expected the scores of runs, found shape {values.shape}"
    draws = np.random.default_rng(0).integers(len(values), size=(resamples, len(values)))
    low, high = np.quantile(iqm(values[draws]), [0.025, 0.975])
    return Estimate(float(iqm(values)), float(low), float(high))


def known_mean(values: ArrayLike) -> float:
    """Return the mean of the values that aren't nan; nan where none is left."""
    found = np.asarray(values, np.float64)
    known = found[~np.isnan(found)]
    return float(known.mean()) if known.size else float("nan")
