"""``taso-agents gap``: how far dreams are from real episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taso_agents.cli.choices import ACTOR_STEPS
from taso_agents.training.settings import check_numpy_seed
from taso_gym.atomic import check_targets
from taso_gym.console import console


def gap(
    files: Annotated[list[Path], typer.Argument(help="World models of one network, written by dream; one a seed.")],
    steps: Annotated[int, typer.Option(help=ACTOR_STEPS, min=1)] = 300,
    seed: Annotated[int, typer.Option(help="Seed of these episodes.", min=0)] = 1,
    episodes: Annotated[int, typer.Option(help="Real episodes of each policy whose scores are compared.", min=0)] = 4,
    plot: Annotated[Path | None, typer.Option(help="PNG file for the curves.")] = None,
) -> None:
    """Play new real episodes and dream them with the same actions; say how far apart they are."""
    check_numpy_seed(seed)
    check_targets(plot, kept=dict.fromkeys(files, "is a world model to play"))
    from taso_agents.dreams.gap_report import report, table_of
    from taso_agents.dreams.gap_scores import scores, table_of_scores
    from taso_agents.training.run_state import torch_threads

    with console.status("playing and dreaming"), torch_threads(1):
        found = report([str(path) for path in files], steps, seed)
        compared = [scores(str(path), episodes, seed) for path in files] if episodes else []
    console.print(table_of(found))
    if compared:
        console.print(table_of_scores(compared))
    if plot:
        from taso_agents.dreams.plots import plot_gap

        plot_gap(found, plot)
