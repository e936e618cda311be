"""The playing part of the environment: steps, masks, copies of a point in an episode."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from taso_gym import onnx_io
from taso_gym.arguments import check_kinds
from taso_gym.checks import check_kind
from taso_gym.env.actions import read_index, read_pair
from taso_gym.env.episode import Episode, Snapshot
from taso_gym.env.problem import Start
from taso_gym.env.source import Source
from taso_gym.env.views import view
from taso_gym.errors import OptionError
from taso_gym.observation import Layout, Observation
from taso_gym.render import Scene, render
from taso_gym.reward import Reward
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import Match, RewriteState

Action = NDArray[np.int64]
Moved = tuple[float, bool, bool, dict[str, Any]]
"""reward, terminated, truncated, info"""


class GraphGame(gym.Env[Observation, Action]):
    """What `TasoGraphEnv` does once its constructor has set it up.

    Attributes:
        starts: the models that episodes begin with.
        rules: the substitutions; number i is action (i, location).
        layout: sizes of the observation.
        max_steps, invalid_penalty: as given.
    """

    starts: tuple[Start, ...]
    rules: RuleSet
    layout: Layout
    max_steps: int
    invalid_penalty: float
    _reward: Reward
    _episode: Episode | None = None
    _rng_state: Mapping[str, Any] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: of the random stream that draws the model where there are several.
            options: ``{"model": name or number}`` begins with that model.

        Raises:
            OptionError: an unknown option or model.
        """
        info = self.begin(seed=seed, options=options)
        return self.observe(), info

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Make a move; never raises, whatever the action is."""
        reward, terminated, truncated, info = self.play(action)
        return self.observe(), reward, terminated, truncated, info

    def begin(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Do what `reset` does without the observation; return the info."""
        check_kinds(options=options)
        if seed is not None:
            super().reset(seed=int(seed) if isinstance(seed, Integral) else seed)
            self._rng_state = None
        self._episode = Episode(self._choose(options or {}), self._reward)
        return self._episode.info()

    def play(self, action: Any) -> Moved:
        """Do what `step` does without the observation; for planners, which need it at a few states only."""
        episode = self.episode
        xfer, location = read_pair(action)
        moved = episode.play(xfer, location, self.max_steps, self.invalid_penalty)
        info = episode.info(xfer, location, moved.legal)
        return moved.reward, moved.terminated, moved.truncated, info

    def observe(self, out: Observation | None = None) -> Observation:
        """Return the present observation as fresh arrays, or write it to ``out``."""
        return self.episode.observer.observe(self.episode.steps / self.max_steps, out)

    @property
    def episode(self) -> Episode:
        """The game in progress.

        Raises:
            ResetNeeded: before the first reset.
        """
        if self._episode is None:
            raise ResetNeeded("expected `reset` before the first step, observation or rendering")
        return self._episode

    @property
    def state(self) -> RewriteState:
        """Graph, matches and cost at this point."""
        return self.episode.state

    @property
    def path(self) -> tuple[Match, ...]:
        """The rewrites of this episode."""
        return tuple(self.episode.path)

    def source(self) -> Source:
        """Return what makes this episode's start state again."""
        return replace(self.episode.start.source, seed=self._np_random_seed)

    def legal_locations(self) -> NDArray[np.int64]:
        """Return how many locations of each rule are legal, (N + 1,): locations 0 … count-1; of NO-OP, 1."""
        return self.episode.observer.counts.astype(np.int64)

    def candidate_action(self, candidate: int) -> tuple[int, int]:
        """Return the action of a row of ``matches`` that is in use.

        Raises:
            OptionError: another row, or no number of one.
        """
        observer, number = self.episode.observer, read_index(candidate)
        if not 0 <= number < observer.total:
            raise OptionError(f"expected the number of one of {observer.total} candidates, found {candidate!r}")
        return observer.action(number)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the masks of rules and of locations, (N + 1 + L,), as sb3-contrib takes them.

        They are marginal: a legal rule and a legal location needn't be legal together.
        """
        counts = self.episode.observer.counts
        return np.concatenate([counts > 0, np.arange(self.layout.locations) < counts.max()])

    def sample_valid(self, rng: np.random.Generator, noop: bool = False) -> Action:
        """Draw a legal action, all candidates alike; NO-OP only if ``noop`` or if there is no candidate."""
        check_kind("rng", rng, (np.random.Generator,), "a numpy.random.Generator")
        observer = self.episode.observer
        number = int(rng.integers(observer.total + (noop or not observer.total)))
        pair = observer.action(number) if number < observer.total else (self.layout.xfers, 0)
        return np.array(pair, np.int64)

    def clone(self) -> GraphGame:
        """Return an independent environment at the same point, in microseconds; it shares the spaces."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._episode = self._episode.fork() if self._episode else None
        other._rng_state, other._np_random = self._current_rng_state(), None
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphGame:
        """Return a clone with spaces of its own, so that their samplers are independent too."""
        other = memo[id(self)] = self.clone()
        memo[id(self._episode)] = other._episode  # a wrapper that knows this game knows its copy
        other.action_space, other.observation_space = deepcopy((self.action_space, self.observation_space), memo)
        other.spec = deepcopy(self.spec, memo)
        return other

    def get_state(self) -> Snapshot:
        """Return this point of the episode."""
        episode = self._episode.fork() if self._episode else None
        return Snapshot(episode, self._current_rng_state(), self._np_random_seed)

    def set_state(self, snapshot: Snapshot) -> None:
        """Go back to a point of an episode of this environment, of a clone or of another made alike.

        Raises:
            OptionError: it is of an environment with other rules, other costs or of other sizes.
        """
        check_kind("snapshot", snapshot, (Snapshot,), "what get_state returned")
        if snapshot.episode and snapshot.episode.start not in self.starts:
            self._expect_alike(snapshot.episode.start)
        self._episode = snapshot.episode.fork() if snapshot.episode else None
        self._rng_state, self._np_random, self._np_random_seed = snapshot.rng, None, snapshot.seed

    @property
    def np_random(self) -> np.random.Generator:
        """The random stream; of a clone it is made when it is first needed."""
        if self._np_random is None and self._rng_state is not None:
            bits = getattr(np.random, self._rng_state["bit_generator"])(0)
            bits.state = self._rng_state
            self._np_random = np.random.Generator(bits)
            self._rng_state = None
        return super().np_random

    @np_random.setter
    def np_random(self, value: np.random.Generator) -> None:
        self._np_random, self._np_random_seed = value, -1

    def save_onnx(self, path: str | Path) -> None:
        """Write the present graph as an ONNX file, whole or not at all."""
        onnx_io.save(self.state.graph, path)

    def view(self, name: str) -> Any:
        """Return a view of the present state by name: ``cost_changes`` (M,), ``onnx`` (bytes), ``text``.

        Raises:
            OptionError: no such view.
        """
        return view(self.episode, name)

    def render(self) -> Any:
        """Return the present graph with the last rewrite marked, in the form that ``render_mode`` says."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; pass one of ansi, svg, rgb_array to gym.make")
            return None
        episode = self.episode
        rule = self.rules[episode.path[-1].rule].name if episode.path else None
        scene = Scene(episode.state, episode.start.state.cost.time_ms, episode.steps, rule)
        return render(self.render_mode, scene)

    def _current_rng_state(self) -> Mapping[str, Any] | None:
        return self._rng_state if self._np_random is None else self._np_random.bit_generator.state

    def _expect_alike(self, start: Start) -> None:
        """Raise an OptionError that says which, if rules or sizes of a start aren't those of this environment."""
        if start.rules.digest != self.rules.digest:
            expected = f"a snapshot with this environment's rules (digest {self.rules.digest})"
            raise OptionError(f"expected {expected}, found one with others ({start.rules.digest})")
        if start.layout != self.layout:
            raise OptionError(f"expected a snapshot with this environment's {self.layout}, found {start.layout}")
        if start.cost.key not in {own.cost.key for own in self.starts}:
            expected = f"a snapshot with this environment's costs ({self.starts[0].cost.key})"
            raise OptionError(f"expected {expected}, found one with others ({start.cost.key})")

    def _choose(self, options: Mapping[str, Any]) -> Start:
        if unknown := [name for name in options if name != "model"]:
            raise OptionError(f"expected options among model, found {unknown[0]!r}")
        if "model" not in options:
            return self.starts[int(self.np_random.integers(len(self.starts))) if len(self.starts) > 1 else 0]
        wanted = str(options["model"]) if isinstance(options["model"], Path) else options["model"]
        is_name = not isinstance(wanted, bool) and isinstance(wanted, str | Integral)
        for number, start in enumerate(self.starts):
            if is_name and wanted in (start.name, number):
                return start
        names = ", ".join(s.name for s in self.starts)
        raise OptionError(f"expected a model among {names}, found {wanted!r}")
