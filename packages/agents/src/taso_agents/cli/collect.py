"""``taso-agents collect``: real episodes in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from taso_agents.cli.choices import ACTOR_STEPS, Model
from taso_agents.training.settings import check_numpy_seed
from taso_gym.atomic import check_targets
from taso_gym.console import console
from taso_gym.onnx_io.external import files_of


def collect(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the episodes go.")] = Path("episodes.npz"),
    actor: Annotated[
        list[str] | None,
        typer.Option(
            help="random, random-noop (the dissertation's), greedy (with noise), or a policy's file; repeat for more; "
            "default: random and greedy."
        ),
    ] = None,
    steps: Annotated[int, typer.Option(help=ACTOR_STEPS, min=1)] = 500,
    max_steps: Annotated[int, typer.Option(help="Most steps of an episode.", min=1)] = 60,
    epsilon: Annotated[float, typer.Option(help="Chance of any candidate in greedy.", min=0, max=1)] = 0.3,
    seed: Annotated[int, typer.Option(help="Of all draws.", min=0)] = 0,
    minari: Annotated[str | None, typer.Option(help="Also a Minari dataset of this name.")] = None,
) -> None:
    """Play for real and keep the episodes: graphs, actions, cost changes of all candidates, what is legal."""
    check_numpy_seed(seed)
    actors = actor or ["random", "greedy"]
    check_targets(output, kept={**files_of(model), **{Path(name): "is an actor" for name in actors}})
    import numpy as np
    import torch

    from taso_agents.data.collect import collect as collect_episodes
    from taso_agents.data.collect import empty_dataset
    from taso_agents.data.minari_data import installed_minari, write_minari
    from taso_agents.dreams.actors import actor_named, views_of
    from taso_agents.environment.real_env import expect_one_network, make_env
    from taso_agents.training.run_state import torch_threads

    torch.manual_seed(seed)
    env = make_env(model, max_steps=max_steps, extra_views=views_of(actors))
    if minari:
        expect_one_network(env, model)  # episodes are played again, from the same graph
        installed_minari()
    env.reset(seed=seed)
    dataset, rng = empty_dataset(env), np.random.default_rng(seed)
    with torch_threads(1):
        for name in actors:
            collect_episodes(env, actor_named(name, env, epsilon), steps, rng, dataset)
    dataset.save(output)
    if minari:
        write_minari(dataset, model, minari, max_steps=max_steps)
    depths = dataset.depth_histogram()
    table = Table("steps taken", "states", title=f"{dataset.steps} steps in {len(dataset.episodes)} episodes")
    for first in range(0, len(depths), 10):
        table.add_row(f"{first} to {first + 9}", str(depths[first : first + 10].sum()))
    console.print(table)
