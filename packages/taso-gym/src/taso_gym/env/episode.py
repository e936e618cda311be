"""A game in progress: the mutable part of an environment."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from taso_gym.env.problem import Start
from taso_gym.reward import Reward
from taso_gym.rules.state import Match


class Outcome(NamedTuple):
    """What a move led to."""

    reward: float
    terminated: bool
    truncated: bool
    legal: bool


class Episode:
    """A game from a start state on.

    Attributes:
        start: the model it began with.
        state: present graph, matches and cost.
        observer: observes ``state``.
        steps: moves so far, legal or not.
        path: rewrites so far.
    """

    __slots__ = ("observer", "path", "reward", "start", "state", "steps")

    def __init__(self, start: Start, reward: Reward) -> None:
        """Begin a game; it takes a copy of ``reward``."""
        self.start, self.state, self.observer = start, start.state, start.observer.fork()
        self.steps = 0
        self.path: list[Match] = []
        self.reward = deepcopy(reward)
        self.reward.reset(self.state)

    def fork(self) -> Episode:
        """Return an independent game at the same point, in microseconds: states are immutable."""
        other = Episode.__new__(Episode)
        other.start, other.state, other.observer = self.start, self.state, self.observer.fork()
        other.steps, other.path, other.reward = self.steps, self.path.copy(), deepcopy(self.reward)
        return other

    def legal(self, xfer: int, location: int) -> bool:
        """Whether a move is in the masks; NO-OP is at any location, though the masks show it at 0 only."""
        layout = self.observer.layout
        if xfer == layout.xfers:
            return 0 <= location < layout.locations
        return 0 <= xfer < layout.xfers and 0 <= location < self.observer.counts[xfer]

    def play(self, xfer: int, location: int, max_steps: int, invalid_penalty: float) -> Outcome:
        """Make a move; an illegal one counts as a step, leaves the graph and adds ``invalid_penalty``."""
        previous, legal, stop = self.state, self.legal(xfer, location), xfer == self.observer.layout.xfers
        if legal and not stop:
            self._rewrite(previous.matches[xfer][location])
        self.steps += 1
        terminated = (legal and stop) or not self.observer.total
        truncated = not terminated and self.steps >= max_steps
        reward = float(self.reward.step(previous, self.state, terminated or truncated))
        return Outcome(reward if legal else reward + invalid_penalty, terminated, truncated, legal)

    def _rewrite(self, match: Match) -> None:
        """Apply a match; what Ctrl-C or want of memory ends halfway is as if it hadn't begun."""
        rewrites, child = len(self.path), self.state.apply(match)
        try:
            self.observer.advance(child)
            self.path.append(match)
            self.state = child
        except BaseException:
            del self.path[rewrites:]
            self.observer = self.start.observer.fork()
            for known in self.path:
                self.observer.advance(self.observer.state.apply(known))
            self.state = self.observer.state
            raise

    def info(self, xfer: int = -1, location: int = -1, legal: bool = True) -> dict[str, Any]:
        """Return the ``info`` after a move, or at the start: always the same keys and types: NumPy's, or bool."""
        now, first = self.state.cost.time_ps, self.start.state.cost.time_ps
        initial_cost_ms, model, digest = self.start.facts
        return {
            "cost_ms": np.float64(now / 1e9),
            "initial_cost_ms": initial_cost_ms,
            "improvement_percent": np.float64(100 * (first - now) / max(first, 1)),
            "step": np.int64(self.steps),
            "rewrites": np.int64(len(self.path)),
            "candidates": np.int64(self.observer.total),
            "xfer": np.int64(xfer if legal else -1),
            "location": np.int64(location if legal else -1),
            "invalid_action": not legal,
            "model": model,
            "rules_digest": digest.copy(),
        }


class Snapshot(NamedTuple):
    """A point of an episode to come back to; made by `TasoGraphEnv.get_state`, picklable; not changed by playing on.

    Attributes:
        episode: the game; None before the first reset.
        rng: state of the environment's random stream, None where it has none yet.
        seed: what that began with, None where it has none.
    """

    episode: Episode | None
    rng: Mapping[str, Any] | None
    seed: int | None = None
