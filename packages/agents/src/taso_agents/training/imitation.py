"""Self-imitation (Oh et al. 2018) in its simplest form: the policy is also trained on the best episode so far.

A gain behind several steps that cost something is rarely come across. Once it was, this keeps it from being forgotten,
and since the policy knows places by what is there, what helped in one place is tried in all that look alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from taso_agents.environment.real_env import Action
from taso_agents.policies.pointer import CandidatePolicy


class BestEpisode:
    """Observations and actions of the episode to imitate; played again whenever it changes.

    Args:
        env: an environment of its own.
        size: states of a minibatch.
    """

    def __init__(self, env: gym.Env, size: int) -> None:
        self.env, self.size = env, size
        self._actions: list[Action] = []
        self._observations: dict[str, Tensor] = {}

    def imitate(
        self, policy: CandidatePolicy, actions: Sequence[Action], minibatches: int, gradient_norm: float
    ) -> None:
        """Raise the probability of an episode's actions by some steps of the policy's own optimizer."""
        if not actions or not minibatches:
            return
        if self._actions != list(actions):
            self._replay(actions)
        chosen = torch.tensor(self._actions)
        for _ in range(minibatches):
            rows = torch.randint(len(chosen), (self.size,))
            _, log_prob, _ = policy.evaluate_actions({k: o[rows] for k, o in self._observations.items()}, chosen[rows])
            policy.optimizer.zero_grad()
            (-log_prob.mean()).backward()
            torch.nn.utils.clip_grad_norm_(policy.parameters(), gradient_norm)
            policy.optimizer.step()

    def _replay(self, actions: Sequence[Action]) -> None:
        observation, _ = self.env.reset()
        seen = [observation]
        for action in actions[:-1]:
            observation, *_ = self.env.step(np.array(action))
            seen.append(observation)
        self._actions = list(actions)
        self._observations = {key: torch.from_numpy(np.stack([o[key] for o in seen])) for key in observation}
