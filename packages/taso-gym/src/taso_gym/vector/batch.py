"""A batch of environments that share models, rules and feature tables, and write into one set of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from taso_gym.checks import check_choices, check_positive, items_of
from taso_gym.env import TasoGraphEnv
from taso_gym.errors import OptionError
from taso_gym.observation import Observation
from taso_gym.registration import V0

Array = NDArray[Any]
VectorStep = tuple[Observation, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]

STEPS = V0["max_steps"]
"""What the ids hand over as ``max_steps`` where nobody chose a number."""


class TasoGraphVectorEnv(VectorEnv[Observation, Array, Array]):
    """`gymnasium.make_vec` of a TasoGraph id: the same trajectories as `SyncVectorEnv`, without copies in between.

    Every observation array has the batch as its first axis and is fresh in each step.
    """

    metadata: dict[str, Any] = {**TasoGraphEnv.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        **arguments: Any,
    ) -> None:
        """Make ``num_envs`` environments with the same arguments.

        Args:
            num_envs: how many.
            autoreset_mode: NEXT_STEP: the step after an episode's last begins the next one, whatever its action is;
                SAME_STEP: the last step returns the next one's first observation, its own is ``info["final_obs"]``.
            max_episode_steps: Gymnasium's name for ``max_steps``, in place of that of an id.
            render_mode: of each of them.
            arguments: of `TasoGraphEnv`.

        Raises:
            OptionError: no environment, another mode, two limits of steps, or a wrong argument.
        """
        modes = {mode.value: mode for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)}
        mode = autoreset_mode.value if isinstance(autoreset_mode, AutoresetMode) else autoreset_mode
        check_choices("autoreset_mode", [mode], tuple(modes))
        check_positive(num_envs=num_envs)
        num_envs = int(num_envs)
        if max_episode_steps is not None:
            if (limit := arguments.get("max_steps", STEPS)) not in (STEPS, max_episode_steps):
                raise OptionError(f"expected max_steps or max_episode_steps, found both: {limit}, {max_episode_steps}")
            arguments["max_steps"] = max_episode_steps
        self.num_envs, self.render_mode = num_envs, render_mode
        self._same_step = modes[mode] is AutoresetMode.SAME_STEP
        self.metadata = {**self.metadata, "autoreset_mode": modes[mode]}
        first = TasoGraphEnv(render_mode=render_mode, **arguments)
        self.envs = [first, *(first.clone() for _ in range(num_envs - 1))]
        observations, actions = first.observation_space, first.action_space
        self.single_observation_space, self.single_action_space = observations, actions
        self.observation_space = batch_space(observations, num_envs)
        self.action_space = batch_space(actions, num_envs)
        self._done: Array = np.zeros(num_envs, np.bool_)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode in each; an integer seed is that of the first, the next has the next number.

        Raises:
            OptionError: another number of seeds, or an unknown option or model.
        """
        if seed is None or isinstance(seed, int | np.integer):
            seeds = [None if seed is None else int(seed) + i for i in range(self.num_envs)]
        else:
            seeds = self._one_each("seeds", seed)
        infos: dict[str, Any] = {}
        for i, (env, own) in enumerate(zip(self.envs, seeds, strict=True)):
            infos = self._add_info(infos, env.begin(seed=own, options=options), i)
        self._done[:] = False
        return self._observe(), infos

    def step(self, actions: Array) -> VectorStep:
        """Make a move in each.

        Raises:
            OptionError: another number of actions.
        """
        rewards, infos = np.zeros(self.num_envs), dict[str, Any]()
        ended = np.zeros((2, self.num_envs), np.bool_)
        for i, (env, action) in enumerate(zip(self.envs, self._one_each("actions", actions), strict=True)):
            if self._done[i] and not self._same_step:
                infos = self._add_info(infos, env.begin(), i)
                continue
            rewards[i], ended[0, i], ended[1, i], info = env.play(action)
            if self._same_step and ended[:, i].any():
                infos = self._add_info(infos, {"final_obs": env.observe(), "final_info": info}, i)
                info = env.begin()
            infos = self._add_info(infos, info, i)
        self._done = np.logical_or(ended[0], ended[1])
        return self._observe(), rewards, ended[0], ended[1], infos

    @property
    def np_random(self) -> tuple[np.random.Generator, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The random stream of each, as of `SyncVectorEnv`."""
        return self.get_attr("np_random")

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """What each began with, as of `SyncVectorEnv`."""
        return self.get_attr("np_random_seed")

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the masks of all, (num_envs, N + 1 + L)."""
        return np.stack([env.action_masks() for env in self.envs])

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each, or read an attribute."""
        found = (getattr(env, name) for env in self.envs)
        return tuple(value(*args, **kwargs) if callable(value) else value for value in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Read an attribute of each."""
        return tuple(getattr(env, name) for env in self.envs)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of each: to its own value of a list or tuple, or to the one value.

        Raises:
            OptionError: a list or tuple of another length.
        """
        each = cast("Sequence[Any]", values) if isinstance(values, list | tuple) else [values] * self.num_envs
        for env, value in zip(self.envs, self._one_each(f"values of {name}", each), strict=True):
            setattr(env, name, value)

    def render(self) -> tuple[Any, ...]:
        """Return the picture of each."""
        return tuple(env.render() for env in self.envs)

    def _one_each(self, what: str, values: Any) -> tuple[Any, ...]:
        return items_of(values, object, f"{self.num_envs} {what}, one for each environment", self.num_envs)

    def _observe(self) -> Observation:
        batch = self.envs[0].layout.empty(self.num_envs)
        for i, env in enumerate(self.envs):
            env.observe({key: array[i] for key, array in batch.items()})
        return batch
