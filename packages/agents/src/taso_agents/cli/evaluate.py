"""``taso-agents evaluate``: policies beside searches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from taso_agents.training.settings import check_numpy_seed
from taso_gym.checks import check_choices
from taso_gym.console import console
from taso_gym.errors import OptionError
from taso_gym.search import SEARCHES

if TYPE_CHECKING:
    from taso_agents.training.evaluate import Evaluation

BASELINES = [name for name in SEARCHES if name != "policy"]


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
