"""The controller of dream training: PPO that acts in dreams alone."""

from __future__ import annotations

from collections.abc import Callable

from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

from taso_agents import world_models
from taso_agents.dreams.env import DreamSettings, DreamVectorEnv
from taso_agents.dreams.run import DreamRun
from taso_agents.dreams.settings import DreamTrainSettings
from taso_agents.dreams.starts import Starts, starts_of
from taso_agents.policies.latent_policy import LatentPolicy
from taso_agents.policies.scaled import ScaledRewards
from taso_agents.policies.token_policy import TokenPolicy
from taso_agents.training.ppo import leaves_one
from taso_agents.training.settings import MOST_SEED
from taso_gym.vector import to_sb3


class _Returns(BaseCallback):
    """Notes the mean return of dreams after every rollout."""

    def __init__(self, venv: ScaledRewards, run: DreamRun, stage: Callable[[str], None]) -> None:
        super().__init__()
        self.venv, self.run, self.stage = venv, run, stage

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self.run.returns.append((len(self.run.rounds), self.num_timesteps, self.venv.mean_return()))
        self.stage(f"dreaming, step {self.num_timesteps} of {self.model._total_timesteps}")


def make_controller(run: DreamRun, dreams: DreamVectorEnv, settings: DreamTrainSettings) -> MaskablePPO:
    """Set up PPO in dreams, with the controller of the last round if there is one."""
    venv = ScaledRewards(to_sb3(dreams), settings.reward_scale)
    policy, arguments = world_models.policy(run.model.kind), run.model.policy_arguments()
    if issubclass(policy, TokenPolicy):
        arguments["greed"] = settings.greed
    controller = MaskablePPO(
        policy,
        venv,
        learning_rate=settings.learning_rate,
        n_steps=settings.rollout,
        normalize_advantage=not leaves_one(settings.rollout * dreams.num_envs, settings.minibatch),
        batch_size=settings.minibatch,
        n_epochs=settings.epochs,
        gamma=settings.gamma,
        gae_lambda=settings.gae_lambda,
        ent_coef=settings.entropy,
        target_kl=0.05,
        policy_kwargs=arguments,
        seed=(settings.seed + len(run.rounds)) % (MOST_SEED + 1),
        device="cpu",
    )
    if run.policy is not None:
        controller.policy.load_state_dict(run.policy["weights"])
        controller.policy.optimizer.load_state_dict(run.policy["optimizer"])
    return controller


def load_policy(run: DreamRun, settings: DreamTrainSettings) -> LatentPolicy:
    """Return the controller of the last round."""
    starts = starts_of(run.model, run.dataset, None, anywhere=False)
    policy = make_controller(run, DreamVectorEnv(run.model, starts, 1), settings).policy
    assert isinstance(policy, LatentPolicy)
    return policy


def dream(
    run: DreamRun, starts: Starts, settings: DreamTrainSettings, max_steps: int, stage: Callable[[str], None]
) -> MaskablePPO:
    """Train the controller in the dream."""
    how = DreamSettings(settings.temperature, max_steps, settings.branch)
    controller = make_controller(run, DreamVectorEnv(run.model, starts, settings.dreams, how), settings)
    venv = controller.get_env()
    assert isinstance(venv, ScaledRewards)
    controller.learn(
        settings.dream_steps,
        _Returns(venv, run, stage),
        reset_num_timesteps=True,
        use_masking=False,
        log_interval=10**9,
    )
    policy = controller.policy
    run.policy = {"weights": policy.state_dict(), "optimizer": policy.optimizer.state_dict()}
    return controller
