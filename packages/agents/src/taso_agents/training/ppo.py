"""Proximal policy optimisation (Schulman et al. 2017) of the substitution policies, with sb3-contrib's MaskablePPO."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sb3_contrib import MaskablePPO

from taso_agents.environment.real_env import Action, opened, play, state_of
from taso_agents.environment.recorder import RecordedVecEnv
from taso_agents.policies import policy_named
from taso_agents.policies.pointer import CandidatePolicy
from taso_agents.policies.policy_file import save_policy
from taso_agents.training.evaluate import Episode, play_policy
from taso_agents.training.imitation import BestEpisode
from taso_agents.training.run_callback import Duties, Point, RunCallback
from taso_agents.training.run_state import ending_on_interrupt, torch_threads
from taso_agents.training.settings import PPOSettings
from taso_gym.rules.state import RewriteState

NEVER = 10**9
LAST_LEARNING_RATE = 0.05
"""Of the first; Stable-Baselines3 counts the steps of an update before it, so the last one would learn nothing at 0."""


@dataclass(frozen=True)
class TrainResult:
    """What training leaves.

    Attributes:
        policy: the best, measured after every update: see `BestPolicy`.
        best_seen: the cheapest state that training came across; it may be cheaper than the policy's own.
        curve: one point an update.
        taso: what the policy belongs to: rule set, environment, settings.
        interrupted: ended by Ctrl-C.
    """

    policy: CandidatePolicy
    best_seen: RewriteState
    curve: list[Point]
    taso: dict[str, Any]
    interrupted: bool

    def save(self, path: str | Path) -> None:
        """Write the policy for `taso_agents.policies.policy_file.load_policy` and ``--search policy:PATH``."""
        save_policy(path, self.policy, self.taso)


def train(
    model: str,
    settings: PPOSettings | None = None,
    *,
    run_file: str | Path | None = None,
    on_step: Callable[[int], None] | None = None,
    on_point: Callable[[Point], None] | None = None,
    **arguments: Any,
) -> TrainResult:
    """Train a policy on one network; Ctrl-C ends it and keeps what is best so far.

    The same settings and seed give the same result on the same machine, killed and resumed or not.

    With another ``reward`` than the run time PPO learns from that; the best graph and policy, and what is imitated and
    restarted from, are those of the least run time all the same.

    Args:
        model: id of an environment, or path of an ONNX file.
        settings: hyperparameters.
        run_file: written after every update; if it is there, the run goes on from it.
        on_step: called with the number of steps so far.
        on_point: called with every new point of the curve.
        **arguments: of the environment.

    Raises:
        CheckpointError: ``run_file`` belongs to another run.
        TasoError: the model or an argument is not what it has to be.
    """
    settings = settings or PPOSettings()
    if settings.see_costs:
        arguments = {"extra_views": ("cost_changes",), **arguments}
    venv = RecordedVecEnv(
        model,
        settings.environments,
        arguments,
        reward_scale=settings.reward_scale,
        restarts=settings.restarts,
        seed=settings.seed,
    )
    env, taso = opened(model, asdict(settings), arguments)
    algorithm = make_algorithm(venv, settings)
    policy = algorithm.policy
    assert isinstance(policy, CandidatePolicy)

    best_episode = BestEpisode(env, settings.minibatch)

    def calm() -> None:
        algorithm.ent_coef = settings.entropy * max(1 - algorithm.num_timesteps / settings.steps, 0.0)

    def imitate(actions: Sequence[Action]) -> None:
        calm()
        best_episode.imitate(policy, actions, settings.imitation, settings.gradient_norm)

    def evaluate() -> Episode:
        return play_policy(policy, env)

    duties = Duties(imitate, evaluate, on_step or _ignore, on_point or _ignore)
    callback = RunCallback(venv, duties, taso)
    callback.init_callback(algorithm)
    callback.path = callback.go_on(run_file, taso)
    calm()
    left = settings.steps - algorithm.num_timesteps
    with ending_on_interrupt(callback), torch_threads(settings.threads):
        algorithm.learn(left, callback, log_interval=NEVER, reset_num_timesteps=False, use_masking=False)
    policy.load_state_dict(callback.best.weights)
    play(env, venv.archive.actions)
    return TrainResult(policy, state_of(env), callback.curve, taso, callback.interrupted)


def _ignore(_report: object) -> None:
    """Report to nobody."""


def leaves_one(rollout: int, minibatch: int) -> bool:
    """Whether some minibatch of a rollout is a single step: its advantage has no deviation to divide by."""
    return minibatch == 1 or rollout % minibatch == 1


def make_algorithm(venv: RecordedVecEnv, settings: PPOSettings) -> MaskablePPO:
    """Set up sb3-contrib's algorithm; masks travel in the observation, so its own are not used."""
    return MaskablePPO(
        policy_named(settings.policy),
        venv,
        learning_rate=lambda left: settings.learning_rate * max(left, LAST_LEARNING_RATE),
        n_steps=settings.update_steps // settings.environments,
        normalize_advantage=not leaves_one(settings.update_steps, settings.minibatch),
        batch_size=settings.minibatch,
        n_epochs=settings.epochs,
        gamma=settings.gamma,
        gae_lambda=settings.gae_lambda,
        clip_range=settings.clip,
        ent_coef=settings.entropy,
        vf_coef=settings.value,
        max_grad_norm=settings.gradient_norm,
        target_kl=settings.target_kl,
        policy_kwargs={name: getattr(settings, name) for name in ("hidden", "rounds", "noop_bias", "greed")},
        seed=settings.seed,
        device="cpu",
    )
