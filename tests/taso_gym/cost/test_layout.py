"""What follows a convolution is on blocks where onnxruntime keeps it so."""

from collections.abc import Callable
from itertools import chain, product

import pytest
from cost_graphs import weight

from taso_gym.builder import GraphBuilder
from taso_gym.cost.blocks import Blocks
from taso_gym.cost.layout import Layouts
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.runtime import Runtime
from taso_gym.onnx_io import to_model
from taso_gym.tensor import TensorType
from taso_gym.weights import literal

pytest.importorskip("onnxruntime")
AFTER: dict[str, Callable[[GraphBuilder, int, int], int]] = {
    "normal": lambda b, x, i: b.add("BatchNormalization", x, *(weight(b, f"{part}{i}", 16) for part in "smbv")),
    "channels": lambda b, x, i: b.add("Mul", x, channels(b, i)),
    "channels first": lambda b, x, i: b.add("Mul", channels(b, i), x),
    "scalar": lambda b, x, i: b.add("Mul", x, scalar(b, i)),
    "scalar first": lambda b, x, i: b.add("Mul", scalar(b, i), x),
    "add": lambda b, x, i: b.add("Add", x, channels(b, i)),
    "add first": lambda b, x, i: b.add("Add", channels(b, i), x),
    "clip": lambda b, x, _: b.add("Clip", x, min=0.0, max=6.0),
    "leaky": lambda b, x, _: b.add("LeakyRelu", x, alpha=0.1),
    "relu": lambda b, x, _: b.add("Relu", x),
}
"""What follows an image, by its place: constants of two places aren't the same."""


def channels(b: GraphBuilder, place: int) -> int:
    """Add a constant for each channel."""
    return weight(b, f"c{place}", 16, 1, 1)


def scalar(b: GraphBuilder, place: int) -> int:
    """Add a constant of rank 0."""
    return b.weight(f"n{place}", *literal(2.0 + place, "float"))


def conv(b: GraphBuilder, x: int, name: str) -> int:
    """Add a convolution."""
    return b.add("Conv", x, weight(b, name, 16, 16, 1, 1))


@pytest.fixture(scope="module")
def layouts() -> Layouts:
    """Those of this machine."""
    found = OnnxRuntimeCost().layouts
    if not found.block:
        pytest.skip("onnxruntime keeps nothing in blocks on this CPU")
    return found


@pytest.mark.parametrize("first", AFTER)
@pytest.mark.parametrize("source", ["Conv", "MaxPool"])
def test_two_operators_after_one_that_makes_blocks(first: str, source: str, layouts: Layouts) -> None:
    for names in chain([(first,)], product([first], AFTER)):
        b = GraphBuilder({"": 20})
        x = b.input("x", TensorType("float", (1, 16, 8, 8)))
        x = conv(b, x, "w") if source == "Conv" else b.add(source, x, kernel_shape=(1, 1))
        values = [x := AFTER[what](b, x, place) for place, what in enumerate(names)]
        b.output("y", conv(b, x, "last"))
        graph = b.build()
        blocks, executed = Blocks(graph, layouts), Runtime("cpu", 1).optimised(to_model(graph).SerializeToString())
        reorders = sum(node.op_type == "ReorderInput" for node in executed.graph.node)
        assert all(blocks[value] for value in values) == (reorders == 1), names
