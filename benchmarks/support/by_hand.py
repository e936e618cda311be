"""The rewrites that goals of networks.toml come from, as they were made by hand: each wherever it fits, no search.

What they gain depends on the machine; here they are measured beside what search finds, on the same one.
"""

import math
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
from taso_gym.tensor import TensorType


class Step(NamedTuple):
    """Rules, and where they are applied."""

    rules: str
    where: Callable[[RewriteState, Match], bool] = lambda _state, _match: True


def _channels(least: int, most: float = math.inf) -> Callable[[RewriteState, Match], bool]:
    """Return whether a convolution has so many input channels in each group."""

    def holds(state: RewriteState, match: Match) -> bool:
        kernel = state.graph.nodes[match.nodes[0]].sig.inputs[1]
        assert isinstance(kernel, TensorType) and kernel.shape and isinstance(kernel.shape[1], int)
        return least <= kernel.shape[1] <= most

    return holds


LRN = [Step("lrn-as-conv-and-roots")]
HEADS = [Step("transpose-through-heads"), Step("reshape-identity"), Step("guard-of-softmax*")]
ATTENTION = [*HEADS, Step("attention-of-*")]
SUM = Step("layer-norm-of-sum")
WINOGRAD = Step("conv-winograd-four*", _channels(128))
BRANCHES = [
    Step("conv-fold-scale-biased"),
    *(Step(f"conv-{name}") for name in ("depthwise-add-batch-norm", "add-batch-norm", "add-kernels*")),
    *(Step(f"conv-{name}") for name in ("depthwise-add-batch-norm", "add-batch-norm")),
]
RECIPES: dict[str, list[Step]] = {
    "BERT-sdpa": [*ATTENTION, SUM],
    "BERT-eager": [*ATTENTION, SUM],
    "DenseNet121-light": [Step("batch-norm-fold-scale"), Step("batch-norm-fold-shift")],
    "NASNet-A-large": [Step("avg-pool-as-conv*")],
    "VGG19": [WINOGRAD],
    "ResNeXt50": [Step("conv-merge-groups-four*", _channels(4, 4)), Step("conv-merge-groups-biased", _channels(8, 8))],
    "GoogLeNet": LRN,
    "AlexNet": LRN,
    "CSPDarknet53-Mish": [Step("mish-op-as-quotient")],
    "IResNet18": [Step("prelu-as-relu")],
    "SRResNet": [Step("conv-few-outputs*"), Step("prelu-as-leaky-relu")],
    "RepVGG-A2": [*BRANCHES, WINOGRAD],
    "MobileOne-s1": BRANCHES,
    "FastViT-t8": BRANCHES,
    "ViT-B16": ATTENTION,
    "GPT2": ATTENTION,
    "T5-encoder": ATTENTION,
    "Swin-T": [
        *(Step(name) for name in ("slices-as-split-three", "masks-of-windows", "pad-of-nothing")),
        *(Step(name) for name in ("attention-of-heads*", "add-as-sum")),
    ],
    "Whisper-encoder": [*HEADS, Step("multi-head-attention-unscaled")],
    "Wav2Vec2": [Step("conv-1d-as-2d*"), *ATTENTION, SUM],
    "MobileViT-s": [Step("slices-as-split-three"), *ATTENTION, SUM],
    "ResNeSt50": [Step("sum-of-two-slices")],
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
