"""What a run of dream training has to remember, and its file to go on from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import torch

from taso_agents.checkpoint import Resumable
from taso_agents.data.episodes import Dataset, dataset_of
from taso_agents.training.evaluate import Episode
from taso_agents.world_models.fit import Fitted
from taso_agents.world_models.mdn_rnn import WorldModel


class Round(NamedTuple):
    """What a round came to; improvements are in % of the start graph's cost.

    Attributes:
        real_steps: real environment steps so far, those of judging among them.
        dreamt: mean return of the last dreams of the controller, which may begin anywhere.
        drawn: mean improvement of its real episodes with chance.
        fixed: improvement of the one without.
        best: improvement of the cheapest graph that any of its real episodes came across.
        gap_5, gap_whole: mean of |dreamt - real| / max(|real|, 1 %) of the sum of rewards, with the same actions, over
            five steps and over whole episodes, of the episodes that it was judged by.
    """

    real_steps: int
    dreamt: float
    drawn: float
    fixed: float
    best: float
    gap_5: float
    gap_whole: float


class DreamRun(Resumable):
    """A run between two rounds.

    Args:
        model: the world model, which is fitted further.
        dataset: all real episodes, which grows.

    Attributes:
        policy: weights and optimizer of the controller; None before the first round.
        rounds: what each came to.
        fits: losses of every epoch.
        returns: (round, imagined steps in it, mean return of the last dreams), one a rollout.
        best: the best real episode of the controller.
    """

    file_kind: ClassVar[str] = "dream run"

    def __init__(self, model: WorldModel, dataset: Dataset) -> None:
        self.model, self.dataset = model, dataset
        self.policy: dict[str, Any] | None = None
        self.rounds: list[Round] = []
        self.fits: list[Fitted] = []
        self.returns: list[tuple[int, int, float]] = []
        self.best: Episode | None = None

    def parts(self) -> dict[str, Any]:
        """Return everything as tensors and plain data."""
        assert self.best is not None
        return {
            "weights": self.model.state_dict(),
            "policy": self.policy,
            "dataset": {name: torch.from_numpy(array.copy()) for name, array in self.dataset.arrays().items()},
            "rounds": [list(r) for r in self.rounds],
            "fits": [list(f) for f in self.fits],
            "returns": [list(r) for r in self.returns],
            "best": [*self.best[:5], [list(a) for a in self.best.actions], self.best.best_length],
        }

    def take_up(self, parts: Mapping[str, Any]) -> None:
        """Go on from what `parts` returned."""
        self.model.load_state_dict(parts["weights"])
        self.policy = parts["policy"]
        self.dataset = dataset_of({name: tensor.numpy() for name, tensor in parts["dataset"].items()})
        self.rounds = [Round(*values) for values in parts["rounds"]]
        self.fits = [Fitted(*values) for values in parts["fits"]]
        self.returns = [(number, steps, mean) for number, steps, mean in parts["returns"]]
        steps, weighed, start, final, best, actions, length = parts["best"]
        self.best = Episode(steps, weighed, start, final, best, tuple((x, at) for x, at in actions), length)
