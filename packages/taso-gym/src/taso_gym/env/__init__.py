"""The Gymnasium environment."""

from taso_gym.env.core import TasoGraphEnv
from taso_gym.env.episode import Snapshot

__all__ = ["Snapshot", "TasoGraphEnv"]
