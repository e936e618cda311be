"""``taso-agents dream``: a world model, and a controller trained in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taso_agents.cli.choices import Model
from taso_agents.world_models import WORLD_MODELS, world_model
from taso_gym import onnx_io
from taso_gym.atomic import check_targets
from taso_gym.console import console
from taso_gym.errors import OptionError
from taso_gym.onnx_io.external import files_of

if TYPE_CHECKING:
    from taso_agents.dreams.settings import DreamTrainSettings

DREAM_STEPS = "Real environment steps a round, but in whole episodes; those that judge the controller come besides."


def dream(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="For world model and controller.")] = Path("dream.pt"),
    world_model: Annotated[
        str, typer.Option(help=f"Kind: {', '.join(WORLD_MODELS)} (mdn is the dissertation's).")
    ] = "graph",
    rounds: Annotated[int, typer.Option(help="Of collecting, fitting, dreaming and playing.", min=1)] = 2,
    steps: Annotated[int, typer.Option(help=DREAM_STEPS, min=1)] = 600,
    max_steps: Annotated[int, typer.Option(help="Most steps of an episode.", min=1)] = 60,
    dream_steps: Annotated[int, typer.Option(help="Imagined steps a round, in multiples of 2048.", min=1)] = 4096,
    temperature: Annotated[float, typer.Option(help="Temperature of predictions in dreams.", min=0)] = 1.0,
    branch: Annotated[int, typer.Option(help="Most steps of a dream; 0 for whole episodes.", min=0)] = 0,
    epochs: Annotated[
        int | None,
        typer.Option(help="Passes over steps in a fit's first phase, of the encoder; default: the kind's own.", min=1),
    ] = None,
    separate_reward: Annotated[bool, typer.Option(help="mdn: predict rewards by a network of its own.")] = False,
    blind: Annotated[
        bool, typer.Option("--blind", help="Know cost changes of taken steps only, as if measured.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0)] = 0,
    run_file: Annotated[Path | None, typer.Option(help="Written after every round, and resumed from.")] = None,
    plot: Annotated[Path | None, typer.Option(help="PNG file for the curves.")] = None,
    onnx: Annotated[Path | None, typer.Option(help="Where the cheapest graph goes.")] = None,
) -> None:
    """Learn a world model, train a controller in its dreams and play it for real."""
    check_targets(output, run_file, plot, onnx, kept=files_of(model))
    from taso_agents.dreams.run import Round
    from taso_agents.dreams.settings import DreamTrainSettings
    from taso_agents.dreams.train import train_in_dream

    settings = DreamTrainSettings(
        rounds=rounds, steps=steps, dream_steps=dream_steps, temperature=temperature, branch=branch or None, seed=seed
    )
    settings = replace(of_kind(settings, world_model, separate_reward, epochs), see_costs=not blind)

    def show(done: Round) -> None:
        console.print(
            f"{done.real_steps} real steps: controller saves {done.drawn:.2f} % on average, {done.best:.2f} % at best; "
            f"gap {100 * done.gap_5:.1f} % over 5 steps, {100 * done.gap_whole:.1f} % over episodes"
        )

    with console.status("dream training") as status:
        result = train_in_dream(
            model, settings, run_file=run_file, on_round=show, on_stage=status.update, max_steps=max_steps
        )
    result.save(output)
    if plot:
        from taso_agents.dreams.plots import plot_run

        plot_run(result.run, plot)
    if onnx:
        onnx_io.save(result.best_state().graph, onnx)
    console.print(f"{output}: world model and controller")


def of_kind(
    settings: DreamTrainSettings, kind: str, separate_reward: bool, epochs: int | None = None
) -> DreamTrainSettings:
    """Return settings for a kind of world model.

    Raises:
        OptionError: there is no such kind, it has no reward network of its own, or nothing to train in epochs.
    """
    from taso_agents.world_models.fit import FitSettings

    chosen = world_model(kind).Settings()
    if separate_reward:
        if not hasattr(chosen, "separate_reward"):
            raise OptionError(f"expected mdn with a separate reward network, found {kind}")
        chosen = replace(chosen, separate_reward=True)
    fit = FitSettings(**WORLD_MODELS[kind].fit)
    if epochs:
        if not WORLD_MODELS[kind].encoder_epoch:
            fitted = ", ".join(name for name, row in WORLD_MODELS.items() if row.encoder_epoch)
            raise OptionError(f"expected a world model of {fitted} with --epochs, found {kind}, which has none")
        fit = replace(fit, encoder_epochs=epochs)
    return replace(settings, model=chosen, fit=fit)
