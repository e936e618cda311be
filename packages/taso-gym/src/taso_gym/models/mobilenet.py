"""Networks of inverted residuals: MobileNetV3-Large and EfficientNet-B0.

Howard et al. 2019, arXiv 1905.02244; Tan & Le 2019, arXiv 1905.11946; as torchvision builds them. A block widens by a
1x1 convolution, filters each channel by itself, weighs the channels (squeeze and excitation) and narrows again without
an activation.
"""

from __future__ import annotations

from dataclasses import dataclass

from taso_gym.graph import Graph
from taso_gym.models.layers import AFTER_LINEAR, AFTER_RELU, AFTER_SILU, RESIDUAL, Net

_MOBILE = (
    *((3, 16, 16, False, "Relu", 1), (3, 64, 24, False, "Relu", 2), (3, 72, 24, False, "Relu", 1)),
    *((5, 72, 40, True, "Relu", 2), (5, 120, 40, True, "Relu", 1), (5, 120, 40, True, "Relu", 1)),
    *((3, 240, 80, False, "HardSwish", 2), (3, 200, 80, False, "HardSwish", 1), (3, 184, 80, False, "HardSwish", 1)),
    *((3, 184, 80, False, "HardSwish", 1), (3, 480, 112, True, "HardSwish", 1), (3, 672, 112, True, "HardSwish", 1)),
    *((5, 672, 160, True, "HardSwish", 2), (5, 960, 160, True, "HardSwish", 1), (5, 960, 160, True, "HardSwish", 1)),
)
"""MobileNetV3, table 1: kernel, expanded channels, output channels, squeeze and excitation, activation, stride."""

_EFFICIENT = (
    *((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3)),
    *((6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)),
)
"""EfficientNet, table 1: expansion, kernel, stride, output channels, layers."""


def mobilenet_v3(batch: int = 1, image: int = 224, classes: int = 1000, seed: int = 0) -> Graph:
    """MobileNetV3-Large, 5,483,032 parameters (torchvision, ``MobileNet_V3_Large_Weights.meta["num_params"]``).

    Input ``input`` ``[batch, 3, image, image]``, output ``logits`` ``[batch, classes]``.
    """
    net = _Inverted(seed, epsilon=1e-3, gate="HardSigmoid")
    x = net.unit(net.input("input", (batch, 3, image, image)), "features.0", 16, "HardSwish", 3, 2)
    for index, (kernel, expanded, channels, excite, activation, stride) in enumerate(_MOBILE, start=1):
        squeeze = _divisible_by_8(expanded / 4) if excite else 0
        x = net.block(x, f"features.{index}", _Block(kernel, stride, expanded, channels, squeeze, activation, "Relu"))
    x = net.unit(x, "features.16", 960, "HardSwish")
    x = net.gemm(net.op("Flatten", net.op("GlobalAveragePool", x)), "classifier.0", 1280, AFTER_SILU)
    return net.build(logits=net.gemm(net.op("HardSwish", x), "classifier.3", classes, AFTER_SILU))


def efficientnet_b0(batch: int = 1, image: int = 224, classes: int = 1000, seed: int = 0) -> Graph:
    """EfficientNet-B0, 5,288,548 parameters (torchvision, ``EfficientNet_B0_Weights.meta["num_params"]``).

    Input ``input`` ``[batch, 3, image, image]``, output ``logits`` ``[batch, classes]``.
    """
    net = _Inverted(seed, epsilon=1e-5, gate="Sigmoid")
    x = net.unit(net.input("input", (batch, 3, image, image)), "features.0", 32, "SiLU", 3, 2)
    for stage, (expansion, kernel, first_stride, channels, layers) in enumerate(_EFFICIENT, start=1):
        for layer in range(layers):
            inputs, stride = net.shape(x)[1], 1 if layer else first_stride
            block = _Block(kernel, stride, inputs * expansion, channels, inputs // 4, "SiLU", "SiLU")
            x = net.block(x, f"features.{stage}.{layer}", block)
    x = net.unit(x, "features.8", 1280, "SiLU")
    return net.build(logits=net.pooled_logits(x, "classifier.1", classes, AFTER_SILU))


@dataclass(frozen=True)
class _Block:
    """An inverted residual; ``squeeze`` is the narrow width of its squeeze and excitation, 0 for none."""

    kernel: int
    stride: int
    expanded: int
    channels: int
    squeeze: int
    activation: str
    squeeze_activation: str


class _Inverted(Net):
    """The layers of both networks; ``gate`` is the operator that makes the channels' weights."""

    def __init__(self, seed: int, *, epsilon: float, gate: str) -> None:
        super().__init__(seed)
        self.epsilon, self.gate = epsilon, gate

    def activate(self, x: int, activation: str) -> int:
        """Add an activation by name."""
        return self.silu(x) if activation == "SiLU" else self.op(activation, x)

    def unit(
        self, x: int, name: str, channels: int, activation: str, kernel: int = 1, stride: int = 1, group: int = 1
    ) -> int:
        """Add convolution, batch normalisation and activation."""
        gain = AFTER_RELU if activation == "Relu" else AFTER_SILU
        x = self.conv(x, f"{name}.0", channels, kernel, stride, group=group, gain=gain if group > 1 else AFTER_LINEAR)
        return self.activate(self.batch_norm(x, f"{name}.1", self.epsilon), activation)

    def block(self, x: int, name: str, block: _Block) -> int:
        """Add an inverted residual; layers are numbered as they come."""
        y, layer = x, 0
        if block.expanded != self.shape(x)[1]:
            y, layer = self.unit(y, f"{name}.block.0", block.expanded, block.activation), 1
        y = self.unit(
            y, f"{name}.block.{layer}", block.expanded, block.activation, block.kernel, block.stride, block.expanded
        )
        if block.squeeze:
            layer += 1
            y = self.excite(y, f"{name}.block.{layer}", block)
        gain = AFTER_SILU * (4.0 if block.squeeze else 1.0)
        y = self.conv(y, f"{name}.block.{layer + 1}.0", block.channels, gain=gain)
        shortcut = self.shape(x) == self.shape(y)
        y = self.batch_norm(y, f"{name}.block.{layer + 1}.1", self.epsilon, RESIDUAL if shortcut else 1.0)
        return self.op("Add", y, x) if shortcut else y

    def excite(self, x: int, name: str, block: _Block) -> int:
        """Add squeeze and excitation (Hu et al. 2017, arXiv 1709.01507): weigh each channel, by 1/2 on average."""
        y = self.conv(self.op("GlobalAveragePool", x), f"{name}.fc1", block.squeeze, bias=True)
        y = self.conv(self.activate(y, block.squeeze_activation), f"{name}.fc2", self.shape(x)[1], bias=True)
        gate = self.op("HardSigmoid", y, alpha=1 / 6) if self.gate == "HardSigmoid" else self.op(self.gate, y)
        return self.op("Mul", gate, x)


def _divisible_by_8(channels: float) -> int:
    """Round to a multiple of 8, but not down by more than a tenth (torchvision's ``_make_divisible``)."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded
