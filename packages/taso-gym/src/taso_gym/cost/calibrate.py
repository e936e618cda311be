"""Calibration: how well a cost model predicts what onnxruntime takes for variants of a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.cost.measure import measure
from taso_gym.cost.measurement import Measurement
from taso_gym.cost_model import CostModel
from taso_gym.errors import OptionError
from taso_gym.graph import Graph

START = "start"
BATCH = 4
"""Variants that are in memory at once, next to the start."""


@dataclass(frozen=True)
class Calibration:
    """Predicted and measured latencies of a network and its variants.

    Attributes:
        predicted_ms: (V + 1,) by the cost model; the start comes first.
        measured_ms: (V + 1,) end to end; each variant's is its ratio to the start, measured side by side, times the
            start's. As of kernels, what counts of a session is its least time: that of a fast phase of the machine.
        halves: (2, V + 1) the same from every other pair of sessions, and from those between.
    """

    predicted_ms: NDArray[np.float64]
    measured_ms: NDArray[np.float64]
    halves: NDArray[np.float64]

    @property
    def bias(self) -> float:
        """Mean relative difference of prediction and measurement; -0.1 means that predictions are 10 % too low."""
        return float(np.mean(self.predicted_ms / self.measured_ms) - 1)

    @property
    def errors(self) -> NDArray[np.float64]:
        """(V + 1,) relative errors that remain after predictions are multiplied by the one constant that fits best."""
        ratios = self.predicted_ms / self.measured_ms
        return np.abs(ratios / np.exp(np.mean(np.log(ratios))) - 1)

    @property
    def noise(self) -> float:
        """Noise floor: median relative difference of a variant's two halves."""
        return float(np.median(np.abs(self.halves[0, 1:] / self.halves[1, 1:] - 1)))

    @property
    def clear(self) -> NDArray[np.bool_]:
        """(V + 1,) the variants that differ from the start by more than twice the noise, and the start."""
        found = np.abs(self.measured_ms / self.measured_ms[0] - 1) > 2 * self.noise
        found[0] = True
        return found

    @property
    def spearman(self) -> float:
        """Rank correlation of prediction and measurement over the start and those that clearly differ from it."""
        return self._agreement(self.predicted_ms, self.measured_ms)

    @property
    def repeatability(self) -> float:
        """Rank correlation of the two halves over the same: no model can be expected to rank better."""
        return self._agreement(*self.halves)

    def _agreement(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
        """Return the rank correlation of the clear ones; 1 for the start alone, 0 where one series is constant."""
        if self.clear.sum() < 2:
            return 1.0
        return float(np.nan_to_num(rank_correlation(a[self.clear], b[self.clear])))

    @property
    def right_signs(self) -> float:
        """Part of the clear variants that are predicted on the right side of the start; 1 if there are none."""
        measured, predicted = (x[self.clear][1:] / x[0] - 1 for x in (self.measured_ms, self.predicted_ms))
        right = np.sign(measured) == np.sign(predicted)
        return float(right.mean()) if right.size else 1.0

    def __str__(self) -> str:
        found = f"bias {self.bias:+.1%}, error after one constant {self.errors.mean():.2%} "
        found += f"(at most {self.errors.max():.2%}), noise {self.noise:.2%}; "
        if (clear := self.clear.sum() - 1) == 0:
            return f"{found}none differs from the start by more than twice the noise"
        found += f"of the {clear} that differ by more than twice the noise Spearman {self.spearman:.2f} "
        return f"{found}(repeatability {self.repeatability:.2f}), right signs {self.right_signs:.0%}"


def calibrate(
    start: Graph,
    variants: Sequence[Graph],
    model: CostModel,
    *,
    threads: int = 1,
    dims: Mapping[str, int] | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Calibration:
    """Predict and measure a graph and its variants.

    Args:
        start: the graph.
        variants: at least one.
        model: what predicts.
        threads: intra-op threads.
        dims: values of dimension symbols.
        progress: called with (variants measured, variants in all).
        **options: of `taso_gym.cost.measure.measure`: sessions, rounds, provider, seed, timeout_s.

    Raises:
        OptionError: no variant.
        CostError: a graph can't be costed or measured.
    """
    if not variants:
        raise OptionError("expected at least one variant, found none")
    predicted = [model.graph(graph).time_ms for graph in (start, *variants)]
    times, ratios = list[float](), [[1.0] for _ in ("all", "every other session", "those between")]
    for first in range(0, len(variants), BATCH):
        named = {f"variant {first + i}": graph for i, graph in enumerate(variants[first : first + BATCH])}
        found = measure({START: start, **named}, threads=threads, dims=dims, **options)
        times.append(_least_ms(found, START))
        for ratio, part in zip(ratios, (found, *found.split()), strict=True):
            ratio += [_least_ms(part, name) / _least_ms(part, START) for name in named]
        if progress:
            progress(min(first + BATCH, len(variants)), len(variants))
    measured = np.median(times) * np.array(ratios)
    return Calibration(np.array(predicted), measured[0], measured[1:])


def _least_ms(found: Measurement, name: str) -> float:
    """Return the geometric mean over sessions of the least time of a model."""
    return float(np.exp(np.log(found.rounds[name].min(1)).mean()))


def rank_correlation(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Return Spearman's correlation of two series, ties sharing their rank; nan where one is constant."""
    ranks = [(x[:, None] > x).sum(1) + (x[:, None] == x).sum(1) / 2 for x in (a, b)]
    return float(np.corrcoef(ranks)[0, 1]) if all(np.ptp(r) for r in ranks) else float("nan")
