"""The contexts against onnxruntime: over a graph they name exactly the kernels that it executes for the whole."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cost_graphs import weight

from taso_gym.builder import GraphBuilder
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.region import lone
from taso_gym.graph import Graph
from taso_gym.tensor import TensorType
from taso_gym.weights import literal

pytest.importorskip("onnxruntime")
Build = Callable[[GraphBuilder], int]
GRAPHS: dict[str, Build] = {}
NEAREST = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
"""How a Resize repeats pixels that onnxruntime has a kernel on blocks for."""


def graph(build: Build) -> Build:
    """Enter a graph into the table."""
    GRAPHS[build.__name__] = build
    return build


def image(b: GraphBuilder, channels: int = 32, name: str = "x") -> int:
    """Add an input image."""
    return b.input(name, TensorType("float", (1, channels, 8, 8)))


def tokens(b: GraphBuilder, width: int = 32, name: str = "x") -> int:
    """Add an input sequence."""
    return b.input(name, TensorType("float", (1, 16, width)))


def conv(b: GraphBuilder, x: int, made: int, size: int = 1, group: int = 1) -> int:
    """Add a convolution that keeps the image's size."""
    taken = b.shape_of(x)[1]
    assert isinstance(taken, int)
    name = f"w{b.shape_of(x)}{made}{size}{group}{x}"
    pads = (size // 2,) * 4
    return b.add("Conv", x, weight(b, name, made, taken // group, size, size), pads=pads, group=group)


def norm(b: GraphBuilder, x: int) -> int:
    """Add an inference BatchNormalization."""
    channels = b.shape_of(x)[1]
    assert isinstance(channels, int)
    return b.add("BatchNormalization", x, *(weight(b, f"{x}{part}", channels) for part in "smbv"))


def number(b: GraphBuilder, value: float) -> int:
    """Add a scalar constant."""
    return b.weight(f"number {value}", *literal(value, "float"))


def linear(b: GraphBuilder, x: int, width: int = 32, bias: bool = True) -> int:
    """Add a product with a weight, and a bias."""
    product = b.add("MatMul", x, weight(b, f"w{x}", int(str(b.shape_of(x)[-1])), width))
    return b.add("Add", product, weight(b, f"b{x}", width)) if bias else product


@graph
def convolutions_with_everything_after(b: GraphBuilder) -> int:
    x = b.add("Relu", norm(b, conv(b, image(b, 3), 32, 3)))
    return b.add("Relu", b.add("Add", norm(b, conv(b, x, 32, 3)), x))


@graph
def convolution_scaled_and_shifted(b: GraphBuilder) -> int:
    x = norm(b, conv(b, image(b), 32, 3))
    x = b.add("Mul", x, weight(b, "scale", 32, 1, 1))
    return conv(b, b.add("Relu", b.add("Add", x, weight(b, "shift", 32, 1, 1))), 32)


@graph
def convolution_normalised_scaled_and_shifted(b: GraphBuilder) -> int:
    """As Caffe's files have it."""
    x = b.add("Mul", norm(b, conv(b, image(b), 32, 3)), weight(b, "scale", 32, 1, 1))
    x = b.add("Relu", b.add("Add", x, weight(b, "shift", 32, 1, 1)))
    return conv(b, b.add("MaxPool", x, kernel_shape=(3, 3), pads=(1, 1, 1, 1)), 32)


@graph
def image_normalised_scaled_and_shifted(b: GraphBuilder) -> int:
    """The same without a convolution to fold it into."""
    x = b.add("MaxPool", conv(b, image(b), 32, 3), kernel_shape=(3, 3), pads=(1, 1, 1, 1))
    x = b.add("Mul", norm(b, x), weight(b, "scale", 32, 1, 1))
    return conv(b, b.add("Relu", b.add("Add", x, weight(b, "shift", 32, 1, 1))), 32)


@graph
def normalised_branch_added(b: GraphBuilder) -> int:
    x = b.add("Relu", conv(b, image(b), 32))
    return conv(b, b.add("Relu", b.add("Add", norm(b, x), norm(b, conv(b, x, 32)))), 32)


@graph
def normalised_branch_added_last(b: GraphBuilder) -> int:
    x = b.add("Relu", conv(b, image(b), 32))
    return conv(b, b.add("Relu", b.add("Add", norm(b, conv(b, x, 32)), norm(b, x))), 32)


@graph
def three_branches_added(b: GraphBuilder) -> int:
    x = b.add("Relu", conv(b, image(b), 32))
    convolutions = b.add("Add", conv(b, x, 32, 3), conv(b, x, 32))
    return conv(b, b.add("Relu", b.add("Add", convolutions, norm(b, x))), 32)


@graph
def two_convolutions_added(b: GraphBuilder) -> int:
    x = b.add("Relu", conv(b, image(b), 32))
    return b.add("Relu", b.add("Add", conv(b, x, 32), conv(b, x, 32)))


@graph
def parallel_convolutions_merged(b: GraphBuilder) -> int:
    x = b.add("Relu", conv(b, image(b), 32))
    left = b.add("Split", conv(b, x, 64), axis=1, split=(32, 32))
    return b.add("Concat", conv(b, left, 16), conv(b, left + 1, 16), axis=1)


@graph
def concatenation_of_blocks(b: GraphBuilder) -> int:
    x = conv(b, image(b), 32)
    joined = b.add("Concat", b.add("Relu", conv(b, x, 16)), b.add("Relu", conv(b, x, 16, 3)), axis=1)
    return b.add("GlobalAveragePool", conv(b, joined, 32))


@graph
def concatenation_of_odd_channels(b: GraphBuilder) -> int:
    x = conv(b, image(b), 32)
    return conv(b, b.add("Concat", conv(b, x, 24), conv(b, x, 24), axis=1), 16)


@graph
def operators_without_blocks_between(b: GraphBuilder) -> int:
    x = conv(b, image(b), 32)
    return conv(b, b.add("PRelu", x, weight(b, "slope", 32, 1, 1)), 32)


@graph
def grouped_convolutions(b: GraphBuilder) -> int:
    x = conv(b, conv(b, image(b), 32), 32, 3, group=4)
    return conv(b, conv(b, x, 32, 3, group=2), 32, 3, group=32)


@graph
def pools(b: GraphBuilder) -> int:
    x = b.add("MaxPool", conv(b, image(b), 32), kernel_shape=(2, 2))
    odd = b.add("AveragePool", conv(b, x, 20), kernel_shape=(2, 2))
    return b.add("Flatten", b.add("GlobalAveragePool", conv(b, odd, 32)))


@graph
def squeeze_and_excite(b: GraphBuilder) -> int:
    x = b.add("HardSwish", norm(b, conv(b, image(b), 32)))
    gate = b.add("HardSigmoid", conv(b, b.add("Relu", conv(b, b.add("GlobalAveragePool", x), 16)), 32))
    return conv(b, b.add("Mul", x, gate), 32)


@graph
def normalisation_before_convolution(b: GraphBuilder) -> int:
    x = conv(b, image(b), 32)
    return conv(b, b.add("Relu", norm(b, b.add("Concat", x, conv(b, x, 32), axis=1))), 32)


@graph
def swish(b: GraphBuilder) -> int:
    x = conv(b, image(b), 32)
    return conv(b, b.add("Mul", x, b.add("Sigmoid", x)), 32)


@graph
def padding_before_convolution(b: GraphBuilder) -> int:
    return conv(b, b.add("Pad", image(b), pads=(0, 0, 1, 1, 0, 0, 1, 1)), 32)


@graph
def linear_layers(b: GraphBuilder) -> int:
    return linear(b, b.add("Gelu", linear(b, tokens(b), 64)))


@graph
def gelu_by_erf(b: GraphBuilder) -> int:
    x = linear(b, tokens(b))
    error = b.add("Add", b.add("Erf", b.add("Div", x, number(b, 1.4142135381698608))), number(b, 1.0))
    return linear(b, b.add("Mul", b.add("Mul", x, error), number(b, 0.5)))


@graph
def gelu_by_tanh(b: GraphBuilder) -> int:
    x = linear(b, tokens(b))
    cube = b.add("Mul", b.add("Pow", x, number(b, 3.0)), number(b, 0.044715))
    inner = b.add("Mul", b.add("Add", x, cube), number(b, 0.7978845608028654))
    outer = b.add("Add", b.add("Tanh", inner), number(b, 1.0))
    return linear(b, b.add("Mul", b.add("Mul", x, number(b, 0.5)), outer))


@graph
def layer_normalisation_written_out(b: GraphBuilder) -> int:
    x = linear(b, tokens(b))
    centred = b.add("Sub", x, b.add("ReduceMean", x, axes=(2,)))
    variance = b.add("ReduceMean", b.add("Pow", centred, number(b, 2.0)), axes=(2,))
    scaled = b.add("Div", centred, b.add("Sqrt", b.add("Add", variance, number(b, 1e-5))))
    return linear(b, b.add("Add", b.add("Mul", scaled, weight(b, "g", 32)), weight(b, "s", 32)))


@graph
def upsampled_sum(b: GraphBuilder) -> int:
    """A branch of half the size, brought back by a kernel that works on blocks."""
    x = conv(b, image(b, 16), 16)
    half = conv(b, b.add("MaxPool", x, kernel_shape=(2, 2), strides=(2, 2)), 16)
    return conv(b, b.add("Add", x, b.add("Resize", half, scales=(1.0, 1.0, 2.0, 2.0), **NEAREST)), 16)


@graph
def resized_by_a_fraction(b: GraphBuilder) -> int:
    x = conv(b, image(b, 16), 16)
    return conv(b, b.add("Resize", x, scales=(1.0, 1.0, 1.5, 1.5), **NEAREST), 16)


@graph
def gate_for_all_pixels(b: GraphBuilder) -> int:
    """One number for each channel, repeated, so that the product runs on blocks."""
    x = conv(b, image(b, 16), 16, 3)
    gate = b.add("Sigmoid", conv(b, b.add("GlobalAveragePool", x), 16))
    return conv(b, b.add("Mul", x, b.add("Resize", gate, scales=(1.0, 1.0, 8.0, 8.0), **NEAREST)), 16)


@graph
def leaky_sum_as_convolution(b: GraphBuilder) -> int:
    """A convolution by ones that adds and activates."""
    x = b.add("Relu", conv(b, image(b, 16), 16))
    parts = (conv(b, x, 16), weight(b, "ones", 16, 1, 1, 1), weight(b, "none", 16), conv(b, x, 16, 3))
    active: dict[str, Any] = {"activation": "LeakyRelu", "activation_params": (0.1,)}
    return conv(b, b.add("FusedConv", *parts, domain="com.microsoft", group=16, **active), 16)


@graph
def plain_operand_put_into_blocks(b: GraphBuilder) -> int:
    """A sum runs on blocks, as a convolution by ones has put its plain operand into them."""
    x = b.add("Sin", image(b, 16))
    return conv(b, b.add("Add", conv(b, x, 16, 1, 16), conv(b, x, 16, 3)), 16)


@graph
def shuffled_channels(b: GraphBuilder) -> int:
    """A view that is read in blocks: the reader pays for the conversion."""
    x = conv(b, image(b, 16), 16)
    groups = b.add("Reshape", x, shape=(1, 4, 4, 8, 8))
    back = b.add("Reshape", b.add("Transpose", groups, perm=(0, 2, 1, 3, 4)), shape=(1, 16, 8, 8))
    return conv(b, back, 16, 3, group=16)


@graph
def long_plain_sums(b: GraphBuilder) -> int:
    """What makes the last sum plain is far before it."""
    x = b.add("Sin", conv(b, image(b, 16), 16))
    for _ in range(8):
        x = b.add("Relu", b.add("Add", x, conv(b, x, 16)))
    return conv(b, x, 16)


@graph
def two_slices(b: GraphBuilder) -> int:
    """Slices that make up the whole of a value are one Split."""
    x = b.add("Sin", image(b, 16))
    parts = [b.add("Slice", x, starts=(i,), ends=(i + 8,), axes=(1,), steps=(1,)) for i in (8, 0)]
    return b.add("Concat", *(b.add("Sin", part) for part in parts), axis=1)


@graph
def sum_of_two_convolutions(b: GraphBuilder) -> int:
    """A Sum of two is fused like an Add."""
    x = b.add("Relu", conv(b, image(b, 16), 16))
    return b.add("Relu", b.add("Sum", conv(b, x, 16), conv(b, x, 16, 3)))


@graph
def sum_of_a_normalised_and_a_grouped_convolution(b: GraphBuilder) -> int:
    """Off blocks a convolution adds, not the first operand's normalisation."""
    x = b.add("Sin", image(b, 16))
    grouped = b.add("Conv", x, weight(b, "w", 16, 2, 3, 3), weight(b, "b", 16), pads=(1,) * 4, group=8)
    return b.add("Relu", b.add("Add", norm(b, x), grouped))


@graph
def scaled_channels(b: GraphBuilder) -> int:
    """On blocks a scale for each channel is a depthwise convolution, which adds and activates."""
    x = b.add("MaxPool", image(b, 16), kernel_shape=(3, 3), pads=(1, 1, 1, 1))
    scaled = b.add("Mul", weight(b, "scale", 16, 1, 1), x)
    return conv(b, b.add("Relu", b.add("Add", scaled, x)), 16, 3)


@graph
def affine_operators_in_any_order(b: GraphBuilder) -> int:
    x = conv(b, image(b, 16), 16)
    x = norm(b, b.add("Add", x, weight(b, "shift", 16, 1, 1)))
    x = b.add("Add", b.add("Mul", x, weight(b, "scale", 16, 1, 1)), weight(b, "again", 16, 1, 1))
    return conv(b, b.add("Relu", x), 16)


@graph
def global_pool_of_a_plain_value(b: GraphBuilder) -> int:
    x = b.add("GlobalAveragePool", b.add("Sin", image(b, 16)))
    return conv(b, x, 16)


@graph
def global_pool_of_an_odd_number_of_channels(b: GraphBuilder) -> int:
    x = b.add("GlobalAveragePool", b.add("Relu", conv(b, image(b, 16), 24)))
    return b.add("Sin", b.add("Flatten", x))


@graph
def activation_of_few_channels(b: GraphBuilder) -> int:
    """Less than a block is made and activated in blocks, but a convolution doesn't read it so."""
    x = conv(b, image(b, 16), 6)
    return conv(b, b.add("Mul", x, b.add("Sigmoid", x)), 16)


@graph
def hard_swish_written_out(b: GraphBuilder) -> int:
    """A convolution takes in both operators."""
    x = norm(b, conv(b, image(b, 16), 16, 3))
    return conv(b, b.add("Mul", b.add("HardSigmoid", x, alpha=1 / 6, beta=0.5), x), 16)


@graph
def gelu_on_blocks(b: GraphBuilder) -> int:
    x = b.add("Gelu", conv(b, image(b, 16), 16), domain="com.microsoft")
    return conv(b, b.add("Add", norm(b, x), x), 16)


@graph
def fused_sums(b: GraphBuilder) -> int:
    """A file's FusedConv runs on blocks where what it adds is in blocks."""
    x = conv(b, image(b, 16), 16)
    for place, added in enumerate((b.add("Relu", x), b.add("Sin", x))):
        weights = weight(b, f"fused{place}", 16, 16, 1, 1), weight(b, f"bias{place}", 16)
        x = b.add("FusedConv", x, *weights, added, domain="com.microsoft", activation="Relu")
        x = b.add("Add", x, conv(b, x, 16))
    return x


@graph
def transposed_for_a_product_and_others(b: GraphBuilder) -> int:
    """A product takes a Transpose in that others read, too."""
    x = b.add("Transpose", b.add("Sin", tokens(b)), perm=(0, 2, 1))
    return b.add("Add", linear(b, x, 16, bias=False), x)


@graph
def skip_connections(b: GraphBuilder) -> int:
    x = tokens(b)
    total = b.add("Add", linear(b, x), x)
    once = b.add("LayerNormalization", total, weight(b, "g", 32), weight(b, "s", 32))
    again = b.add("Add", linear(b, once), once)
    twice = b.add("LayerNormalization", again, weight(b, "g2", 32), weight(b, "s2", 32))
    return b.add("Add", again, linear(b, twice))


@graph
def attention_scores(b: GraphBuilder) -> int:
    q, k = (b.input(name, TensorType("float", (1, 4, 16, 8))) for name in "qk")
    scores = b.add("MatMul", q, b.add("Transpose", k, perm=(0, 1, 3, 2)))
    return b.add("Softmax", b.add("Div", scores, number(b, 8.0)))


@graph
def recurrent_cell(b: GraphBuilder) -> int:
    x, h = (b.input(name, TensorType("float", (1, 32))) for name in "xh")
    gate = b.add("Sigmoid", b.add("Add", linear(b, x, bias=False), linear(b, h, bias=False)))
    return b.add("Mul", gate, b.add("Tanh", linear(b, x, bias=True)))


def build(name: str) -> Graph:
    """Build a graph of the table."""
    b = GraphBuilder({"": 20})
    b.output("y", GRAPHS[name](b))
    return b.build()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> OnnxRuntimeCost:
    """A model with a cache of its own."""
    return OnnxRuntimeCost(cache=tmp_path_factory.mktemp("cache") / "cache.sqlite")


def test_kernels_are_those_of_the_files_opset(tmp_path: Path) -> None:
    """onnxruntime's AveragePool of opset 19 takes several times as long as that of opset 11."""
    found: dict[int, int] = {}
    for opset in (13, 20):
        b = GraphBuilder({"": opset})
        b.output("y", b.add("AveragePool", image(b, 20), kernel_shape=(3, 3), pads=(1, 1, 1, 1)))  # no whole blocks
        graph = b.build()
        model = OnnxRuntimeCost(cache=tmp_path / "cache.sqlite", start=graph)
        predicted = model.executed_in(lone(next(node.sig for _, node in graph.operators())))
        assert predicted == [key for key, _ in model.executed(graph)]
        found[opset] = model.graph(graph).time_ps
    assert found[13] < found[20]


def operators(keys: list[str]) -> Counter[str]:
    """Count kernels by operator and activation."""
    fused = [key.partition("activation=")[2].split(",")[0].rstrip("]") for key in keys]
    return Counter(f"{key.split('[')[0]} {activation}".strip() for key, activation in zip(keys, fused, strict=True))


@pytest.mark.parametrize("name", GRAPHS)
def test_contexts_name_what_is_executed(name: str, model: OnnxRuntimeCost) -> None:
    found, predicted = build(name), list[str]()
    for region in model.regions(found):
        keys = model.executed_in(region)
        assert keys is not None
        predicted += keys
    assert operators(predicted) == operators([key for key, _ in model.executed(found)])
