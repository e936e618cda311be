"""The rewrites that goals of networks.toml come from, as they were made by hand: each everywhere, without a search.

What they gain depends on the machine; here they are measured beside what search finds, on the same one.
"""

from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from taso_gym import RuleSet, load, save
from taso_gym.graph import Graph
from taso_gym.onnx_io import from_model
from taso_gym.onnx_io.convert import converted
from taso_gym.rules.compiled import opset_of
from taso_gym.rules.state import Match, RewriteState


class Step(NamedTuple):
    """Rules, and where they are applied."""

    rules: str
    where: Callable[[RewriteState, Match], bool] = lambda _state, _match: True


def _channels(count: int) -> Callable[[RewriteState, Match], bool]:
    """Return whether a grouped convolution has so many channels in each group."""
    return lambda state, match: state.graph.nodes[match.nodes[0]].sig.inputs[1].shape[1] == count


LRN = [Step("lrn-as-conv-and-roots")]
RECIPES: dict[str, list[Step]] = {
    "GoogLeNet": LRN,
    "AlexNet": LRN,
    "CSPDarknet53-Mish": [Step("mish-op-as-quotient")],
    "IResNet18": [Step("prelu-as-relu")],
    "SRResNet": [Step("conv-few-outputs*"), Step("prelu-as-leaky-relu")],
    "ResNeXt50": [Step("conv-merge-groups-four*", _channels(4)), Step("conv-merge-groups-biased", _channels(8))],
    "Swin-T": [
        *(Step(name) for name in ("slices-as-split-three", "masks-of-windows", "pad-of-nothing")),
        *(Step(name) for name in ("attention-of-heads*", "add-as-sum")),
    ],
}
"""Of each network: notes on what pays in onnxruntime, section 4b."""


def by_hand(source: Path, target: Path) -> None:
    """Apply a network's recipe, in the opset that its rules need."""
    every, graph = RuleSet.load("default", numerics="fast"), load(source)
    steps = RECIPES[source.stem.rpartition("-b")[0]]
    chosen = [RuleSet([rule for rule in every if fnmatch(rule.name, step.rules)]) for step in steps]
    opset = max(opset_of(rule) for rules in chosen for rule in rules)
    if opset > graph.info.opsets[""]:
        graph = from_model(converted(source, opset))
    for step, rules in zip(steps, chosen, strict=True):
        graph = _everywhere(graph, rules, step)
    save(graph, target)


def _everywhere(graph: Graph, rules: RuleSet, step: Step) -> Graph:
    state = RewriteState(graph, rules)
    while match := next((m for row in state.matches for m in row if step.where(state, m)), None):
        state = state.apply(match)
    return state.graph
