"""The dream: an environment, and a batch of them, played inside a world model; the real one is never asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from torch import Tensor

from taso_agents.checkpoint import part_of
from taso_agents.dreams.imagined import imagine
from taso_agents.dreams.latent import latent_observation, latent_space
from taso_agents.dreams.seeds import one_seed
from taso_agents.dreams.settings import check_temperature
from taso_agents.dreams.starts import Starts
from taso_agents.environment.real_env import Arrays
from taso_agents.world_models.mdn_rnn import WorldModel, load_world_model
from taso_gym.checks import check_limits, check_positive
from taso_gym.errors import CheckpointError, OptionError


class DreamSettings(NamedTuple):
    """How dreams go.

    Attributes:
        temperature: τ of the mixture: higher is less certain, so that a policy can't exploit the model's errors.
        max_steps: a real episode's limit.
        branch: most steps of a dream, counted from where it begins; None for no limit but ``max_steps``.
        invalid_penalty: as in the real environment.
    """

    temperature: float = 1.0
    max_steps: int = 100
    branch: int | None = None
    invalid_penalty: float = -1.0


class DreamVectorEnv(VectorEnv[Arrays, NDArray[np.int64], NDArray[Any]]):
    """A batch of dreams in one forward pass; episodes that end begin anew in the same step.

    Args:
        model: the world model.
        starts: where dreams begin, drawn uniformly.
        num_envs: how many at once.
        settings: how they go.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self, model: WorldModel, starts: Starts, num_envs: int = 64, settings: DreamSettings | None = None
    ) -> None:
        self.model, self.starts, self.num_envs = model, starts, num_envs
        self.settings = settings or DreamSettings()
        self.single_observation_space = latent_space(model)
        self.single_action_space = spaces.MultiDiscrete([model.xfers + 1, model.locations])
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._generator = torch.Generator()
        self._now = starts.take(torch.zeros(num_envs, dtype=torch.long))
        self._age = torch.zeros(num_envs, dtype=torch.long)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Arrays, dict[str, Any]]:
        """Begin all dreams anew, by a seed or one for each; there are no options.

        Raises:
            OptionError: another number of seeds, some that aren't whole numbers, or options.
        """
        _expect_no_options(options)
        super().reset(seed=one_seed(seed, self.num_envs))
        self._generator.manual_seed(int(self.np_random.integers(2**62)))
        self._begin(torch.ones(self.num_envs, dtype=torch.bool))
        return self._observe(), {}

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Arrays, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Take a step in every dream; illegal actions change nothing and are penalised."""
        chosen = torch.as_tensor(np.asarray(actions)).long().view(self.num_envs, 2)
        stop = chosen[:, 0] == self.model.xfers
        legal = stop | self._offered(chosen)
        reward, ended = self._advance(chosen, legal & ~stop)
        terminated = (stop & legal) | ended
        self._age += 1
        now, limit = self._now.step + self._age, self.settings.branch
        truncated = (now >= self.settings.max_steps) | (self._age >= (limit or self.settings.max_steps))
        truncated &= ~terminated
        reward = reward + (~legal).float() * self.settings.invalid_penalty
        info: dict[str, Any] = {"invalid_action": (~legal).numpy()}
        done = terminated | truncated
        if done.any():
            info |= self._final(done, info)
            self._begin(done)
        return self._observe(), reward.numpy().astype(np.float64), terminated.numpy(), truncated.numpy(), info

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute once for each dream; there is one of all."""
        return (getattr(self, name),) * self.num_envs

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method, or read an attribute, which is one of all dreams."""
        value = getattr(self, name)
        return (value(*args, **kwargs) if callable(value) else value,) * self.num_envs

    def _final(self, done: Tensor, info: dict[str, Any]) -> dict[str, Any]:
        """Return the last observations and infos of dreams that end, as Gymnasium's vectors do."""
        shown, last = self._observe(), np.full(self.num_envs, None, object)
        for i in done.nonzero()[:, 0].tolist():
            last[i] = {key: array[i] for key, array in shown.items()}
        final = {"invalid_action": info["invalid_action"].copy(), "_invalid_action": done.numpy()}
        return {"final_obs": last, "_final_obs": done.numpy(), "final_info": final, "_final_info": done.numpy()}

    def _offered(self, chosen: Tensor) -> Tensor:
        """Whether a location of a substitution is legal."""
        xfer = chosen[:, 0].clamp(0, self.model.xfers - 1)
        within = (chosen[:, 0] >= 0) & (chosen[:, 0] < self.model.xfers) & (chosen[:, 1] >= 0)
        return within & (chosen[:, 1] < self.model.shown(self._now.counts).gather(1, xfer[:, None])[:, 0])

    def _advance(self, chosen: Tensor, moves: Tensor) -> tuple[Tensor, Tensor]:
        """Imagine a step where there is a move; return rewards and ends (B,)."""
        reward, ended = torch.zeros(self.num_envs), torch.zeros(self.num_envs, dtype=torch.bool)
        rows = moves.nonzero()[:, 0]
        if len(rows):
            now = self._now.take(rows)
            step = imagine(
                self.model,
                now.latent,
                now.counts,
                (now.hidden, now.cell),
                chosen[rows],
                self.settings.temperature,
                self._generator,
            )
            for part, values in zip(self._now, (step.latent, step.counts, *step.memory), strict=False):
                part[rows] = values
            reward[rows], ended[rows] = step.reward, step.ended
        return reward, ended

    def _begin(self, which: Tensor) -> None:
        rows = which.nonzero()[:, 0]
        drawn = torch.randint(len(self.starts.step), (len(rows),), generator=self._generator)
        for part, values in zip(self._now, self.starts.take(drawn), strict=True):
            part[rows] = values
        self._age[rows] = 0

    def _observe(self) -> Arrays:
        now = self._now
        return latent_observation(self.model, now.latent, (now.hidden, now.cell), now.counts)


def _expect_no_options(options: dict[str, Any] | None) -> None:
    if options:
        raise OptionError(f"expected no options for a dream, found {', '.join(map(repr, options))}")


class DreamEnv(gym.Env[Arrays, NDArray[np.int64]]):
    """One dream: a batch of one."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self, model: WorldModel, starts: Starts, settings: DreamSettings | None = None) -> None:
        self._dreams = DreamVectorEnv(model, starts, 1, settings)
        self.observation_space: spaces.Space[Any] = self._dreams.single_observation_space
        self.action_space: spaces.Space[Any] = self._dreams.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Arrays, dict[str, Any]]:
        """Begin a dream; there are no options."""
        _expect_no_options(options)
        super().reset(seed=seed)
        observation, _ = self._dreams.reset(seed=int(self.np_random.integers(2**31)))
        return {key: array[0] for key, array in observation.items()}, {}

    def step(self, action: NDArray[np.int64]) -> tuple[Arrays, float, bool, bool, dict[str, Any]]:
        """Take a step; an illegal action changes nothing and is penalised."""
        observation, reward, terminated, truncated, info = self._dreams.step(np.asarray(action)[None])
        shown = info["final_obs"][0] if "final_obs" in info else {key: array[0] for key, array in observation.items()}
        invalid = {"invalid_action": np.bool_(info["invalid_action"][0])}
        return shown, float(reward[0]), bool(terminated[0]), bool(truncated[0]), invalid


def play_dreams(act: Callable[[Arrays], NDArray[np.int64]], dreams: DreamVectorEnv, seed: int) -> NDArray[np.float64]:
    """Play the first episode of every dream; return their sums of rewards (B,) in %.

    Args:
        act: chooses actions (B, 2) for a batch of observations.
        dreams: where.
        seed: of the dreams and of torch's random stream.
    """
    torch.manual_seed(seed)
    observation, _ = dreams.reset(seed=seed)
    returns, over = np.zeros(dreams.num_envs), np.zeros(dreams.num_envs, np.bool_)
    while not over.all():
        observation, reward, terminated, truncated, _ = dreams.step(act(observation))
        returns += reward * ~over
        over |= terminated | truncated
    return returns


def load_dreams(
    world_model: str,
    num_envs: int = 64,
    network: str | None = None,
    temperature: float = 1.0,
    branch: int | None = None,
    max_episode_steps: int | None = None,
) -> DreamVectorEnv:
    """Make dreams from the file of a world model: entry point of ``gymnasium.make_vec("TasoDream-v0", …)``.

    Args:
        world_model: file that `taso_agents.dreams.train.DreamResult.save` wrote.
        num_envs: how many at once.
        network: what the world model must be of, if anything.
        temperature: τ.
        branch: most steps of a dream.
        max_episode_steps: in place of the real environment's limit.

    Raises:
        CheckpointError: the file is no world model, one of another network, or doesn't say where dreams begin.
        OptionError: an argument with a value outside its choices.
    """
    check_positive(num_envs=num_envs)
    check_limits(branch=branch, max_episode_steps=max_episode_steps)
    model, data = load_world_model(world_model)
    taso = data["taso"]
    if network and taso["model"] != network:
        raise CheckpointError(f"{world_model}: expected a world model of {network}, found one of {taso['model']}")
    check_temperature(temperature)
    penalty = float(taso["arguments"].get("invalid_penalty", DreamSettings().invalid_penalty))
    how = DreamSettings(temperature, max_episode_steps or taso["sizes"]["max_steps"], branch, penalty)
    return DreamVectorEnv(model, Starts(*part_of(data, "starts", world_model)), num_envs, how)


def load_dream(world_model: str, **arguments: Any) -> DreamEnv:
    """Make one dream: entry point of ``gymnasium.make("TasoDream-v0", world_model=PATH)``; see `load_dreams`."""
    dreams = load_dreams(world_model, 1, **arguments)
    return DreamEnv(dreams.model, dreams.starts, dreams.settings)
