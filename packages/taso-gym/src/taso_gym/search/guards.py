"""Softmaxes that write no denormal floats, in place of those that do where that makes a model slow.

It isn't a rule, as it isn't an identity: scores that are more than 50 below the largest of their row are taken for 50
below it. Their weights become e^-50 = 2e-22 of the largest where they were less; all of a row are 1 together, and
float32 rounds at 6e-8 of that. Smaller ones could make denormal floats of what they are multiplied by.

No costs say what it is worth, as kernels are measured with values of usual size: the whole is run against the model as
given, and searches begin with what is faster.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

from taso_gym.cost.denormals import writing_denormals
from taso_gym.cost.dims import Dims, bind_dims
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.equivalence import Baseline
from taso_gym.equivalence.walk import SiteError, WalkChecker
from taso_gym.graph import producer_of
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search.bouts import expected_seconds
from taso_gym.search.checkpoint import graph_of, named
from taso_gym.search.finalist import Finalist
from taso_gym.search.run import SearchResult

GUARD = RuleSet(
    parse_rules(
        "softmax-without-denormals: Softmax(x, axis=a) => "
        'Softmax(Max(x, Sub(ReduceMax(x, axes=[a]), 50)), axis=a) if dtype(x) == "float"',
        "guards.py",
    )
)
NAMED = "without denormals"
RACED = 0.5
"""Part of the time for a race at most: what is found for a model that is slow for its values is slow, too."""


def guarded(start: RewriteState) -> Finalist | None:
    """Return a start with guards before the Softmaxes whose denormal floats slow it down; None without any.

    Not before one whose result the graph gives, which may be compared by its logarithm.

    Raises:
        ModelError: the graph has more weights than a model in memory may have.
        CostError: it can't be run.
        OutOfMemoryError: there is no room to look at what its Softmaxes write.
    """
    graph, model = start.graph, start.cost_model
    assert isinstance(model, OnnxRuntimeCost)
    if not model.slower_in_place(graph):
        return None
    first = RewriteState(graph, GUARD, model)
    given = set(map(producer_of, graph.outputs))
    places = {match.nodes[0]: match for match in first.matches[0] if match.nodes[0] not in given}
    if not places:
        return None
    found = writing_denormals(graph, Dims(bind_dims(graph, model.dims)), model.runtime)
    state, path = _applied(first, [places[node_id] for node_id in found if node_id in places])
    ended = SearchResult(state, path, explored=0, seconds=0.0, exhausted=True, interrupted=False)
    return Finalist(NAMED, first, ended) if path else None


def _applied(state: RewriteState, matches: Iterable[Match]) -> tuple[RewriteState, tuple[Match, ...]]:
    """Apply matches one after the other, but for those that compute something else at their sites."""
    checker, path = WalkChecker(), list[Match]()
    for match in matches:
        child = state.apply(match)
        try:
            checker.check(state, match, child.graph)
        except SiteError as error:
            warnings.warn(f"{error}; it stays there as it is", stacklevel=4)
            continue
        path.append(match)
        state = child
    return state, tuple(path)


def pays(held: Finalist, checkpoint: str | Path | None, seconds: float, wins: Callable[[], bool]) -> bool:
    """Return whether a guarded model is faster, which a checkpoint or a cache of times may know.

    Args:
        held: of `guarded`.
        checkpoint: file of a search that may have begun with it, or without.
        seconds: that are left.
        wins: whether it surely is faster in a race.

    Raises:
        TasoError: one of the two can't be run.
    """
    model, start = held.model, held.start
    if begun := graph_of(checkpoint):
        return begun == named(held.graph)
    name = f"faster {NAMED}: {held.graph.hash:016x}"
    if model.recall(name):
        return True
    if expected_seconds(start.cost.time_ms, 1) > RACED * seconds or Baseline(start.graph).differs(held.graph):
        return False
    if is_faster := wins():
        model.remember(name, {"faster": True})
    return is_faster
