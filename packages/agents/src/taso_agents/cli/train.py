"""``taso-agents train``: a policy by PPO."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taso_agents.cli.choices import Model
from taso_agents.policies import POLICIES
from taso_agents.training.settings import PPOSettings
from taso_gym import onnx_io
from taso_gym.atomic import check_targets
from taso_gym.console import console, errors
from taso_gym.onnx_io.external import files_of

DEFAULT = PPOSettings()
TRAIN_STEPS = (
    f"Environment steps, rounded up to a multiple of {DEFAULT.environments}, above {DEFAULT.update_steps} to one of "
    f"{DEFAULT.update_steps}; episodes that judge the policy come besides."
)


def train(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the policy goes.")] = Path("policy.pt"),
    onnx: Annotated[Path | None, typer.Option(help="Where the cheapest graph goes.")] = None,
    steps: Annotated[int, typer.Option(help=TRAIN_STEPS, min=1)] = DEFAULT.steps,
    policy: Annotated[str, typer.Option(help=f"What is trained: {', '.join(POLICIES)}.")] = DEFAULT.policy,
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0)] = DEFAULT.seed,
    run_file: Annotated[Path | None, typer.Option(help="Written after every update, and resumed from.")] = None,
) -> None:
    """Train a policy with PPO; Ctrl-C ends it and keeps what is best so far.

    Until the model is loaded, and by a second Ctrl-C, no policy is kept.
    """
    check_targets(output, onnx, run_file, kept=files_of(model))
    settings = PPOSettings(steps=steps, policy=policy, seed=seed)
    try:
        from taso_agents.training.display import training_bar
        from taso_agents.training.ppo import train as train_policy

        with training_bar(console, settings.played_steps) as reports:
            result = train_policy(
                model, settings, run_file=run_file, on_step=reports.on_step, on_point=reports.on_point
            )
        result.save(output)
    except KeyboardInterrupt:
        errors.print(f"no policy is kept: Ctrl-C came before {output} was written", soft_wrap=True)
        raise
    if onnx:
        onnx_io.save(result.best_seen.graph, onnx)
    saved = 100 * (1 - min(point.policy for point in result.curve))
    seen = 100 * (1 - min(point.best_seen for point in result.curve))
    console.print(f"{output}: {saved:.2f} % saved by the cost model; best seen {seen:.2f} %")
