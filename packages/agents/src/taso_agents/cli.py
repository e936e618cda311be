"""The command ``taso-agents``; torch is imported by what needs it, so that help and mistakes are answered at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.table import Table

from taso_agents.settings import PPOSettings
from taso_gym.console import console, run_app
from taso_gym.errors import OptionError

if TYPE_CHECKING:
    from taso_agents.evaluate import Evaluation

app = typer.Typer(
    help="Train and evaluate agents that optimise ONNX graphs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
DEFAULT = PPOSettings()
Model = Annotated[str, typer.Argument(help="Id of an environment, or an ONNX file.")]


@app.command()
def train(
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the policy goes.")] = Path("policy.pt"),
    onnx: Annotated[Path | None, typer.Option(help="Where the cheapest graph goes.")] = None,
    steps: Annotated[int, typer.Option(help="Environment steps.", min=1)] = DEFAULT.steps,
    policy: Annotated[str, typer.Option(help="pointer or autoregressive.")] = DEFAULT.policy,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = DEFAULT.seed,
    run_file: Annotated[Path | None, typer.Option(help="Written after every update, and resumed from.")] = None,
) -> None:
    """Train a policy with PPO; Ctrl-C ends it and keeps what is best so far."""
    for path in (out, onnx, run_file):
        if path and not path.parent.is_dir():
            raise OptionError(f"expected a folder to write {path.name} into, found none at {path.parent}")
    settings = PPOSettings(steps=steps, policy=policy, seed=seed)
    from taso_agents.display import training_bar
    from taso_agents.ppo import train as train_policy
    from taso_gym import onnx_io

    with training_bar(console, steps) as reports:
        result = train_policy(model, settings, run_file=run_file, on_step=reports.on_step, on_point=reports.on_point)
    result.save(out)
    if onnx:
        onnx_io.save(result.best_seen.graph, onnx)
    policy_cost = min(point.policy for point in result.curve)
    seen = min(point.best_seen for point in result.curve)
    console.print(
        f"{out}: {100 * (1 - policy_cost):.2f} % faster by the cost model; best seen {100 * (1 - seen):.2f} %"
    )


@app.command()
def dream(
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where world model and controller go.")] = Path("dream.pt"),
    rounds: Annotated[int, typer.Option(help="Of collecting, fitting, dreaming and playing.", min=1)] = 3,
    steps: Annotated[int, typer.Option(help="Real environment steps a round.", min=1)] = 1500,
    dream_steps: Annotated[int, typer.Option(help="Imagined steps a round.", min=1)] = 60_000,
    temperature: Annotated[float, typer.Option(help="Temperature of the mixture in dreams.", min=0)] = 1.0,
    branch: Annotated[int, typer.Option(help="Most steps of a dream; 0 for whole episodes.", min=0)] = 8,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
) -> None:
    """Learn a world model, train a controller in its dreams and play it for real."""
    if not out.parent.is_dir():
        raise OptionError(f"expected a folder to write {out.name} into, found none at {out.parent}")
    from taso_agents.dream import DreamTrainSettings, Round, train_in_dream

    settings = DreamTrainSettings(
        rounds=rounds, steps=steps, dream_steps=dream_steps, temperature=temperature, branch=branch or None, seed=seed
    )

    def show(done: Round) -> None:
        console.print(
            f"{done.real_steps} real steps: controller saves {done.drawn:.2f} % on average, {done.best:.2f} % at best"
        )

    with console.status("dream training"):
        result = train_in_dream(model, settings, on_round=show)
    result.save(out)
    console.print(f"{out}: world model and controller")


@app.command()
def evaluate(
    policies: Annotated[list[Path], typer.Argument(help="Policies of one network and rule set, one a seed.")],
    model: Annotated[str | None, typer.Option(help="Another network than they were trained on.")] = None,
    episodes: Annotated[int, typer.Option(help="Drawn episodes a policy.", min=1)] = 16,
    seed: Annotated[int, typer.Option(help="Of the draws and the searches.")] = 0,
    searches: Annotated[str, typer.Option(help="Searches to compare with.")] = "greedy,taso,random",
) -> None:
    """Play policies on a network; compare with searches that may weigh as many candidates."""
    from gymnasium import spaces

    from taso_agents import checkpoint
    from taso_agents.evaluate import evaluate as evaluate_policies
    from taso_agents.training_env import make_env, state_of
    from taso_gym.search import Budget, run

    taso = checkpoint.load(policies[0], "policy")["taso"]
    env = make_env(model or taso["model"], **taso["arguments"])
    env.reset()
    start = state_of(env)
    space = env.observation_space
    assert isinstance(space, spaces.Dict)
    loaded = [checkpoint.load_policy(path, space, env.action_space, start.rules.digest) for path in policies]
    result = evaluate_policies(loaded, env, episodes, seed)
    table = evaluation_table(result, len(policies))
    for name in filter(None, searches.split(",")):
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
