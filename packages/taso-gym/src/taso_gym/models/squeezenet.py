"""SqueezeNet 1.1 (Iandola et al. 2016, arXiv 1602.07360)."""

from __future__ import annotations

from taso_gym.graph import Graph
from taso_gym.models.layers import Net

_FIRES = (
    *((3, 16, 64), (4, 16, 64), (6, 32, 128), (7, 32, 128)),
    *((9, 48, 192), (10, 48, 192), (11, 64, 256), (12, 64, 256)),
)
"""(index in torchvision's module, squeeze channels, expand channels of each half)."""


def squeezenet(batch: int = 1, image: int = 224, classes: int = 1000, seed: int = 0) -> Graph:
    """SqueezeNet 1.1, 1,235,496 parameters (torchvision, ``SqueezeNet1_1_Weights.meta["num_params"]``).

    No normalisation; every convolution has a bias; pooling windows may end outside the image.
    Input ``input`` ``[batch, 3, image, image]``, output ``logits`` ``[batch, classes]``.
    """
    net = Net(seed)
    x = _conv_relu(net, net.input("input", (batch, 3, image, image)), "features.0", 64, 3, 2, 0)
    x = net.max_pool(x, 3, 2, ceil=True)
    for index, squeeze, expand in _FIRES:
        if index in (6, 9):
            x = net.max_pool(x, 3, 2, ceil=True)
        x = _fire(net, x, f"features.{index}", squeeze, expand)
    x = _conv_relu(net, x, "classifier.1", classes, 1)
    return net.build(logits=net.op("Flatten", net.op("GlobalAveragePool", x)))


def _conv_relu(net: Net, x: int, name: str, channels: int, kernel: int, stride: int = 1, pad: int | None = None) -> int:
    return net.op("Relu", net.conv(x, name, channels, kernel, stride, pad, bias=True))


def _fire(net: Net, x: int, name: str, squeeze: int, expand: int) -> int:
    x = _conv_relu(net, x, f"{name}.squeeze", squeeze, 1)
    return net.concat([_conv_relu(net, x, f"{name}.expand{k}x{k}", expand, k) for k in (1, 3)])
