"""Many environments stepped in one process, for Gymnasium and for Stable-Baselines3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taso_gym.errors import MissingPackageError
from taso_gym.vector.batch import TasoGraphVectorEnv

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv
    from stable_baselines3.common.vec_env import VecEnv

__all__ = ["TasoGraphVectorEnv", "to_sb3"]


def to_sb3(env: VectorEnv) -> VecEnv:
    """Return a Gymnasium vector environment as Stable-Baselines3's kind.

    Args:
        env: with SAME_STEP autoreset, as Stable-Baselines3 expects it.

    Raises:
        OptionError: it resets otherwise.
        MissingPackageError: Stable-Baselines3 isn't installed.
    """
    try:
        from taso_gym.vector.sb3 import SB3VecEnv
    except ModuleNotFoundError as error:
        raise MissingPackageError(f"to_sb3 needs {error.name}: pip install stable-baselines3") from error
    return SB3VecEnv(env)
