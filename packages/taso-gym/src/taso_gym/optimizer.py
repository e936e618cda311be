"""The whole way in one call: load a model, search for a cheaper equal one, say what was done."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onnx import ModelProto

from taso_gym import cost as costs
from taso_gym import onnx_io
from taso_gym.arguments import check_kinds
from taso_gym.checks import check_bools
from taso_gym.cost.objective import Objective
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost_model import CostModel
from taso_gym.graph import Graph
from taso_gym.result import Result, result_of
from taso_gym.rules.rule import Numerics
from taso_gym.rules.ruleset import RuleSet, load_checked
from taso_gym.rules.state import RewriteState
from taso_gym.search import Budget, Progress, run
from taso_gym.search.contested import ContestedSearch
from taso_gym.search.run import check_budget


def optimize(
    model: Graph | str | Path | ModelProto,
    search: str = "taso",
    rules: str | Path | RuleSet = "default",
    cost: str | CostModel = "roofline",
    budget: float | Budget = 60.0,
    *,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    numerics: Numerics = "reassociate",
    portable: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    checkpoint: str | Path | None = None,
    objective: str | Objective = "time",
    finalists: bool = True,
    on_contest: Callable[[str], None] | None = None,
    **options: Any,
) -> Result:
    """Search for a cheaper graph that computes the same.

    Every rewritten site is computed alone before and after; a rule that gives something else at one is left out, with
    a warning.

    Args:
        model: a graph, the path of an ONNX file, or a model in memory.
        search: a row of `taso_gym.search.SEARCHES`.
        rules: name or path of a rule set, or the set itself.
        cost: a row of `taso_gym.cost.COST_MODELS`, or a cost model itself.
        budget: seconds, or a `Budget`; where costs are measured, measuring those of the start is part of it.
        seed: of the search.
        dims: values of symbolic dimensions for a cost model given by name; they don't enter the file.
        numerics: the loosest class of rules to use; unless "exact", a model may become a loop, and lose denormal floats
            (``finalists``). A RuleSet that is given is used as it is, but refused where it has other rules than are
            wanted by "exact" or ``portable``.
        portable: leave out rules with operators beyond the ONNX standard.
        on_progress: called after every step of the search.
        checkpoint: file to write now and then, and to go on from.
        objective: what is lowered: ``time``, ``memory``, ``time+0.2*memory`` … (see `taso_gym.cost.objective`).
        finalists: where costs are measured in onnxruntime and a time is given, but no number of steps, spend a part of
            it on further searches and on measuring what they find end to end (see `taso_gym.search.contest`); a model
            for a batch is searched for one sample first then, and may become a loop unless every bit has to stay
            (`taso_gym.batch`), chains of elementwise operators may become loops over tiles (`taso_gym.tiles`), and
            where denormal floats slow it down, Softmaxes may be kept from writing such (`taso_gym.search.guards`).
        on_contest: called with what is done then.
        **options: handed to the search (``alpha=1.0``, ``width=16``).

    Raises:
        TasoError: the model, the rules or an option are not what they have to be.
    """
    check_kinds(search=search, rules=rules, cost=cost, budget=budget)
    check_kinds(dims=dims, objective=objective, checkpoint=checkpoint)
    check_bools(portable=portable, finalists=finalists)
    spend = budget if isinstance(budget, tuple) else Budget(budget)
    check_budget(spend)
    graph = model if isinstance(model, Graph) else onnx_io.load(model)
    if dims:
        graph = onnx_io.with_dims(graph, {**graph.info.dims, **dims})
    rules = load_checked(rules, portable=portable, numerics=numerics)
    judge = costs.load(cost, dims=costs.bind_dims(graph), start=graph)
    began = time.monotonic()
    start = RewriteState(graph, rules, judge)
    goal = objective if isinstance(objective, Objective) else Objective.parse(objective)
    kept = {"on_progress": on_progress, "checkpoint": checkpoint, "objective": goal}
    contested = finalists and goal.is_time and isinstance(judge, OnnxRuntimeCost) and _is_time_alone(spend)
    costing = 0.0 if judge.deterministic else time.monotonic() - began  # what the start executes was measured
    left = max(spend.seconds - costing, 0.0)
    if not contested:
        found = run(start, search, spend._replace(seconds=left), seed, **kept, **options)
        return result_of(graph, start, found, goal)
    contest = ContestedSearch(start, search, seed, options, exact=numerics == "exact", say=on_contest, **kept)
    ended = contest.run(spend, left, costing)
    return result_of(
        graph, ended.start, ended.found, goal, ended.bouts, ended.guards, whole=ended.graph, tiles=ended.tiles
    )


def _is_time_alone(spend: Budget) -> bool:
    return spend.seconds < math.inf and spend.steps == math.inf
