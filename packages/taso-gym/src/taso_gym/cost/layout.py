"""Emulates which values onnxruntime's CPU provider keeps in its blocked layout NCHWc.

A convolution or pool that works on blocks of channels reads and writes them interleaved; wherever such a value meets an
operator that can't, a reorder runs. `tests/taso_gym/cost/test_fidelity.py` compares what follows from these tables with
what onnxruntime executes. An element-wise operator runs on blocks where its operands are in blocks, and these may have
theirs from far away: `taso_gym.cost.blocks` follows that through a graph.
"""

from __future__ import annotations

from typing import cast

from taso_gym.graph import Graph, Node, producer_of
from taso_gym.signature import Signature
from taso_gym.symbolic import Shape
from taso_gym.tensor import TensorType, ValueType

CONVOLUTIONS = frozenset({"Conv", "ms.FusedConv"})
POOLS, GLOBAL_POOLS = frozenset({"MaxPool", "AveragePool"}), frozenset({"GlobalAveragePool", "GlobalMaxPool"})
ACTIVATIONS = frozenset({"Relu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Gelu", "ms.Gelu", "ms.QuickGelu"})
FOLLOWING = ACTIVATIONS | GLOBAL_POOLS | {"BatchNormalization", "Identity"}
"""Run on whatever layout their input has."""
PAIRING = frozenset({"Add", "Mul", "Sum"})
"""Run on blocks where all operands are blocked and of one shape."""
AFFINE = frozenset({"BatchNormalization", "Mul", "Add"})
"""Fold into the convolution before them (Add and Mul: with a constant, see `_folded`)."""
FOLDED = AFFINE | {"Clip", "LeakyRelu"}
"""Run on blocks as part of the convolution before them."""
CARRYING = FOLLOWING | PAIRING | FOLDED | {"Concat", "Resize", "ms.FusedConv"}
"""May hand the blocks of their inputs on."""
SUM_INPUT = 3
"""Input of FusedConv that is added to its result."""
REACH = 5
"""How many operators before one are looked at for a convolution that it becomes part of; what is further away matters
only by the layouts of the operands."""


class Layouts:
    """Answers questions about layouts on a machine whose blocks have so many channels."""

    def __init__(self, block: int) -> None:
        """Take the number of channels in a block: 16 with AVX-512, 8 with AVX2; 0 where there is no such layout."""
        self.block = block

    def deciding(self, graph: Graph, value: int) -> bool | list[int]:
        """Return whether a value is produced in blocks, or the values all of which have to be for it to be so."""
        shape = image_shape(graph.type_of(value))
        if not self.block or shape is None or value in graph.leaves:
            return False
        node = graph.nodes[producer_of(value)]
        key = node.sig.op.key
        if key in CONVOLUTIONS:
            if not self.takes_convolution(node.sig):
                return False
            return [v for v in node.inputs[SUM_INPUT:] if v is not None] or True
        if key in POOLS:
            return len(node.sig.outputs) == 1 and self._whole(shape)
        return self._operands(graph, node, shape) if key in CARRYING else False

    def _operands(self, graph: Graph, node: Node, shape: Shape) -> bool | list[int]:
        key, sig = node.sig.op.key, node.sig
        data = _data_of(node)
        if key == "Concat":
            shapes = [image_shape(graph.type_of(v)) for v in data]
            whole = all(found is not None and self._whole(found) for found in shapes)
            if sig.attr("axis") != 1 or len(data) != len(sig.inputs) or not whole:
                return False
        elif key in PAIRING and len(data) == len(sig.inputs):
            if any(image_shape(graph.type_of(v)) != shape for v in data):
                return False
        elif key in GLOBAL_POOLS:
            if not self._whole(shape):
                return False
        elif key == "Resize":
            if not self._upsamples(sig):
                return False
        elif not (key in FOLLOWING or scales_channels(sig) or self._folds(graph, sig, data)):
            return False
        return data

    def _upsamples(self, sig: Signature) -> bool:
        """Whether a Resize by whole numbers, to the nearest or linear, has a kernel for blocks."""
        scales = cast("tuple[float, ...]", sig.attr("scales") or ())
        if scales[:2] != (1.0, 1.0) or any(scale < 1 or scale % 1 for scale in scales):
            return False
        mode, at = sig.attr("mode"), sig.attr("coordinate_transformation_mode")
        if mode == "nearest":
            return at == "asymmetric" and sig.attr("nearest_mode") == "floor"
        return mode == "linear" and at in ("asymmetric", "align_corners", "half_pixel")

    def _folds(self, graph: Graph, sig: Signature, data: list[int]) -> bool:
        """Whether an operator becomes part of a convolution, like all between the two; a Clip takes a Relu in."""
        folded, reader = _folded(sig), sig.op.key
        for _ in range(REACH):
            if not folded or not _read_once(graph, data):
                return False
            node = graph.nodes[producer_of(data[0])]
            key = node.sig.op.key
            if key == "Conv":
                return True
            folded = (key in AFFINE and _folded(node.sig)) or (key == "Relu" and reader == "Clip")
            data, reader = _data_of(node), key
        return False

    def convolution_reads(self, sig: Signature, index: int) -> bool:
        """Whether a convolution that runs on blocks takes an input so."""
        return index == SUM_INPUT or (index == 0 and not self._few_channels(sig))

    def takes_convolution(self, sig: Signature) -> bool:
        """Whether a convolution runs on blocks: two-dimensional, constant weights, whole blocks per group."""
        data, weight = sig.inputs[0], sig.inputs[1]
        if not self.block or not isinstance(data, TensorType) or not isinstance(weight, TensorType):
            return False
        if data.dtype != "float" or weight.shape is None or len(weight.shape) != 4 or not weight.const:
            return False
        made, taken, groups = weight.shape[0], weight.shape[1], sig.attr("group")
        if not isinstance(made, int) or not isinstance(taken, int):
            return False
        if groups == 1:
            return taken < self.block or taken % 4 == 0
        if taken == 1 and made == groups:
            return made % 4 == 0
        return taken % self.block == 0 and made // groups % self.block == 0

    def _few_channels(self, sig: Signature) -> bool:
        """Less than a block of input channels: such a convolution reads plain images."""
        shape = sig.inputs[1].shape if isinstance(sig.inputs[1], TensorType) else None
        return bool(shape) and sig.attr("group") == 1 and isinstance(shape[1], int) and shape[1] < self.block

    def _whole(self, shape: Shape) -> bool:
        return isinstance(shape[1], int) and shape[1] % self.block == 0


def scales_channels(sig: Signature) -> bool:
    """Whether it multiplies an image by a constant for each channel, which on blocks is a depthwise convolution."""
    if sig.op.key != "Mul" or len(sig.outputs) != 1 or (shape := image_shape(sig.outputs[0])) is None:
        return False
    constants = [t for t in sig.inputs if isinstance(t, TensorType) and t.const]
    return len(constants) == 1 and _for_channels(constants[0], shape)


def _folded(sig: Signature) -> bool:
    """Whether a convolution takes an operator in, by its constant: for each channel, or to multiply by, and second."""
    if sig.op.key not in ("Add", "Mul"):
        return sig.op.key in FOLDED
    constant, shape = sig.inputs[1], image_shape(sig.outputs[0])
    if not isinstance(constant, TensorType) or not constant.const or shape is None:
        return False
    return _for_channels(constant, shape) or (sig.op.key == "Mul" and constant.shape == ())


def _for_channels(constant: TensorType, image: Shape) -> bool:
    return image[1] != 1 and constant.shape in ((image[1], 1, 1), (1, image[1], 1, 1))


def _data_of(node: Node) -> list[int]:
    """Return the operands that aren't constant."""
    pairs = zip(node.inputs, node.sig.inputs, strict=False)
    return [value for value, t in pairs if value is not None and t and not t.const]


def _read_once(graph: Graph, data: list[int]) -> bool:
    """Whether it is one value, which an operator makes for a single reader."""
    return len(data) == 1 and data[0] not in graph.leaves and len(graph.uses[data[0]]) == 1


def image_shape(t: ValueType) -> Shape | None:
    """Return the shape of a type that is a batch of float images, the only ones with layouts; else None."""
    if isinstance(t, TensorType) and t.dtype == "float" and t.shape is not None and len(t.shape) == 4:
        return t.shape
    return None
