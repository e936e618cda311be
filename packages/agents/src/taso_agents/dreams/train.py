"""Dream training: collect real episodes, fit the world model, train a controller in it, play it for real; repeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.utils import set_random_seed

from taso_agents import world_models
from taso_agents.data.collect import collect, empty_dataset, greedy_actor, play_record, random_actor, replaying
from taso_agents.data.episodes import Dataset
from taso_agents.dreams.actors import controller_actor
from taso_agents.dreams.controller import dream, load_policy
from taso_agents.dreams.gap import horizons
from taso_agents.dreams.latent import LatentObservation
from taso_agents.dreams.run import DreamRun, Round
from taso_agents.dreams.settings import DreamTrainSettings
from taso_agents.dreams.starts import Starts, starts_of
from taso_agents.environment.real_env import make_env, opened, play, sizes_of, state_of
from taso_agents.policies.latent_policy import LatentPolicy
from taso_agents.training.evaluate import Episode, play_policy
from taso_agents.training.run_state import torch_threads
from taso_agents.training.settings import MOST_SEED
from taso_agents.world_models.fit import Fitted, fit
from taso_agents.world_models.mdn_rnn import WorldModel
from taso_gym.errors import OptionError
from taso_gym.rules.state import RewriteState


@dataclass
class DreamResult:
    """What dream training leaves.

    Attributes:
        model: the world model.
        policy: the controller.
        dataset: all episodes that were played.
        starts: where dreams of whole episodes begin.
        run: rounds and curves.
        best: the real episode of the controller that came across the cheapest graph.
        taso: what it belongs to.
    """

    model: WorldModel
    policy: LatentPolicy
    dataset: Dataset
    starts: Starts
    run: DreamRun
    best: Episode
    taso: dict[str, Any]

    @property
    def rounds(self) -> list[Round]:
        """What each round came to."""
        return self.run.rounds

    def best_state(self) -> RewriteState:
        """Return the state of the cheapest graph of all real episodes, which is played for once more."""
        env = make_env(self.taso["model"], **self.taso["arguments"])
        found: list[RewriteState] = []
        for actions in (self.dataset.cheapest(), self.best.actions[: self.best.best_length]):
            play(env, actions)
            found.append(state_of(env))
        return min(found, key=lambda state: state.cost.time_ps)

    def save(self, path: str | Path) -> None:
        """Write world model, starts and controller as one file, which ``TasoDream-v0`` takes as ``world_model``."""
        first = self.starts.take(torch.tensor([0]))  # all episodes begin alike
        self.model.save(path, self.taso, starts=list(first), controller=self.policy.state_dict())


@torch_threads(1)
def train_in_dream(
    network: str,
    settings: DreamTrainSettings | None = None,
    *,
    run_file: str | Path | None = None,
    on_round: Callable[[Round], None] | None = None,
    on_stage: Callable[[str], None] | None = None,
    **arguments: Any,
) -> DreamResult:
    """Train a controller that never acts in the real environment while it learns.

    The same settings and seed give the same result on the same machine, killed and resumed or not: torch uses one
    thread, for what several add up depends on how many of them run.

    Args:
        network: id of an environment, or path of an ONNX file.
        settings: hyperparameters.
        run_file: written after every round; if it is there, the run goes on from it.
        on_round: called after every round.
        on_stage: called with what is being done.
        **arguments: of the environment.

    Raises:
        CheckpointError: ``run_file`` belongs to another run.
    """
    settings = settings or DreamTrainSettings()
    stage = on_stage or (lambda _text: None)
    set_random_seed(settings.seed)
    env, taso = opened(network, asdict(settings), arguments)
    model = build_model(env, settings)
    run = DreamRun(model, empty_dataset(env))
    path = run.go_on(run_file, taso)
    for number in range(len(run.rounds), settings.rounds):
        set_random_seed((settings.seed + 1000 * number) % (MOST_SEED + 1))
        name = f"round {number + 1} of {settings.rounds}"
        stage(f"{name}: playing for real")
        gather(env, run, settings, number)

        def note(fitted: Fitted, name: str = name) -> None:
            run.fits.append(fitted)
            stage(f"{name}: fitting, epoch {fitted.epoch + 1}")

        latents = fit(model, run.dataset, replace(settings.fit, seed=settings.seed), note)
        starts = starts_of(model, run.dataset, latents, anywhere=settings.branch is not None)
        controller = dream(run, starts, settings, sizes_of(env)["max_steps"], lambda t, n=name: stage(f"{n}: {t}"))
        judge(env, run, controller, settings)
        if path:
            run.write(path, taso)
        if on_round:
            on_round(run.rounds[-1])
    assert run.best is not None and run.policy is not None
    first = starts_of(model, run.dataset, None, anywhere=False)
    return DreamResult(model, load_policy(run, settings), run.dataset, first, run, run.best, taso)


def build_model(env: gym.Env, settings: DreamTrainSettings) -> WorldModel:
    """Make the world model; one that shows tokens gets a quarter more of them than the start graph has candidates.

    Raises:
        OptionError: it learns from the cost changes of candidates that weren't taken, which it isn't to see.
    """
    wanted = settings.model
    if not settings.see_costs:
        if getattr(wanted, "see_costs", None) is None and hasattr(wanted, "tokens"):
            raise OptionError("expected a world model that can do without cost changes, found one of tokens")
        wanted = replace(wanted, see_costs=False) if hasattr(wanted, "see_costs") else wanted
    if getattr(wanted, "tokens", None) == 0:
        game: Any = env.unwrapped
        wanted = replace(wanted, tokens=-(-(5 * int(game.legal_locations()[:-1].sum()) // 4 + 16) // 8) * 8)
    return world_models.kind_of(wanted)(env.observation_space, env.action_space, wanted)


def gather(env: gym.Env, run: DreamRun, settings: DreamTrainSettings, number: int) -> None:
    """Collect the real episodes of a round."""
    rng = np.random.default_rng([settings.seed, number])
    actors = [random_actor(0.0)] + ([greedy_actor(settings.epsilon)] if settings.see_costs else [])
    if run.policy is None:
        shares = [-(-settings.steps // len(actors))] * len(actors)
    else:
        shares = [settings.steps // (len(actors) + 2)] * len(actors) + [2 * settings.steps // (len(actors) + 2)]
        actors.append(controller_actor(load_policy(run, settings), run.model))
    for actor, steps in zip(actors, shares, strict=True):
        collect(env, actor, steps, rng, run.dataset)


def judge(env: gym.Env, run: DreamRun, controller: MaskablePPO, settings: DreamTrainSettings) -> None:
    """Play the controller for real, once without chance and some times with it; compare with its dreams of that."""
    seen = LatentObservation(env, run.model)
    seeds = np.random.SeedSequence([settings.seed, len(run.rounds)]).generate_state(settings.episodes).tolist()
    played = [play_policy(controller.policy, seen)]
    played += [play_policy(controller.policy, seen, deterministic=False, seed=seed) for seed in seeds]
    rng = np.random.default_rng(0)
    fresh = Dataset(run.dataset.store)
    fresh.episodes += [play_record(env, replaying(episode.actions), rng, fresh.store) for episode in played]
    five, whole = horizons(run.model, fresh, (5,))
    run.dataset.episodes += fresh.episodes
    run.best = min([e for e in (run.best, *played) if e], key=lambda e: e.best_ps)
    drawn = float(np.mean([e.improvement_percent for e in played[1:] or played]))
    run.rounds.append(
        Round(
            run.dataset.steps,
            run.returns[-1][2],
            drawn,
            played[0].improvement_percent,
            run.best.improvement_percent,
            five.gap,
            whole.gap,
        )
    )
