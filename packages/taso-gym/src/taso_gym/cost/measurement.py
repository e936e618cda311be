"""What a measurement of whole models says, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MIN_GAIN = 0.02
"""A smaller gain is reported as none: fresh sessions of one model differ by up to 1.6 %."""

FEWEST = 4
"""Rounds from which on a 95 % interval says anything: of one it is a point, and of three the order is chance."""

RESAMPLES = 2000
TAIL = 0.025
"""Of either side of a 95 % interval."""


class Speedup(NamedTuple):
    """How many times faster than the first model, with the bounds of a 95 % interval."""

    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.ratio:.3f}x [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class Measurement:
    """End-to-end latency of several models, measured in interleaved rounds.

    Attributes:
        rounds: name -> (sessions, rounds) time in milliseconds of each round; the first name is the reference.
        threads: intra-op threads.
        provider: execution provider.
        estimator: what a round's time is.
    """

    rounds: dict[str, NDArray[np.float64]]
    threads: int
    provider: str
    estimator: str

    @property
    def conditions(self) -> str:
        """What was measured and how, in words."""
        return f"{self.provider}, {self.threads} {'thread' if self.threads == 1 else 'threads'}, {self.estimator}"

    @property
    def reference(self) -> str:
        """Name of the model that the others are compared with."""
        return next(iter(self.rounds))

    def time_ms(self, name: str) -> float:
        """Return the latency of a model: median over rounds of thread-CPU medians, or minimum of wall minima."""
        return float(self._summary(self.rounds[name].reshape(-1)))

    def ratio(self, name: str) -> float:
        """Return how many times faster than the reference a model is, without an interval, which takes longer."""
        return self._ratio(self.rounds[self.reference], self.rounds[name])

    def speedup(self, name: str) -> Speedup:
        """Return how many times faster than the reference a model is, with a 95 % interval.

        Of medians it is the bootstrap's. That of minima would be too narrow: most samples have the least round again
        (Bickel & Freedman 1981). See `_between_minima` for theirs.
        """
        base, other = self.rounds[self.reference], self.rounds[name]
        low, high = _between_medians(base / other) if self.estimator == THREAD_CPU else _between_minima(base, other)
        return Speedup(self.ratio(name), low, high)

    def gain(self, name: str) -> float:
        """Return the part of the reference's time that a model saves; 0 where it is less than 2 % or in doubt.

        In doubt: the interval holds 1, some session alone shows no gain, or there are fewer than `FEWEST` rounds.
        """
        if not self.has_intervals:
            return 0.0
        found = self.speedup(name)
        base, other = self.rounds[self.reference], self.rounds[name]
        each = [self._ratio(b[None], o[None]) for b, o in zip(base, other, strict=True)]
        saved = 1 - 1 / found.ratio
        return saved if saved >= MIN_GAIN and found.low > 1 and min(each) > 1 else 0.0

    @property
    def has_intervals(self) -> bool:
        """Whether there are enough rounds for the intervals to hold as often as they say."""
        return self.rounds[self.reference].size >= FEWEST

    def beside(self, reference: str, other: str) -> Measurement:
        """Return the rounds of two of the models, the first of which is the reference."""
        return replace(self, rounds={name: self.rounds[name] for name in (reference, other)})

    def split(self) -> tuple[Measurement, Measurement]:
        """Return every other pair of sessions, and those between.

        Of up to three it is every other session, of one the halves of its rounds. A session keeps the place in memory
        that it was given, which some are faster for than others: halves of their rounds would agree too well. Two after
        each other load models in either order (`taso_gym.cost.measure`): single ones would agree too little.
        """
        count = len(self.rounds[self.reference])
        if count == 1:
            return self._of_rounds()
        of = np.arange(count) // (2 if count > 3 else 1) % 2
        first, second = ({n: r[of == part] for n, r in self.rounds.items()} for part in (0, 1))
        return replace(self, rounds=first), replace(self, rounds=second)

    def _of_rounds(self) -> tuple[Measurement, Measurement]:
        """Return the first and the second half of each session's rounds; of a single round, twice that."""
        half = max(self.rounds[self.reference].shape[1] // 2, 1)
        first, second = ({n: r[:, part] for n, r in self.rounds.items()} for part in (slice(half), slice(-half, None)))
        return replace(self, rounds=first), replace(self, rounds=second)

    def followed_by(self, other: Measurement) -> Measurement:
        """Return the rounds of both, of the models that are in both, as those of one session."""
        both = [name for name in self.rounds if name in other.rounds]
        joined = {n: np.hstack([self.rounds[n].reshape(1, -1), other.rounds[n].reshape(1, -1)]) for n in both}
        return replace(self, rounds=joined)

    @property
    def unstable(self) -> tuple[str, ...]:
        """Models whose first and second half of the rounds differ by over 2 %: the machine was busy."""
        first, second = self._of_rounds()
        return tuple(name for name in self.rounds if abs(first.time_ms(name) / second.time_ms(name) - 1) > MIN_GAIN)

    def _summary(self, rounds: NDArray[np.float64]) -> np.float64:
        return np.median(rounds) if self.estimator == THREAD_CPU else np.min(rounds)

    def _ratio(self, base: NDArray[np.float64], other: NDArray[np.float64]) -> float:
        if self.estimator == THREAD_CPU:
            return float(np.median(base / other))
        return float(np.min(base) / np.min(other))


THREAD_CPU, WALL = "median of thread-CPU time", "minimum of wall time"


def _between_medians(ratios: NDArray[np.float64]) -> tuple[float, float]:
    """Return the bootstrap's 95 % interval of the median of ratios (sessions, rounds), drawn within their session."""
    rng = np.random.default_rng(0)
    sessions, rounds = ratios.shape
    samples = np.empty(RESAMPLES)
    for i in range(RESAMPLES):
        samples[i] = np.median(np.take_along_axis(ratios, rng.integers(0, rounds, (sessions, rounds)), 1))
    low, high = np.quantile(samples, [TAIL, 1 - TAIL])
    return float(low), float(high)


def _between_minima(base: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, float]:
    """Return the least and the greatest factor between two models that Rosenbaum's test (1954) doesn't reject.

    It counts the rounds of one that are faster than all of the other's times the factor, and rejects what makes these
    more than chance does, whatever rounds are distributed like. Both models' are taken to vary alike. Three rounds of
    each or fewer are too few for 95 %.
    """
    base, other = np.sort(base, axis=None), np.sort(other, axis=None)
    last = _rarely_ahead(base.size) - 1
    return float(base[0] / other[last]), float(base[last] / other[0])


def _rarely_ahead(rounds: int) -> int:
    """Return how many rounds of a model are rarely faster than all of as many of one that is as fast; all at most."""
    chance = 1.0
    for ahead in range(rounds):
        chance *= (rounds - ahead) / (2 * rounds - ahead)
        if chance <= TAIL:
            return ahead + 1
    return rounds
