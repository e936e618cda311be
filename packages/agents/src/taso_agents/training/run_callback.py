"""What goes on between the updates of PPO: imitation, evaluation, the best so far, progress, a file to go on from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor

from taso_agents.checkpoint import Resumable
from taso_agents.environment.real_env import Action
from taso_agents.environment.recorder import RecordedVecEnv
from taso_agents.training.evaluate import Episode
from taso_agents.training.run_state import random_state, restore_random_state


class Point(NamedTuple):
    """One point of a training curve; costs are relative to the start graph's, so 0.9 means 10 % faster.

    Attributes:
        steps: environment steps of training so far.
        evaluation_steps: those of the deterministic episodes, besides.
        episodes: mean over the training episodes that ended since the last point of their lowest cost; nan for none.
        policy: lowest cost of the deterministic episode.
        best_seen: lowest cost of all.
    """

    steps: int
    evaluation_steps: int
    episodes: float
    policy: float
    best_seen: float


@dataclass
class BestPolicy:
    """The weights with the lowest cost of the episode without chance; the first of equals."""

    cost: float = float("inf")
    weights: dict[str, Tensor] = field(default_factory=dict)


class Duties(NamedTuple):
    """What is to be done between two updates.

    Attributes:
        imitate: train the policy on the actions that lead to the cheapest graph.
        evaluate: play the policy without chance.
        report_step: called with the number of steps so far, after each.
        report_point: called with every new point of the curve.
    """

    imitate: Callable[[Sequence[Action]], None]
    evaluate: Callable[[], Episode]
    report_step: Callable[[int], None]
    report_point: Callable[[Point], None]


class RunCallback(Resumable, BaseCallback):
    """Acts at each start of a rollout, that is after each update, and at the end.

    Args:
        venv: the environments of the run.
        duties: what to do.
        taso: what a file of the run belongs to.

    Attributes:
        path: file of the run, written after every update; None for none.
        curve: one point an update.
        best: best policy so far.
        interrupted: set it to end the run before its next step.
    """

    file_kind: ClassVar[str] = "run"

    def __init__(self, venv: RecordedVecEnv, duties: Duties, taso: Mapping[str, Any]) -> None:
        super().__init__()
        self.venv, self.duties, self.taso = venv, duties, taso
        self.path: Path | None = None
        self.curve: list[Point] = []
        self.best = BestPolicy()
        self.interrupted = False
        self._ended: list[float] = []

    def _on_step(self) -> bool:
        infos = self.locals["infos"]
        self._ended += [self.venv.relative(i["lowest_time_ps"]) for i in infos if "lowest_time_ps" in i]
        self.duties.report_step(self.num_timesteps)
        return not self.interrupted

    def _on_rollout_start(self) -> None:
        if not self.curve or self.curve[-1].steps < self.model.num_timesteps:
            self._note()
            if self.path:
                self.write(self.path, self.taso)

    def _on_training_end(self) -> None:
        if not self.interrupted:
            self._on_rollout_start()

    def _note(self) -> None:
        archive, relative = self.venv.archive, self.venv.relative
        self.duties.imitate(archive.actions)
        episode = self.duties.evaluate()
        archive.note(episode.best_ps, episode.actions[: episode.best_length])
        mean = float(np.mean(self._ended)) if self._ended else float("nan")
        spent = self.curve[-1].evaluation_steps if self.curve else 0
        policy, best_seen = relative(episode.best_ps), relative(archive.time_ps)
        point = Point(self.model.num_timesteps, spent + episode.steps, mean, policy, best_seen)
        if policy < self.best.cost:
            self.best = BestPolicy(policy, deepcopy(self.model.policy.state_dict()))
        self._ended = []
        self.curve.append(point)
        self.duties.report_point(point)

    def parts(self) -> dict[str, Any]:
        """Return model, environments, random streams and this object as tensors and plain data."""
        starts = self.model._last_episode_starts
        archive = self.venv.archive
        assert starts is not None
        return {
            "weights": self.model.policy.state_dict(),
            "optimizer": self.model.policy.optimizer.state_dict(),
            "best_cost": self.best.cost,
            "best_weights": self.best.weights,
            "steps": self.model.num_timesteps,
            "updates": self.model._n_updates,
            "random": random_state(),
            "histories": [[_plain(actions), restarted] for actions, restarted in self.venv.histories()],
            "starts": [bool(s) for s in starts],
            "archive": [archive.time_ps, _plain(archive.actions), archive.episodes],
            "curve": [list(point) for point in self.curve],
        }

    def take_up(self, parts: Mapping[str, Any]) -> None:
        """Go on from what `parts` returned."""
        model, policy = self.model, self.model.policy
        policy.load_state_dict(parts["weights"])
        policy.optimizer.load_state_dict(parts["optimizer"])
        model.num_timesteps, model._n_updates = parts["steps"], parts["updates"]
        self.best = BestPolicy(parts["best_cost"], parts["best_weights"])
        self.curve = [Point(*values) for values in parts["curve"]]
        model._last_obs = self.venv.take_up([(_pairs(actions), again) for actions, again in parts["histories"]])
        model._last_episode_starts = np.array(parts["starts"])
        time_ps, actions, self.venv.archive.episodes = parts["archive"]
        self.venv.archive.note(time_ps, _pairs(actions))
        restore_random_state(parts["random"])


def _plain(actions: Sequence[Action]) -> list[list[int]]:
    return [list(action) for action in actions]


def _pairs(actions: Sequence[Sequence[int]]) -> list[Action]:
    return [(xfer, location) for xfer, location in actions]
