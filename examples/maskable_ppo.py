"""Train sb3-contrib's MaskablePPO with a graph network on a model, and write the faster ONNX file that comes of it.

    python examples/maskable_ppo.py                                  # BERT, a few minutes on 2 cores
    python examples/maskable_ppo.py TasoGraph-SqueezeNet1.1-v0 --steps 4096
    python examples/maskable_ppo.py model.onnx --output fast.onnx

Ctrl-C ends the training early and keeps the best so far.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import taso_gym
from taso_agents.environment.real_env import make_env, play, state_of
from taso_agents.training.display import training_bar
from taso_agents.training.evaluate import best_of
from taso_agents.training.ppo import TrainResult, train
from taso_agents.training.settings import PPOSettings
from taso_gym.atomic import check_target
from taso_gym.console import run_app
from taso_gym.cost.measure import measure
from taso_gym.rules.state import RewriteState
from taso_gym.search import Budget, run

TASO_SECONDS = 30.0
NO_GAIN = (
    "That is no sure gain: the roofline model, by which the agent was trained, doesn't know what onnxruntime fuses by "
    "itself. Costs that are measured there do: taso-gym optimize MODEL.onnx -o FAST.onnx --cost onnxruntime"
)
console = Console()


def learn(model: str, settings: PPOSettings) -> TrainResult:
    """Train a policy that points at the candidate to apply; the masks are part of what it sees."""
    console.print(f"{model}: training MaskablePPO")
    with training_bar(console, settings.played_steps) as reports:
        return train(model, settings, on_step=reports.on_step, on_point=reports.on_point)


def compare(start: RewriteState, result: TrainResult, seed: int) -> dict[str, RewriteState]:
    """Return the graph that each method ends with."""
    console.print(f"searching: greedy, and TASO's search for {TASO_SECONDS:g} s")
    env = make_env(result.taso["model"], **result.taso["arguments"])
    episode = best_of(result.policy, env, episodes=8, seed=seed)
    play(env, episode.actions[: episode.best_length])
    return {
        "original": start,
        "greedy": run(start, "greedy", Budget(TASO_SECONDS), seed).state,
        f"TASO's search, {TASO_SECONDS:g} s": run(start, "taso", Budget(TASO_SECONDS), seed).state,
        "policy, best of 8 episodes": state_of(env),
        "best seen in training": result.best_seen,
    }


def show(states: dict[str, RewriteState]) -> None:
    """Print what the graphs cost."""
    table = Table("graph", "cost in ms", "saved", "operators", title="By the cost model that it was trained on")
    original = states["original"].cost.time_ms
    for name, state in states.items():
        saved = f"{100 * (1 - state.cost.time_ms / original) if original else 0:.2f} %"  # views alone cost nothing
        table.add_row(name, f"{state.cost.time_ms:.4f}", saved, str(len(state.graph)))
    console.print(table)


def main(
    model: Annotated[str, typer.Argument(help="Id of an environment, or an ONNX file.")] = "TasoGraph-BERT-v0",
    steps: Annotated[int, typer.Option(help="Environment steps.", min=1)] = PPOSettings.steps,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    output: Annotated[Path, typer.Option("--output", "-o", help="The optimised model.")] = Path("optimised.onnx"),
) -> None:
    """Train an agent, compare it with searches, write its model, check and time it."""
    check_target(output)
    settings = PPOSettings(steps=steps, seed=seed)
    env = make_env(model)
    env.reset()
    start = state_of(env)
    result = learn(model, settings)
    states = compare(start, result, seed)
    show(states)

    found = min(states["policy, best of 8 episodes"], result.best_seen, key=lambda state: state.cost.time_ps)
    taso_gym.save(found.graph, output)
    original = model if Path(model).is_file() else start.graph
    report = taso_gym.validate(original, output)
    console.print(f"{output} written; on random inputs it is {report.verdict}")
    timed = measure({"original": original, "optimised": output})
    for name in timed.rounds:
        console.print(f"{name}: {timed.time_ms(name):.3f} ms in onnxruntime, {timed.estimator}")
    speedup = timed.speedup("optimised")
    console.print(f"speed-up {speedup}")
    if speedup.low <= 1:
        console.print(NO_GAIN)


if __name__ == "__main__":
    run_app(lambda: typer.run(main))
