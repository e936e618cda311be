"""Dream training: collect real episodes, fit the world model, train a controller in it, play it for real; repeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from sb3_contrib import MaskablePPO

from taso_agents import world_models
from taso_agents.collect import collect, controller_actor, empty_dataset, greedy_actor, random_actor
from taso_agents.data import Dataset
from taso_agents.dream_env import DreamSettings, DreamVectorEnv
from taso_agents.evaluate import Episode, play_policy
from taso_agents.fit import FitSettings, fit
from taso_agents.latent import LatentObservation
from taso_agents.latent_policy import LatentPolicy
from taso_agents.scaled import ScaledRewards
from taso_agents.starts import Starts, starts_of
from taso_agents.training_env import describe, make_env, sizes_of
from taso_agents.world_model import WorldModel, WorldModelSettings
from taso_agents.world_models import kind_of
from taso_gym.vector import to_sb3


@dataclass(frozen=True)
class DreamTrainSettings:
    """One run of dream training.

    Attributes:
        rounds: of collecting, fitting, dreaming and playing.
        steps: real environment steps collected in each round: at first by chance and by noisy greed, then half by the
            controller.
        dream_steps: imagined steps of PPO in each round.
        dreams: played at once.
        temperature: τ of the mixture in dreams.
        branch: most steps of a dream, which then begins anywhere in a real episode; None: whole ones from the start.
        episodes: real episodes that the controller is judged by, besides the one without chance.
        epsilon: chance of a random action in the greedy episodes.
        learning_rate, gamma, gae_lambda, entropy, minibatch, epochs: of PPO in the dream.
        reward_scale: factor on rewards there, as in `taso_agents.settings.PPOSettings`.
        seed: of everything.
        model: sizes of the world model.
        fit: how it is fitted.
    """

    rounds: int = 3
    steps: int = 1500
    dream_steps: int = 60_000
    dreams: int = 32
    temperature: float = 1.0
    branch: int | None = 8
    episodes: int = 4
    epsilon: float = 0.3
    learning_rate: float = 1e-3
    gamma: float = 0.99
    gae_lambda: float = 0.95
    entropy: float = 0.01
    minibatch: int = 256
    epochs: int = 4
    reward_scale: float = 0.3
    seed: int = 0
    model: WorldModelSettings = field(default_factory=WorldModelSettings)
    fit: FitSettings = field(default_factory=FitSettings)


class Round(NamedTuple):
    """What a round came to; improvements are in % of the start graph's cost.

    Attributes:
        real_steps: real environment steps collected so far.
        dreamt: mean return of the last dreams of the controller.
        drawn: mean improvement of its real episodes.
        best: improvement of the cheapest graph that any of its real episodes came across.
    """

    real_steps: int
    dreamt: float
    drawn: float
    best: float


@dataclass
class DreamResult:
    """What dream training leaves.

    Attributes:
        model: the world model.
        policy: the controller.
        dataset: all episodes that were collected.
        starts: where dreams of whole episodes begin.
        rounds: one entry a round.
        best: the real episode of the controller that came across the cheapest graph.
        taso: what it belongs to.
    """

    model: WorldModel
    policy: LatentPolicy
    dataset: Dataset
    starts: Starts
    rounds: list[Round]
    best: Episode
    taso: dict[str, Any]

    def save(self, path: str | Path) -> None:
        """Write world model, starts and controller as one file, which ``TasoDream-v0`` takes as ``world_model``."""
        first = self.starts.take(torch.tensor([0]))  # all episodes begin alike
        self.model.save(path, self.taso, starts=list(first), controller=self.policy.state_dict())


def train_in_dream(
    network: str,
    settings: DreamTrainSettings | None = None,
    *,
    on_round: Callable[[Round], None] | None = None,
    **arguments: Any,
) -> DreamResult:
    """Train a controller that never acts in the real environment while it learns.

    Args:
        network: id of an environment, or path of an ONNX file.
        settings: hyperparameters.
        on_round: called after every round.
        **arguments: of the environment.
    """
    settings = settings or DreamTrainSettings()
    torch.manual_seed(settings.seed)
    env = make_env(network, **arguments)
    env.reset()
    model: WorldModel = kind_of(settings.model)(env.observation_space, env.action_space, settings.model)
    dataset = empty_dataset(env)
    max_steps = sizes_of(env)["max_steps"]
    controller: MaskablePPO | None = None
    rounds: list[Round] = []
    best: Episode | None = None
    latents = torch.empty(0)
    for number in range(settings.rounds):
        rng = np.random.default_rng([settings.seed, number])
        gather(env, model, controller, settings, rng, dataset)
        latents = fit(model, dataset, settings.fit)
        starts = starts_of(model, dataset, latents, anywhere=settings.branch is not None)
        dreamt, controller = dream(model, starts, controller, settings, max_steps, number)
        played = play_for_real(controller.policy, LatentObservation(env, model), settings)
        best = min([e for e in (best, *played) if e], key=lambda e: e.best_ps)
        drawn = float(np.mean([e.improvement_percent for e in played[1:]]))
        rounds.append(Round(dataset.steps, dreamt, drawn, best.improvement_percent))
        if on_round:
            on_round(rounds[-1])
    assert controller is not None and best is not None and isinstance(controller.policy, LatentPolicy)
    first = starts_of(model, dataset, latents, anywhere=False)
    taso = describe(network, env, asdict(settings), arguments)
    return DreamResult(model, controller.policy, dataset, first, rounds, best, taso)


def gather(
    env: gym.Env,
    model: WorldModel,
    controller: MaskablePPO | None,
    settings: DreamTrainSettings,
    rng: np.random.Generator,
    dataset: Dataset,
) -> None:
    """Collect the real episodes of a round."""
    actors = [random_actor(0.0), greedy_actor(settings.epsilon)]
    if controller:
        actors += [controller_actor(controller.policy, model)] * 2
    for actor in actors:
        collect(env, actor, settings.steps // len(actors), rng, dataset)


def dream(
    model: WorldModel,
    starts: Starts,
    controller: MaskablePPO | None,
    settings: DreamTrainSettings,
    max_steps: int,
    number: int,
) -> tuple[float, MaskablePPO]:
    """Train the controller in the dream; return the mean return of the last dreams in % and the controller."""
    how = DreamSettings(settings.temperature, max_steps, settings.branch)
    venv = ScaledRewards(to_sb3(DreamVectorEnv(model, starts, settings.dreams, how)), settings.reward_scale)
    if controller is None:
        controller = MaskablePPO(
            world_models.policy(model.kind),
            venv,
            learning_rate=settings.learning_rate,
            n_steps=64,
            batch_size=settings.minibatch,
            n_epochs=settings.epochs,
            gamma=settings.gamma,
            gae_lambda=settings.gae_lambda,
            ent_coef=settings.entropy,
            target_kl=0.05,
            policy_kwargs=model.policy_arguments(),
            seed=settings.seed,
            device="cpu",
        )
    else:
        controller.set_env(venv)
    venv.seed(settings.seed + number)
    controller.learn(settings.dream_steps, reset_num_timesteps=True, use_masking=False, log_interval=10**9)
    return venv.mean_return(), controller


def play_for_real(policy: Any, env: gym.Env, settings: DreamTrainSettings) -> list[Episode]:
    """Play the controller in the real environment: once without chance, then some times with it."""
    drawn = range(settings.episodes)
    return [play_policy(policy, env), *(play_policy(policy, env, deterministic=False, seed=i) for i in drawn)]
