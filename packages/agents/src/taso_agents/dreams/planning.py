"""Planning by beam search, over branches that are dreamt or over true ones; one planner, two simulators.

A plan is made from a real state, part of it is carried out, and the next is made from where that led (model-predictive
control). With the true simulator every branch costs a true step; with a world model none does, but its dreams go wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from heapq import nlargest
from itertools import islice
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taso_agents.data.collect import Actor
from taso_agents.dreams.imagined import imagine
from taso_agents.dreams.latent import Follower
from taso_agents.environment.real_env import Action, Arrays, state_of, with_ids
from taso_agents.world_models.mdn_rnn import WorldModel
from taso_gym.rules.state import RewriteState


class Outcome(NamedTuple):
    """What a step leads to.

    Attributes:
        state: of the simulator that was asked.
        reward: in % of the start graph's cost.
        key: equal for states that needn't both be gone on from.
    """

    state: Any
    reward: float
    key: Hashable


class Simulator(Protocol):
    """What a plan is made with.

    Attributes:
        left: steps that may still be asked for.
    """

    left: float

    def actions(self, state: Any) -> list[Action]:
        """Return the legal actions but NO-OP."""
        ...

    def step(self, states: Sequence[Any], actions: Sequence[Action]) -> list[Outcome]:
        """Take one step from each state."""
        ...


class TrueSimulator:
    """Applies rewrites; each is a true step.

    Args:
        start_ps: cost of the start graph, which rewards are in % of.
        left: steps that may be taken.
        on_step: called with each new state.
        most: actions that are legal in a state; the environment's ``max_matches``.
    """

    def __init__(
        self,
        start_ps: int,
        left: float = math.inf,
        on_step: Callable[[RewriteState], None] | None = None,
        most: int | None = None,
    ) -> None:
        self.start_ps, self.left, self._most = start_ps, left, most
        self._on_step = on_step or (lambda _state: None)

    def actions(self, state: RewriteState) -> list[Action]:
        """Return the legal (substitution, location)."""
        found = ((xfer, i) for xfer, matches in enumerate(state.matches) for i in range(len(matches)))
        return list(islice(found, self._most))

    def step(self, states: Sequence[RewriteState], actions: Sequence[Action]) -> list[Outcome]:
        """Apply one match to each state."""
        self.left -= len(states)
        return [self._apply(state, action) for state, action in zip(states, actions, strict=True)]

    def _apply(self, state: RewriteState, action: Action) -> Outcome:
        child = state.apply(state.matches[action[0]][action[1]])
        self._on_step(child)
        saved = 100 * (state.cost.time_ps - child.cost.time_ps) / max(self.start_ps, 1)
        return Outcome(child, saved, child.hash)


class Dreamt(NamedTuple):
    """A state in a world model: latent (1, Z), numbers of locations (1, N), hidden and cell state (1, H)."""

    latent: Tensor
    counts: Tensor
    hidden: Tensor
    cell: Tensor


class LearnedSimulator:
    """Dreams steps, all that are asked for at once in one batch; τ is 0, for a plan wants the most probable.

    Args:
        model: the world model.
    """

    def __init__(self, model: WorldModel) -> None:
        self.model, self.left = model, math.inf

    def actions(self, state: Dreamt) -> list[Action]:
        """Return what the model thinks is legal."""
        counts = self.model.shown(state.counts)[0].tolist()
        return [(xfer, i) for xfer, count in enumerate(counts) for i in range(count)]

    def step(self, states: Sequence[Dreamt], actions: Sequence[Action]) -> list[Outcome]:
        """Dream a batch of steps; an end has no legal actions."""
        latent, counts, hidden, cell = (torch.cat(parts) for parts in zip(*states, strict=True))
        found = imagine(self.model, latent, counts, (hidden, cell), torch.tensor(actions), 0.0)
        parts = (part.split(1) for part in (found.latent, found.counts, *found.memory))
        children = [Dreamt(*rows) for rows in zip(*parts, strict=True)]
        keys = [row.tobytes() for row in found.counts.numpy()]
        return [Outcome(*row) for row in zip(children, found.reward.tolist(), keys, strict=True)]


class BeamSettings(NamedTuple):
    """How far a plan looks.

    Attributes:
        width: branches that go on at each depth.
        breadth: actions tried from each, drawn without replacement.
        depth: steps of the longest branch.
        commit: how many steps of a plan are carried out before the next is made.
    """

    width: int = 8
    breadth: int = 32
    depth: int = 8
    commit: int = 4


class Plan(NamedTuple):
    """The branch that saves most; no actions where none saves anything."""

    actions: list[Action]
    gain: float


class _Branch(NamedTuple):
    state: Any
    gain: float
    actions: list[Action]


def plan(simulator: Simulator, start: Any, settings: BeamSettings, rng: np.random.Generator) -> Plan:
    """Search for the branch from a state with the largest sum of rewards."""
    beam, best, seen = [_Branch(start, 0.0, [])], Plan([], 0.0), set[Hashable]()
    for _ in range(settings.depth):
        pairs = [(b, a) for b in beam for a in _drawn(simulator.actions(b.state), settings.breadth, rng)]
        pairs = pairs[: int(min(simulator.left, len(pairs)))]
        if not pairs:
            break
        outcomes = simulator.step([b.state for b, _ in pairs], [a for _, a in pairs])
        children: dict[Hashable, _Branch] = {}
        for (branch, action), outcome in zip(pairs, outcomes, strict=True):
            gain = branch.gain + outcome.reward
            if outcome.key not in seen and (outcome.key not in children or children[outcome.key].gain < gain):
                children[outcome.key] = _Branch(outcome.state, gain, [*branch.actions, action])
        seen |= children.keys()
        beam = nlargest(settings.width, children.values(), key=lambda branch: branch.gain)
        if beam and beam[0].gain > best.gain:
            best = Plan(beam[0].actions, beam[0].gain)
    return best


def _drawn(actions: list[Action], count: int, rng: np.random.Generator) -> list[Action]:
    if len(actions) <= count:
        return actions
    return [actions[i] for i in rng.choice(len(actions), count, replace=False)]


class Planner:
    """An actor (see `taso_agents.data.collect`) that carries out plans, and takes NO-OP where none saves anything.

    Args:
        simulator: what plans are made with.
        settings: how far they look.
        model: the world model that follows the episode, where plans are dreamt.
    """

    def __init__(self, simulator: Simulator, settings: BeamSettings, model: WorldModel | None = None) -> None:
        self.simulator, self.settings = simulator, settings
        self._follower = Follower(model) if model else None
        self._queue: list[Action] = []
        self._last = np.zeros(2, np.int64)

    def __call__(self, env: gym.Env, observation: Arrays, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return the next action of the plan, or of a new one where it is used up or turns out to be illegal."""
        game: Any = env.unwrapped
        state = self._present(env, observation, begins=game.episode.steps == 0)
        legal = self._queue and self._queue[0][1] < observation["location_counts"][self._queue[0][0]]
        if not legal:
            left = min(self.settings.depth, game.max_steps - game.episode.steps)
            found = plan(self.simulator, state, self.settings._replace(depth=left), rng)
            self._queue = found.actions[: self.settings.commit]
        self._last = np.array(self._queue.pop(0) if self._queue else (game.layout.xfers, 0))
        return self._last

    def _present(self, env: gym.Env, observation: Arrays, *, begins: bool) -> Any:
        if begins:
            self._queue = []
        if not self._follower:
            return state_of(env)
        if begins:
            self._follower.begin(with_ids(env, observation))
        else:
            self._follower.follow(self._last, with_ids(env, observation))
        latent, counts, memory = self._follower.now
        return Dreamt(latent, counts, *memory)


def true_planner(simulator: TrueSimulator, settings: BeamSettings) -> Actor:
    """Return an actor that plans with the true simulator."""
    return Planner(simulator, settings)


def dreaming_planner(model: WorldModel, settings: BeamSettings) -> Actor:
    """Return an actor that plans in a world model."""
    return Planner(LearnedSimulator(model), settings, model)
