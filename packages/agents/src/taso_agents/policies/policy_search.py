"""``--search policy:CHECKPOINT``: a trained policy as one of taso_gym's searches."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from taso_agents import checkpoint
from taso_agents.environment.real_env import layout_of, spaces_of
from taso_agents.policies.policy_file import load_policy
from taso_gym.cost import Dims
from taso_gym.env.problem import with_room
from taso_gym.errors import OptionError
from taso_gym.observation import Features, Observation, Observer, Scale, count_rows
from taso_gym.rules.state import RewriteState
from taso_gym.search import Searcher


class PolicySearch(Searcher):
    """Plays episodes with a policy: the first takes the most probable action each time, the others draw.

    An observation is laid out anew for each state, so that it depends on that alone and a search that is taken up again
    goes on exactly as it would have. It has the room that an environment's have, which the network is shown the use of.
    """

    def __init__(self, start: RewriteState, rng: np.random.Generator, path: str, episodes: int = 16) -> None:
        """Begin with a policy's file.

        Args:
            start: its rule set must be the one that the policy was trained with.
            rng: what the draws come from.
            path: file that `taso_agents.policies.policy_file.save_policy` wrote.
            episodes: how many to play, each at most as long as those in training.

        Raises:
            CheckpointError: the file is no policy, or one for another rule set.
            OptionError: the state has no cost.
        """
        data = checkpoint.load(path, "policy")
        self.sizes = data["taso"]["sizes"]
        if start.cost_model is None:
            raise OptionError("expected a state with a cost model, found none")
        layout = layout_of(self.sizes)
        super().__init__(RewriteState(start.graph, start.rules, start.cost_model, max_locations=layout.locations), rng)
        dims = Dims(getattr(start.cost_model, "dims", None))
        self.features = Features(Scale(start.cost_model, dims, start.cost))
        self.policy = load_policy(path, *spaces_of(layout), start.rules.digest)
        self.episodes = episodes
        self._room = tuple(map(with_room, count_rows(start.graph)))
        self._at, self._length, self._episode = 0, 0, 0

    @classmethod
    def check_options(cls, *, path: str = "", **others: Any) -> None:
        """Refuse a file that is no policy."""
        super().check_options(**others)
        checkpoint.load(path, "policy")

    def step(self) -> bool:
        """Take one action, or begin the next episode."""
        state = self.state(self._at)
        action = self._choose(state) if self._length < self.sizes["max_steps"] else None
        if action is None:
            self._at, self._length, self._episode = 0, 0, self._episode + 1
            return self._episode < self.episodes and any(self._start.matches)
        xfer, location = action
        self.explored += 1
        self._at, _ = self.add(self._at, state.matches[xfer][location])
        self._length += 1
        return True

    def frontier(self) -> Any:
        """Where the present episode is."""
        return [self._at, self._length, self._episode]

    def resume(self, frontier: Any) -> None:
        """Stand where it was."""
        self._at, self._length, self._episode = frontier
        counts = [self._length, self._episode]
        self.expect_frontier(indices=[self._at], counts=counts)

    def observer(self, state: RewriteState) -> Observer:
        """Return what shows a state."""
        rows = map(max, self._room, count_rows(state.graph))
        return Observer(layout_of(self.sizes, *rows), self.features, state)

    def _choose(self, state: RewriteState) -> tuple[int, int] | None:
        """Return (substitution, location), or None for NO-OP."""
        observer = self.observer(state)
        observation = observer.observe(self._length / self.sizes["max_steps"])
        with torch.no_grad():
            log_probs = self.policy.get_distribution(as_batch(observation)).log_probs[0]
        candidate = int(log_probs.argmax()) if not self._episode else self._draw(log_probs.double().exp().numpy())
        return observer.action(candidate) if candidate < observer.total else None

    def _draw(self, probabilities: np.ndarray) -> int:
        return int(self.rng.choice(len(probabilities), p=probabilities / probabilities.sum()))


def as_batch(observation: Observation) -> dict[str, torch.Tensor]:
    """Return an observation as a batch of one."""
    return {key: torch.from_numpy(array)[None] for key, array in observation.items()}
