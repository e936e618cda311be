"""The whole way in one call: load a model, search for a cheaper equal one, say what was done."""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from onnx import ModelProto

from taso_gym import cost as costs
from taso_gym import onnx_io
from taso_gym.arguments import check_kinds
from taso_gym.batch import batch_size, in_a_loop
from taso_gym.cost.objective import Objective, quantities
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.recorded import RecordedCost
from taso_gym.cost_model import Cost, CostModel
from taso_gym.equivalence import Report, validate
from taso_gym.equivalence.walk import SiteChecks, SiteError, WalkChecker
from taso_gym.graph import Graph
from taso_gym.rules.rule import Numerics
from taso_gym.rules.ruleset import RuleSet, load_checked
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search import Budget, Progress, SearchResult, run
from taso_gym.search.bouts import Bout
from taso_gym.search.contested import ContestedSearch
from taso_gym.search.equal import equal_part
from taso_gym.search.finalist import Finalist
from taso_gym.search.run import check_budget


class AppliedRule(NamedTuple):
    """A substitution on the way to the result.

    Attributes:
        rule: its name.
        site: ONNX names (or ids) of the values that the matched operators produced.
        change_ms: change of the cost; of one sample where the result is a loop.
    """

    rule: str
    site: tuple[str, ...]
    change_ms: float


@dataclass(frozen=True)
class Result:
    """What `optimize` found.

    Attributes:
        original, graph: before and after.
        start: what was searched from: the original, without the denormal floats that slow it down if it is faster so
            (`taso_gym.search.guards`), or where the result is a loop over the samples of a batch, the network for one
            (`taso_gym.batch`).
        before, after: their costs by the model that was searched with.
        applied: the substitutions in order.
        search: how the search ended.
        objective: what was lowered.
        quantities: of `taso_gym.cost.objective.QUANTITIES` before and after; memory of a loop is that of one sample.
        sites: what the rewritten sites give, each computed alone in float64.
        bouts: how finalists compared with the fastest before them, measured end to end.
        guards: the way from the original to what has no denormal floats, which is the first part of what was applied.
        share_recorded: part of the result that a recorded cost model has in its table, from 0 to 1; else None.
    """

    original: Graph
    graph: Graph
    start: Graph
    before: Cost
    after: Cost
    applied: tuple[AppliedRule, ...]
    search: SearchResult
    objective: Objective
    quantities: Mapping[str, tuple[int, int]]
    sites: SiteChecks
    bouts: tuple[Bout, ...] = ()
    guards: Finalist | None = None
    share_recorded: float | None = None

    @property
    def improvement_percent(self) -> float:
        """Part of the original cost that is saved, by the cost model; not a measured speed-up."""
        return 100 * (self.before.time_ps - self.after.time_ps) / max(self.before.time_ps, 1)

    @property
    def rewritten(self) -> Graph:
        """What the substitutions made of `start`: the result, or what it does for one sample."""
        return self.search.state.graph

    @property
    def is_loop(self) -> bool:
        """Whether the result is a loop over the samples of a batch."""
        return batch_size(self.start) != batch_size(self.original)

    @property
    def rewriting(self) -> tuple[Graph, Graph]:
        """What the result was rewritten from, and it; where it is a loop both for one sample, the first with guards."""
        return self.start if self.is_loop else self.original, self.rewritten

    def rule_counts(self) -> Counter[str]:
        """How often each rule was applied."""
        return Counter(a.rule for a in self.applied)

    def validate(self) -> Report:
        """Compare result and original on random inputs in onnxruntime."""
        return validate(self.original, self.graph, rewritten=self.rewriting)

    def save(self, path: str | Path) -> None:
        """Write the result as an ONNX file, whole or not at all."""
        onnx_io.save(self.graph, path)

    def equal_part(
        self, differs: Callable[[Graph], bool], *, for_one: bool = False
    ) -> tuple[Result, tuple[str, ...]] | None:
        """Return what is left of a result that isn't equal (`taso_gym.search.equal`), and the rules that are left out.

        Args:
            differs: whether a graph computes something else than the original.
            for_one: ask that of what a loop does for one sample, and of `start`.
        """
        end = self.search.state
        start = RewriteState(self.start, end.rules, end.cost_model)
        in_all = self.is_loop and not for_one

        def whole_differs(graph: Graph) -> bool:
            return differs(in_a_loop(graph, self.original) if in_all else graph)

        if not (rest := equal_part(Finalist("", start, self.search), whole_differs)):
            return None
        found, culprits = rest
        return _result(self.original, found.start, found.found, self.objective, self.bouts, self.guards), culprits


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
            (`taso_gym.batch`), and where denormal floats slow it down, Softmaxes may be kept from writing such
            (`taso_gym.search.guards`).
        on_contest: called with what is done then.
        **options: handed to the search (``alpha=1.0``, ``width=16``).

    Raises:
        TasoError: the model, the rules or an option are not what they have to be.
    """
    check_kinds(search=search, rules=rules, cost=cost, budget=budget)
    check_kinds(dims=dims, objective=objective, checkpoint=checkpoint)
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
        return _result(graph, start, found, goal)
    contest = ContestedSearch(start, search, seed, options, exact=numerics == "exact", say=on_contest, **kept)
    ended = contest.run(spend, left, costing)
    return _result(graph, ended.start, ended.found, goal, ended.bouts, ended.guards, whole=ended.graph)


def _is_time_alone(spend: Budget) -> bool:
    return spend.seconds < math.inf and spend.steps == math.inf


def _result(
    original: Graph,
    start: RewriteState,
    found: SearchResult,
    goal: Objective,
    bouts: tuple[Bout, ...] = (),
    guards: Finalist | None = None,
    *,
    whole: Graph | None = None,
) -> Result:
    """Return what a search found with what is said of it, without the rules that give something else at a site.

    Args:
        original: what was to be optimised.
        start: what was searched from: it, or its network for one sample, either with guards.
        found: what was found.
        goal: what was lowered.
        bouts: measurements.
        guards: what leads from the original to where all began.
        whole: what was found, as one for the batch of the original; None where that is to be made.
    """
    checker, judge, applied = WalkChecker(), start.cost_model, list[AppliedRule]()
    if guards:
        applied += replayed(guards.start, guards.found.path, checker)
    try:
        applied += replayed(start, found.path, checker)
    except SiteError as error:
        warnings.warn(f"{error}; the rule is left out", stacklevel=3)
        rest = Finalist("", start, found).without([error.rule])
        return _result(original, rest.start, rest.found, goal, bouts, guards)
    graph, before, after = found.state.graph, start.cost, found.state.cost
    if (samples := batch_size(original)) != batch_size(start.graph):
        whole, after = whole or in_a_loop(graph, original), Cost(*(samples * part for part in after))
        assert judge
        judge = costs.load(judge, start=original)  # by the times that the loop is costed by
    if start.graph is not original:
        assert judge
        before = judge.graph(original)
    ends = [quantities(g, c, judge) for g, c in ((original, before), (graph, after))]
    both = {name: (ends[0][name], ends[1][name]) for name in ends[0]}
    share = judge.share_recorded(graph) if isinstance(judge, RecordedCost) else None
    result = whole or graph
    return Result(
        original,
        result,
        start.graph,
        before,
        after,
        tuple(applied),
        found,
        goal,
        both,
        checker.result(),
        bouts,
        guards,
        share,
    )


def replayed(state: RewriteState, path: tuple[Match, ...], checker: WalkChecker) -> list[AppliedRule]:
    """Apply matches one after the other, check each site, and say for each what it did and where.

    Raises:
        SiteError: a site computes something else.
    """
    applied: list[AppliedRule] = []
    for match in path:
        child = state.apply(match)
        checker.check(state, match, child.graph)
        change_ms = (child.cost.time_ps - state.cost.time_ps) / 1e9
        site = tuple(name_of(state.graph, node_id) for node_id in match.nodes)
        applied.append(AppliedRule(state.rules[match.rule].name, site, change_ms))
        state = child
    return applied


def name_of(graph: Graph, node_id: int) -> str:
    """Return the ONNX name of a node's first output, or its operator and id where the file gave none."""
    node = graph.nodes[node_id]
    return node.names[0] or f"{node.sig.op.key}#{node_id}"
