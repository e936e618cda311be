"""What else may make a model faster: lines on what `taso-gym optimize` wasn't asked to do."""

from __future__ import annotations

from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.errors import CostError
from taso_gym.graph import Graph
from taso_gym.result import Result
from taso_gym.rules.compiled import opset_of
from taso_gym.rules.pattern import operator_named
from taso_gym.rules.ruleset import RuleSet, operators_of


def hints(result: Result, settings: bool) -> list[str]:
    """Return the lines for a result; ``settings``: session settings were looked for."""
    state = result.search.state
    found = [newer_opset(result.original, state.rules), more_time(result)]
    if isinstance(state.cost_model, OnnxRuntimeCost) and not settings:
        found.append(denormals(result.start, state.cost_model))
    return [hint for hint in found if hint]


def newer_opset(graph: Graph, rules: RuleSet) -> str:
    """Return a line on rules for operators that a graph has which need a newer opset than it has; empty without any."""
    opset = graph.info.opsets.get("", 0)
    present = {node.sig.op for _, node in graph.operators()}
    needed = [opset_of(rule) for rule in rules if present.issuperset(map(operator_named, operators_of(rule.lhs)))]
    if not (newer := [each for each in needed if each > opset]):
        return ""
    return (
        f"{len(newer)} more rule{'s' if len(newer) > 1 else ''} for operators of this model need opset {max(newer)}, "
        f"and it has {opset}: --opset {max(newer)} converts it first"
    )


def more_time(result: Result) -> str:
    """Return a line on a search that was still finding better graphs when its time was over; empty for another."""
    if not result.search.cut_short:
        return ""
    measured = isinstance(result.search.state.cost_model, OnnxRuntimeCost)
    sooner = ", and begins with the times that were measured by now" if measured else ""
    return f"better graphs were still found when its time was over: a longer --budget may find more{sooner}"


def denormals(graph: Graph, model: OnnxRuntimeCost) -> str:
    """Return a line on operators that are slow for what values they have in a graph; empty without any."""
    try:
        slow = sorted(model.slower_in_place(graph).items(), key=lambda found: found[1][1] - found[1][0])
    except CostError:  # the cache was lost meanwhile: a result that was found is worth more than a hint
        return ""
    if not slow:
        return ""
    named = ", ".join(
        f"{name} {there / 1e9:.1f} ms ({there / max(alone, 1):.1f} times)" for name, (there, alone) in slow
    )
    return (
        f"slower in this model than alone: {named}, as floats below 1.2e-38 make kernels on some processors: "
        "--session-settings also tries a session that takes these for zero"
    )
