"""Hyperparameters; this module imports nothing heavy, so that a command line can show them at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from taso_agents.policies import POLICIES
from taso_gym.checks import check_finite, check_whole
from taso_gym.errors import OptionError

CHECKS: dict[Any, Callable[..., None]] = {"int": check_whole, "float": check_finite}
"""Type of a field, as it is written -> what holds a value to it."""

MOST_SEED = 2**32 - 1
"""The largest seed that NumPy's global stream takes, which Stable-Baselines3 shuffles with."""


def check_numpy_seed(seed: int) -> None:
    """Raise OptionError for a seed that Stable-Baselines3 doesn't take."""
    if not 0 <= seed <= MOST_SEED:
        raise OptionError(f"expected a seed of 0 to {MOST_SEED}, found {seed}")


@dataclass(frozen=True)
class PPOSettings:
    """Hyperparameters, with the reason for each value; Andrychowicz et al. 2021 is "What matters in on-policy RL?".

    Attributes:
        steps: environment steps in all, rounded up to whole rollouts.
        policy: a row of `taso_agents.policies.POLICIES`.
        hidden: width of embeddings; 64 costs twice the time and wins nothing on a network of known rules.
        rounds: rounds of message passing; most patterns are at most three edges deep.
        noop_bias: NO-OP's logit at the start; at 0 episodes would end before a gain is seen.
        see_costs: show the policy by how much each candidate would change the cost.
        greed: with it, the weight of this change at the start; 0 to find out everything by trying.
        environments: played side by side, so that one forward pass serves all.
        rollout: steps of each environment between updates.
        minibatch: steps per gradient; larger ones leave the processor's cache.
        epochs: passes over a rollout; `target_kl` ends them earlier.
        learning_rate: of Adam; falls linearly to a twentieth (Andrychowicz et al. 2021, §3.5).
        gamma: discount; at 1 the return is the whole improvement, whatever the order of steps.
        gae_lambda: of the advantage estimate (Schulman et al. 2016).
        clip: range of the probability ratio.
        entropy: weight of the exact entropy; falls linearly to 0.
        value: weight of the value loss.
        gradient_norm: largest norm of a gradient.
        target_kl: an epoch in which the policy moves further than 1.5 times this ends the update.
        imitation: minibatches of the best episode so far that follow each update; see `taso_agents.training.imitation`.
        restarts: part of the episodes that begin on the way to the best graph; see `taso_agents.environment.recorder`.
        reward_scale: fixed factor on rewards (which are % of the start graph's cost), so that returns are near 1.
        seed: of networks, sampling and shuffling.
        threads: of torch; the graphs are small, and several threads wait more than they work on a busy machine.
    """

    steps: int = 12_288
    policy: str = "pointer"
    hidden: int = 32
    rounds: int = 3
    noop_bias: float = -3.0
    see_costs: bool = True
    greed: float = 2.0
    environments: int = 8
    rollout: int = 128
    minibatch: int = 64
    epochs: int = 4
    learning_rate: float = 1e-3
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    entropy: float = 0.02
    value: float = 0.5
    gradient_norm: float = 0.5
    target_kl: float = 0.05
    imitation: int = 16
    restarts: float = 0.5
    reward_scale: float = 0.3
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        """Refuse values that can't be meant.

        Raises:
            OptionError: an unknown policy, sizes below 1, what is no number, or a seed that is none.
        """
        if self.policy not in POLICIES:
            raise OptionError(f"expected a policy of {', '.join(POLICIES)}, found {self.policy!r}")
        for field in fields(self):
            if field.type in CHECKS:
                CHECKS[field.type](**{field.name: getattr(self, field.name)})
        check_numpy_seed(self.seed)
        for name in ("steps", "hidden", "rounds", "environments", "rollout", "minibatch", "epochs", "threads"):
            if getattr(self, name) < 1:
                raise OptionError(f"expected {name} of at least 1, found {getattr(self, name)}")

    @property
    def update_steps(self) -> int:
        """Steps of all environments between two updates; as few as there are to be in a short run."""
        return self.environments * min(self.rollout, -(-self.steps // self.environments))

    @property
    def played_steps(self) -> int:
        """Environment steps of whole updates."""
        return -(-self.steps // self.update_steps) * self.update_steps
