"""Emulates which values onnxruntime's CPU provider keeps in its blocked layout NCHWc.

A convolution or pool that works on blocks of channels reads and writes them interleaved; wherever such a value meets an
operator that can't, a reorder runs. `tests/taso_gym/cost/test_layout.py` compares the table with onnxruntime's own
dump of what it executes. Recursion through element-wise operators stops after `DEPTH` edges, so that a change can only
matter that far away; beyond, a value with whole blocks of channels is taken as blocked.
"""

from __future__ import annotations

from typing import cast

from taso_gym.cost.view import View
from taso_gym.graph import SINK, Node, output_index, producer_of, value_of
from taso_gym.signature import Signature
from taso_gym.tensor import Shape, TensorType

DEPTH = 8
CONVOLUTIONS = frozenset({"Conv", "ms.FusedConv"})
POOLS = frozenset({"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"})
FOLLOWING = frozenset(
    {"Relu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Gelu", "ms.QuickGelu", "BatchNormalization", "Identity"}
)
"""Run on whatever layout their input has."""
PAIRING = frozenset({"Add", "Mul", "Sum"})
"""Run on blocks where all operands are blocked and of one shape."""
FOLDED = frozenset({"Add", "Mul", "Clip", "LeakyRelu"})
"""Run on blocks only as part of the convolution before them (Add and Mul: by a constant)."""
CARRYING = FOLLOWING | PAIRING | FOLDED | {"Concat", "Resize"}
"""May hand the blocks of their inputs on."""
FOLDED_INTO = CONVOLUTIONS | {"BatchNormalization", "Add"}
SUM_INPUT = 3
"""Input of FusedConv that is added to its result."""


class Layouts:
    """Answers questions about layouts on a machine whose blocks have so many channels."""

    def __init__(self, block: int) -> None:
        """Take the number of channels in a block: 16 with AVX-512, 8 with AVX2; 0 where there is no such layout."""
        self.block = block

    def blocked(self, graph: View, value: int, depth: int = DEPTH) -> bool:
        """Whether a value is produced in blocks."""
        shape = image_shape(graph, value)
        if not self.block or shape is None or value in graph.leaves:
            return False
        node = graph.nodes[producer_of(value)]
        key = node.sig.op.key
        if key in CONVOLUTIONS:
            return self.takes_convolution(node.sig)
        if key in POOLS:
            return len(node.sig.outputs) == 1 and self._whole(shape)
        if key not in CARRYING:
            return False
        if depth == 0:
            return self._whole(shape)
        return self._blocked_by_inputs(graph, node, shape, depth)

    def _blocked_by_inputs(self, graph: View, node: Node, shape: Shape, depth: int) -> bool:
        key, sig = node.sig.op.key, node.sig
        data = _data_of(node)
        if key == "Concat":
            whole = [found is not None and self._whole(found) for found in (image_shape(graph, v) for v in data)]
            if sig.attr("axis") != 1 or len(data) != len(sig.inputs) or not all(whole):
                return False
        elif key in PAIRING and len(data) == len(sig.inputs):
            if any(image_shape(graph, v) != shape for v in data):
                return False
        elif key == "Resize":
            if not self._upsamples(sig):
                return False
        elif key not in FOLLOWING and not (key in FOLDED and self._folds(graph, data)):
            return False
        return all(self.blocked(graph, v, depth - 1) for v in data)

    def _upsamples(self, sig: Signature) -> bool:
        """Whether a Resize by whole numbers, to the nearest or linear, has a kernel for blocks."""
        scales = cast("tuple[float, ...]", sig.attr("scales") or ())
        if scales[:2] != (1.0, 1.0) or any(scale < 1 or scale % 1 for scale in scales):
            return False
        mode, at = sig.attr("mode"), sig.attr("coordinate_transformation_mode")
        if mode == "nearest":
            return at == "asymmetric" and sig.attr("nearest_mode") == "floor"
        return mode == "linear" and at in ("asymmetric", "align_corners", "half_pixel")

    def _folds(self, graph: View, data: list[int]) -> bool:
        if not _read_once(graph, data):
            return False
        key = graph.nodes[producer_of(data[0])].sig.op.key
        return key in FOLDED_INTO or (key == "Mul" and self._scales_convolution(graph, data[0]))

    def _scales_convolution(self, graph: View, value: int) -> bool:
        """Whether a value is a convolution's, normalised or not, times a constant: all that is one convolution."""
        for key in ("Mul", "BatchNormalization"):
            node = graph.nodes[producer_of(value)]
            if node.sig.op.key == key:
                data = _data_of(node)
                if not _read_once(graph, data):
                    return False
                value = data[0]
        return graph.nodes[producer_of(value)].sig.op.key in CONVOLUTIONS

    def reads_blocks(self, graph: View, use: int) -> bool:
        """Whether a use takes its value in blocks; if not, it takes it plain."""
        consumer, index = producer_of(use), output_index(use)
        if consumer == SINK:
            return False
        sig = graph.nodes[consumer].sig
        if sig.op.key in CONVOLUTIONS:
            if index == 0:
                return self.takes_convolution(sig) and not self._few_channels(sig)
            return index == SUM_INPUT and self.takes_convolution(sig)
        return self.blocked(graph, value_of(consumer))

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


def _data_of(node: Node) -> list[int]:
    """Return the operands that aren't constant."""
    pairs = zip(node.inputs, node.sig.inputs, strict=False)
    return [value for value, t in pairs if value is not None and t and not t.const]


def _read_once(graph: View, data: list[int]) -> bool:
    """Whether it is one value, which an operator makes for a single reader."""
    return len(data) == 1 and data[0] not in graph.leaves and len(graph.uses[data[0]]) == 1


def image_shape(graph: View, value: int) -> Shape | None:
    """Return the shape of a value that is a batch of float images, the only ones with layouts; else None."""
    t = graph.type_of(value)
    if isinstance(t, TensorType) and t.dtype == "float" and t.shape is not None and len(t.shape) == 4:
        return t.shape
    return None
