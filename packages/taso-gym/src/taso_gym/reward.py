"""Rewards by name: what a step is worth."""

from __future__ import annotations

import inspect
from copy import copy
from importlib import import_module
from typing import Any, Protocol, Self, runtime_checkable

from taso_gym.arguments import check_kinds
from taso_gym.checks import check_choices, check_finite, check_positive, check_threads
from taso_gym.cost.objective import Objective, quantities
from taso_gym.cost.packages import PROVIDERS, require_provider
from taso_gym.errors import OptionError
from taso_gym.rules.state import RewriteState


@runtime_checkable
class Reward(Protocol):
    """What a step from a state to the next is worth.

    Every episode, and every fork of one, has a copy of its own: a deep one but for the states, which are immutable.
    """

    @property
    def deterministic(self) -> bool:
        """Whether it is a function of the states, so that the same actions earn the same again."""
        ...

    def reset(self, state: RewriteState) -> None:
        """Begin an episode at its start state."""
        ...

    def step(self, previous: RewriteState, state: RewriteState, end: bool) -> float:
        """Return the reward of a step; both states are the same where nothing was rewritten.

        Args:
            previous: before the step.
            state: after the step.
            end: the episode ends with this step.
        """
        ...


class _Shallow:
    """Base of rewards that replace what they hold and never change it: a shallow copy does, and a fork is fast."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return copy(self)


class Runtime(_Shallow):
    """100 · (RT[t-1] - RT[t]) / RT[0], as in X-RLflow: sums up to the total improvement in %."""

    deterministic = True

    def __init__(self) -> None:
        self._start_ps = 0

    def reset(self, state: RewriteState) -> None:
        """Note RT[0]."""
        self._start_ps = state.cost.time_ps

    def step(self, previous: RewriteState, state: RewriteState, end: bool) -> float:  # noqa: ARG002
        """Return the part of the start's run time that this step saved, in %."""
        return 100 * (previous.cost.time_ps - state.cost.time_ps) / max(self._start_ps, 1)


class RuntimeMemory(_Shallow):
    """α · ΔRT + β · ΔMem, both in % of the start: reward R_b of the dissertation, with its best α and β.

    As there, memory stands for memory accesses: bytes read and written.
    """

    deterministic = True

    def __init__(self, alpha: float = 0.8, beta: float = 0.2) -> None:
        """Weigh run time by α and memory accesses by β.

        Raises:
            OptionError: one of them isn't a finite number.
        """
        check_finite(alpha=alpha, beta=beta)
        self.alpha, self.beta = float(alpha), float(beta)
        self._start_ps, self._start_bytes = 1, 1

    def reset(self, state: RewriteState) -> None:
        """Note the start's run time and memory accesses."""
        self._start_ps, self._start_bytes = max(state.cost.time_ps, 1), max(state.cost.bytes_moved, 1)

    def step(self, previous: RewriteState, state: RewriteState, end: bool) -> float:  # noqa: ARG002
        """Return the weighted parts of run time and memory accesses that this step saved, in %."""
        saved = previous.cost - state.cost
        time, memory = saved.time_ps / self._start_ps, saved.bytes_moved / self._start_bytes
        return 100 * (self.alpha * time + self.beta * memory)


class Terminal(Runtime):
    """The total improvement of run time in % at the end, and nothing before."""

    def step(self, previous: RewriteState, state: RewriteState, end: bool) -> float:  # noqa: ARG002
        """Return the total improvement if this is the last step."""
        return 100 * (self._start_ps - state.cost.time_ps) / max(self._start_ps, 1) if end else 0.0


class Lowered(_Shallow):
    """100 · (V[t-1] - V[t]) / V[0] of an objective V of `taso_gym.cost.objective`, such as ``time+0.2*size``.

    0 where V[0] is 0: there is nothing to lower, and nothing to relate to.
    """

    deterministic = True

    def __init__(self, objective: str | Objective = "time+memory") -> None:
        """Read the objective.

        Raises:
            OptionError: it names something else than the quantities.
        """
        check_kinds(objective=objective)
        self._objective = Objective.parse(objective) if isinstance(objective, str) else objective
        self._at_start: dict[str, int] = {}
        self._start, self._known = 1, (0, 0)

    def reset(self, state: RewriteState) -> None:
        """Note the start's quantities."""
        self._at_start = self._quantities(state)
        value = self._objective.value(self._at_start, self._at_start)
        self._start, self._known = value, (state.hash, value)

    def step(self, previous: RewriteState, state: RewriteState, end: bool) -> float:  # noqa: ARG002
        """Return the part of the start's value that this step saved, in %."""
        before = self._known[1]
        if state.hash != self._known[0]:
            self._known = state.hash, self._objective.value(self._quantities(state), self._at_start)
        return 100 * (before - self._known[1]) / self._start if self._start else 0.0

    def _quantities(self, state: RewriteState) -> dict[str, int]:
        return quantities(state.graph, state.cost, state.cost_model, self._objective.needs)


class Measured(_Shallow):
    """100 · (T[k] - T[n]) / T[0] with the latency T in onnxruntime, measured every few steps and at the end.

    k is the step of the last measurement before step n; steps between earn 0. Start and present graph are measured side
    by side in fresh processes, so a measurement takes seconds; an unchanged graph isn't measured again.
    """

    deterministic = False

    def __init__(self, every: int = 5, threads: int = 1, provider: str = "cpu", rounds: int = 15) -> None:
        """Measure after every ``every`` steps; the rest as in `taso_gym.cost.measure.measure`.

        Raises:
            OptionError: a number isn't a whole one from 1 on, or an unknown provider.
            MissingPackageError: onnxruntime isn't installed.
            CostError: it comes without the provider.
        """
        check_positive(every=every, rounds=rounds)
        check_threads(threads)
        check_choices("provider", [provider], tuple(PROVIDERS))
        require_provider(provider)
        self._every = int(every)
        self._settings: dict[str, Any] = {"threads": int(threads), "provider": provider, "rounds": int(rounds)}
        self._start: RewriteState | None = None
        self._steps, self._hash, self._relative = 0, 0, 1.0

    def reset(self, state: RewriteState) -> None:
        """Begin with the start graph, whose latency is the unit."""
        self._start, self._hash = state, state.hash
        self._steps, self._relative = 0, 1.0

    def step(self, previous: RewriteState, state: RewriteState, end: bool) -> float:  # noqa: ARG002
        """Return what was saved since the last measurement, in % of the start's latency, if it is time to measure."""
        from taso_gym.cost.dims import bind_dims
        from taso_gym.cost.measure import measure

        assert self._start is not None
        self._steps += 1
        if (self._steps % self._every and not end) or state.hash == self._hash:
            return 0.0
        dims = bind_dims(self._start.graph, getattr(self._start.cost_model, "dims", None))
        found = measure({"start": self._start.graph, "now": state.graph}, dims=dims, sessions=1, **self._settings)
        before, self._relative, self._hash = self._relative, found.time_ms("now") / found.time_ms("start"), state.hash
        return 100 * (before - self._relative)


REWARDS = {
    "runtime": "taso_gym.reward:Runtime",
    "runtime_memory": "taso_gym.reward:RuntimeMemory",
    "terminal": "taso_gym.reward:Terminal",
    "objective": "taso_gym.reward:Lowered",
    "measured": "taso_gym.reward:Measured",
}
"""Name -> import string of a class that is called with the reward's parameters."""


def make_reward(reward: str | Reward, **parameters: Any) -> Reward:
    """Return a reward by name, or the given one.

    Raises:
        OptionError: no such reward, or parameters that it doesn't take.
    """
    if isinstance(reward, Reward) and not isinstance(reward, type):
        if parameters:
            raise OptionError(f"expected no parameters for a reward that is given, found {', '.join(parameters)}")
        return reward
    if not isinstance(reward, str) or reward not in REWARDS:
        raise OptionError(f"expected a Reward, or the name of one among {', '.join(REWARDS)}, found {reward!r}")
    module, _, name = REWARDS[reward].partition(":")
    factory = getattr(import_module(module), name)
    choices = list(inspect.signature(factory).parameters)
    for parameter in parameters:
        if parameter not in choices:
            known = f"a parameter of {reward} among {', '.join(choices)}" if choices else f"no parameters for {reward}"
            raise OptionError(f"expected {known}, found {parameter!r}")
    return factory(**parameters)
