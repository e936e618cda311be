"""Episodes as a Minari dataset, for offline learners: whole observations with candidates, cost changes and masks."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from warnings import catch_warnings, simplefilter

import gymnasium as gym
import numpy as np

from taso_agents.data.episodes import Dataset, EpisodeRecord
from taso_agents.environment.real_env import make_env
from taso_gym.errors import CheckpointError, MissingPackageError, OptionError


def write_minari(dataset: Dataset, network: str, dataset_id: str, **arguments: Any) -> None:
    """Play the recorded actions once more and keep what the environment shows: Minari stores it by this name.

    Args:
        dataset: episodes.
        network: id of the environment or ONNX file that they were played in.
        dataset_id: such as ``squeezenet/random-v0``.
        **arguments: of the environment.

    Raises:
        MissingPackageError: Minari isn't installed.
        OptionError: it takes no data set of this name, or has one.
        CheckpointError: the environment answers otherwise than it did, so the episodes are of another one.
    """
    minari = installed_minari()
    buffer = import_module("minari.data_collector").EpisodeBuffer
    env = make_env(network, **{"extra_views": ("cost_changes",), **arguments})
    buffers = [buffer(id=i, **_replayed(env, episode)) for i, episode in enumerate(dataset.episodes)]
    with catch_warnings():
        simplefilter("ignore", UserWarning)  # that nobody is named as the author
        try:
            minari.create_dataset_from_buffers(
                dataset_id,
                buffers,
                observation_space=env.observation_space,
                action_space=env.action_space,
                algorithm_name="taso-agents collect",
                description=f"Episodes of {network}: graphs, candidates with their cost changes, masks.",
            )
        except ValueError as error:
            raise OptionError(
                f"expected the name of a new data set such as a/b-v0, found {dataset_id!r}: {error}"
            ) from error


def installed_minari() -> Any:
    """Return the package; to be called before work that its absence would waste.

    Raises:
        MissingPackageError: it isn't installed.
    """
    try:
        return import_module("minari")
    except ImportError as error:
        raise MissingPackageError("expected Minari, found none: pip install 'taso-agents[minari]'") from error


def _replayed(env: gym.Env, episode: EpisodeRecord) -> dict[str, Any]:
    observation, _ = env.reset()
    seen, rewards, ends = [observation], [], []
    for action, expected in zip(episode.actions, episode.rewards, strict=True):
        observation, reward, terminated, truncated, _ = env.step(np.array(action))
        if abs(float(reward) - expected) > 1e-4 * max(1.0, abs(expected)):
            raise CheckpointError(f"expected a reward of {expected:.6f} after {action}, found {float(reward):.6f}")
        seen.append(observation)
        rewards.append(float(reward))
        ends.append((terminated, truncated))
    return {
        "observations": {key: np.stack([o[key] for o in seen]) for key in observation},
        "actions": np.array(episode.actions, np.int64),
        "rewards": rewards,
        "terminations": [bool(terminated) for terminated, _ in ends],
        "truncations": [bool(truncated) for _, truncated in ends],
    }
