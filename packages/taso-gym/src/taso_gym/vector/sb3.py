"""A Gymnasium vector environment as Stable-Baselines3's; imported only where that is installed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from taso_gym.errors import OptionError


class SB3VecEnv(VecEnv):
    """See `taso_gym.vector.to_sb3`."""

    def __init__(self, env: VectorEnv) -> None:
        """Wrap a vector environment with SAME_STEP autoreset.

        Raises:
            OptionError: it resets otherwise.
        """
        if env.metadata.get("autoreset_mode") is not AutoresetMode.SAME_STEP:
            raise OptionError('expected a vector environment made with autoreset_mode="SameStep", found another')
        self.env: Any = env
        self._actions: NDArray[Any] = np.empty(0)
        super().__init__(env.num_envs, self.env.single_observation_space, self.env.single_action_space)  # pyright: ignore[reportUnknownMemberType]

    def reset(self) -> VecEnvObs:
        """Begin an episode in each; seeds and options that were set are used once.

        Raises:
            OptionError: options that aren't the same for all.
        """
        if any(options != self._options[0] for options in self._options):
            raise OptionError("expected the same options for all environments, found different ones")
        seeds = None if all(s is None for s in self._seeds) else list(self._seeds)
        observation, infos = self.env.reset(seed=seeds, options=self._options[0] or None)
        self.reset_infos = self._split(infos)
        self._reset_seeds()
        self._reset_options()
        return observation

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the actions."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:  # pyright: ignore[reportUnknownParameterType]
        """Make the moves."""
        observation, rewards, terminated, truncated, infos = self.env.step(self._actions)
        done = terminated | truncated
        split = self._split(infos)
        for i in map(int, np.flatnonzero(done)):
            split[i] = {**_own(infos["final_info"], i), **_own(_of_vector(infos), i)}
            split[i]["terminal_observation"] = infos["final_obs"][i]
            split[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
        return observation, rewards.astype(np.float32), done, split

    def close(self) -> None:
        """Close the vector environment."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Read an attribute of each."""
        return self._pick(self.env.unwrapped.get_attr(attr_name), indices)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of each.

        Raises:
            OptionError: some of those that are in other processes.
        """
        chosen = self._some(indices)
        if chosen is None:
            self.env.unwrapped.set_attr(attr_name, [value] * self.num_envs)
            return
        for env in chosen:
            env.set_wrapper_attr(attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of each.

        Raises:
            OptionError: some of those that are in other processes.
        """
        chosen = self._some(indices)
        if chosen is None:
            return self._pick(self.env.unwrapped.call(method_name, *method_args, **method_kwargs), indices)
        return [env.get_wrapper_attr(method_name)(*method_args, **method_kwargs) for env in chosen]

    def env_is_wrapped(self, wrapper_class: Any, indices: VecEnvIndices = None) -> list[bool]:
        """Return which have a wrapper of the class; none where they are in other processes."""
        envs: Any = getattr(self.env.unwrapped, "envs", [None] * self.num_envs)
        return self._pick([is_wrapped(env, wrapper_class) for env in envs], indices)

    def get_images(self) -> Sequence[NDArray[Any] | None]:
        """Return the picture of each."""
        return list(self.env.render() or [None] * self.num_envs)

    def _some(self, indices: VecEnvIndices) -> list[Any] | None:
        """Return the chosen environments; None for all of them, which the vector reaches together.

        Raises:
            OptionError: some of those that are in other processes, which it can't reach one by one.
        """
        if indices is None:
            return None
        chosen, envs = list(self._get_indices(indices)), getattr(self.env.unwrapped, "envs", None)
        if envs is not None:
            return [envs[i] for i in chosen]
        if set(chosen) != set(range(self.num_envs)):
            raise OptionError(f"expected all {self.num_envs} environments of other processes, found indices {chosen}")
        return None

    def _pick(self, values: Sequence[Any], indices: VecEnvIndices) -> list[Any]:
        chosen: Iterable[int] = self._get_indices(indices)
        return [values[i] for i in chosen]

    def _split(self, infos: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the infos of each; what is about the end of an episode is left out."""
        own = {k: v for k, v in infos.items() if not k.startswith(("final_", "_final_"))}
        return [_own(own, i) for i in range(self.num_envs)]


def _of_vector(infos: dict[str, Any]) -> dict[str, Any]:
    """Return what a wrapper of the vector says of an episode that ended: `RecordEpisodeStatistics`."""
    return {key: infos[key] for key in ("episode", "_episode") if key in infos}


def _own(infos: dict[str, Any], i: int) -> dict[str, Any]:
    """Return what one environment said: what its mask (``_key``) leaves out, it didn't say."""
    said = [k for k in infos if not k.startswith("_") and (f"_{k}" not in infos or infos[f"_{k}"][i])]
    return {k: _own(infos[k], i) if isinstance(infos[k], dict) else infos[k][i] for k in said}
