"""The command ``taso-agents``; torch is imported by what needs it, so that help and mistakes are answered at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.table import Table

from taso_agents.policies import POLICIES
from taso_agents.training.settings import PPOSettings, check_numpy_seed
from taso_agents.world_models import WORLD_MODELS, world_model
from taso_gym import onnx_io
from taso_gym.atomic import check_targets
from taso_gym.checks import check_choices
from taso_gym.console import console, errors, run_app
from taso_gym.errors import OptionError
from taso_gym.onnx_io.external import files_of
from taso_gym.search import SEARCHES

if TYPE_CHECKING:
    from taso_agents.dreams.settings import DreamTrainSettings
    from taso_agents.training.evaluate import Evaluation

app = typer.Typer(
    help="Train and evaluate agents that optimise ONNX graphs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
DEFAULT = PPOSettings()
TRAIN_STEPS = (
    f"Environment steps, rounded up to a multiple of {DEFAULT.environments}, above {DEFAULT.update_steps} to one of "
    f"{DEFAULT.update_steps}; episodes that judge the policy come besides."
)
DREAM_STEPS = "Real environment steps a round, but in whole episodes; those that judge the controller come besides."
ACTOR_STEPS = "Least real steps of each actor, which plays whole episodes."
BASELINES = [name for name in SEARCHES if name != "policy"]
Model = Annotated[str, typer.Argument(help="Id of an environment, or an ONNX file.")]


@app.command()
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


@app.command()
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


@app.command()
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


@app.command()
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


@app.command()
def evaluate(
    policies: Annotated[list[Path], typer.Argument(help="Policies of one network and rule set, one a seed.")],
    model: Annotated[str | None, typer.Option(help="Another network than they were trained on.")] = None,
    episodes: Annotated[int, typer.Option(help="Drawn episodes a policy.", min=1)] = 16,
    seed: Annotated[int, typer.Option(help="Of the draws and the searches.", min=0)] = 0,
    searches: Annotated[
        str, typer.Option(help=f"To compare with, by comma: {', '.join(BASELINES)}.")
    ] = "greedy,taso,random",
) -> None:
    """Play policies on a network; compare with searches that may weigh as many candidates."""
    check_numpy_seed(seed)
    names = [name.strip() for name in searches.split(",") if name.strip()]
    check_choices("searches", (name.partition(":")[0] for name in names), BASELINES)
    from gymnasium import spaces

    from taso_agents import checkpoint
    from taso_agents.environment.real_env import expect_graph_of, expect_one_network, make_env, state_of
    from taso_agents.policies.policy_file import load_policy
    from taso_agents.training.evaluate import evaluate as evaluate_policies
    from taso_agents.training.run_state import torch_threads
    from taso_gym.search import Budget, run

    trained = {path: checkpoint.load(path, "policy")["taso"] for path in policies}
    taso = trained[policies[0]]
    others = [str(path) for path, one in trained.items() if one["graph"] != taso["graph"]]
    if others and not model:
        raise OptionError(f"expected policies of one network or --model, found another network's in {others[0]}")
    network = model or taso["model"]
    env = expect_one_network(make_env(network, **taso["arguments"]), network)
    env.reset()
    if not model:
        expect_graph_of(taso, env, policies[0])
    start = state_of(env)
    space = env.observation_space
    assert isinstance(space, spaces.Dict)
    loaded = [load_policy(path, space, env.action_space, start.rules.digest) for path in policies]
    for name in names:
        run(start, name, Budget(steps=0), seed)  # what is wrong with one is said before all episodes are played
    with torch_threads(1):
        result = evaluate_policies(loaded, env, episodes, seed)
    table = evaluation_table(result, len(policies))
    for name in names:
        found = run(start, name, Budget(steps=round(result.weighed[1])), seed)
        gain = 100 * (start.cost.time_ps - found.state.cost.time_ps) / max(start.cost.time_ps, 1)
        table.add_row(name, f"{gain:.2f}", str(found.explored))
    console.print(table)


def evaluation_table(result: Evaluation, seeds: int) -> Table:
    """Return the policy's rows: improvement with interval, and candidates weighed for it."""
    title = f"Cost saved in %, IQM over {seeds} policies with 95 % bootstrap intervals"
    table = Table("method", "saved", "candidates weighed", title=title)
    one, all_drawn = (f"{count:.0f}" for count in result.weighed)
    table.add_row("policy, most probable actions", str(result.deterministic), one)
    table.add_row("policy, actions drawn", str(result.sampled), f"{result.weighed[1] / result.episodes:.0f}")
    table.add_row(f"policy, best of {result.episodes}", str(result.best_of), all_drawn)
    return table


def main() -> NoReturn:
    """Run the command line."""
    run_app(app)
