"""What `taso_gym.optimizer.optimize` found: the graphs, the way from one to the other, and what is said of them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from taso_gym import cost as costs
from taso_gym import onnx_io
from taso_gym.batch import batch_size, in_a_loop
from taso_gym.cost.objective import Objective, quantities
from taso_gym.cost.recorded import RecordedCost
from taso_gym.cost_model import Cost
from taso_gym.equivalence import Report, validate
from taso_gym.equivalence.walk import SiteChecks, SiteError, WalkChecker
from taso_gym.graph import Graph
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search import SearchResult
from taso_gym.search.bouts import Bout
from taso_gym.search.equal import equal_part
from taso_gym.search.finalist import Finalist
from taso_gym.search.tiled import NO_TILES, Tiles


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
        quantities: of `taso_gym.cost.objective.QUANTITIES` before and after; memory of a loop is that of one sample,
            and what is in tiles counts as if it weren't, but for the time.
        sites: what the rewritten sites give, each computed alone in float64.
        bouts: how finalists compared with the fastest before them, measured end to end.
        guards: the way from the original to what has no denormal floats, which is the first part of what was applied.
        tiles: how many chains of elementwise operators the result computes tile by tile (`taso_gym.tiles`).
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
    tiles: int = 0
    share_recorded: float | None = None

    @property
    def improvement_percent(self) -> float:
        """Part of the original cost that is saved, by the cost model; not a measured speed-up."""
        return 100 * (self.before.time_ps - self.after.time_ps) / max(self.before.time_ps, 1)

    @property
    def rewritten(self) -> Graph:
        """What the substitutions made of `start`: the result but for tiles, or what it does for one sample."""
        return self.search.state.graph

    @property
    def is_loop(self) -> bool:
        """Whether the result is a loop over the samples of a batch."""
        return batch_size(self.start) != batch_size(self.original)

    @property
    def rewriting(self) -> tuple[Graph, Graph]:
        """What the result was rewritten from, and it; where it is a loop both for one sample, the first with guards."""
        return self.start if self.is_loop else self.original, self.rewritten

    def without_tiles(self) -> Result:
        """Return the same, but no chains in tiles."""
        plain = in_a_loop(self.rewritten, self.original) if self.is_loop else self.rewritten
        return replace(self, graph=plain, tiles=0)

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
        return result_of(self.original, found.start, found.found, self.objective, self.bouts, self.guards), culprits


def result_of(
    original: Graph,
    start: RewriteState,
    found: SearchResult,
    goal: Objective,
    bouts: tuple[Bout, ...] = (),
    guards: Finalist | None = None,
    *,
    whole: Graph | None = None,
    tiles: Tiles = NO_TILES,
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
        tiles: which chains of it are in tiles.
    """
    checker, judge, applied = WalkChecker(), start.cost_model, list[AppliedRule]()
    if guards:
        applied += replayed(guards.start, guards.found.path, checker)
    try:
        applied += replayed(start, found.path, checker)
    except SiteError as error:
        warnings.warn(f"{error}; the rule is left out", stacklevel=3)
        rest = Finalist("", start, found).without([error.rule])
        return result_of(original, rest.start, rest.found, goal, bouts, guards)
    graph, before = found.state.graph, start.cost
    after = found.state.cost - Cost(tiles.saved_ps)
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
        tiles.number,
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
