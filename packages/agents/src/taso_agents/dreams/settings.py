"""Hyperparameters of dream training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from taso_agents.training.settings import check_numpy_seed
from taso_agents.world_models.fit import FitSettings
from taso_agents.world_models.graph.model import GraphSettings
from taso_gym.checks import check_finite, check_positive
from taso_gym.errors import OptionError


@dataclass(frozen=True)
class DreamTrainSettings:
    """One run of dream training.

    Attributes:
        rounds: of collecting, fitting, dreaming and playing.
        steps: real environment steps collected in each round, in whole episodes: at first by chance and by noisy
            greed, then half or more by the controller.
        dream_steps: imagined steps of PPO in each round, rounded up to whole rollouts of all dreams.
        dreams: played at once.
        temperature: τ of what the world model predicts, in dreams.
        branch: most steps of a dream, which then begins anywhere in a real episode; None: whole ones from the start.
        episodes: real episodes that the controller is judged by, besides the one without chance; they are data too.
        epsilon: chance of a random action in the greedy episodes.
        see_costs: the cost changes of candidates that aren't taken are known, for noisy greed and to learn from. False
            where each has to be measured: only chance and the controller play, and only taken steps teach rewards. What
            observations say of nodes, their run times among it, is seen as ever, and as by a PPO without cost changes.
        greed: weight of predicted rewards in a controller's scores at the start, if it sees them.
        learning_rate, gamma, gae_lambda, entropy, minibatch, epochs: of PPO in the dream.
        rollout: steps of each dream between updates.
        reward_scale: factor on rewards there, as in `taso_agents.training.settings.PPOSettings`.
        seed: of everything.
        model: sizes of the world model; their class says which kind it is.
        fit: how it is fitted.
    """

    rounds: int = 2
    steps: int = 600
    dream_steps: int = 4096
    dreams: int = 32
    temperature: float = 1.0
    branch: int | None = None
    episodes: int = 4
    epsilon: float = 0.3
    see_costs: bool = True
    greed: float = 2.0
    learning_rate: float = 1e-3
    gamma: float = 0.99
    gae_lambda: float = 0.95
    entropy: float = 0.01
    minibatch: int = 256
    epochs: int = 2
    rollout: int = 64
    reward_scale: float = 0.3
    seed: int = 0
    model: Any = field(default_factory=GraphSettings)
    fit: FitSettings = field(default_factory=FitSettings)

    def __post_init__(self) -> None:
        """Refuse a seed, a temperature or sizes that are none.

        Raises:
            OptionError: the seed is below 0 or too large, the temperature is below 0, infinite or no number, or what is
                counted is no number from 1 on.
        """
        check_numpy_seed(self.seed)
        check_temperature(self.temperature)
        counted = ("rounds", "steps", "dream_steps", "dreams", "minibatch", "epochs", "rollout")
        check_positive(**{name: getattr(self, name) for name in counted})
        if self.branch is not None:
            check_positive(branch=self.branch)


def check_temperature(temperature: float) -> None:
    """Raise `OptionError` for what is no number from 0 on."""
    check_finite(temperature=temperature)
    if temperature < 0:
        raise OptionError(f"expected a temperature of 0 or more, found {temperature}")
