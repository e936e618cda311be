"""GoogLeNet (Szegedy et al. 2014, arXiv 1409.4842) with local response normalisation."""

from __future__ import annotations

from taso_gym.graph import Graph
from taso_gym.models.layers import Net

_MODULES = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}
"""Table 1: channels of #1x1, #3x3 reduce, #3x3, #5x5 reduce, #5x5, pool proj."""


def googlenet(batch: int = 1, image: int = 224, classes: int = 1000, seed: int = 0) -> Graph:
    """GoogLeNet without auxiliary classifiers, 6,998,552 parameters (its Caffe model, BVLC ``bvlc_googlenet``).

    The original: biases and LRN, no batch normalisation. (torchvision's ``googlenet`` has batch normalisation and 3x3
    in place of 5x5, 6,624,904.) Pooling windows may end outside the image, as in Caffe.
    Input ``input`` ``[batch, 3, image, image]``, output ``logits`` ``[batch, classes]``.
    """
    net = Net(seed)
    x = net.max_pool(_unit(net, net.input("input", (batch, 3, image, image)), "conv1", 64, 7, 2), 3, 2, ceil=True)
    x = _unit(net, net.op("LRN", x, size=5, alpha=1e-4, beta=0.75), "conv2.reduce", 64)
    x = net.op("LRN", _unit(net, x, "conv2", 192, 3), size=5, alpha=1e-4, beta=0.75)
    x = net.max_pool(x, 3, 2, ceil=True)
    for name, channels in _MODULES.items():
        if name in ("4a", "5a"):
            x = net.max_pool(x, 3, 2, ceil=True)
        x = _inception(net, x, f"inception_{name}", channels)
    return net.build(logits=net.pooled_logits(x, "loss3.classifier", classes))


def _unit(net: Net, x: int, name: str, channels: int, kernel: int = 1, stride: int = 1) -> int:
    return net.op("Relu", net.conv(x, name, channels, kernel, stride, bias=True))


def _inception(net: Net, x: int, name: str, channels: tuple[int, ...]) -> int:
    one, reduce3, three, reduce5, five, pooled = channels
    return net.concat(
        [
            _unit(net, x, f"{name}.1x1", one),
            _unit(net, _unit(net, x, f"{name}.3x3_reduce", reduce3), f"{name}.3x3", three, 3),
            _unit(net, _unit(net, x, f"{name}.5x5_reduce", reduce5), f"{name}.5x5", five, 5),
            _unit(net, net.max_pool(x, 3, 1, 1), f"{name}.pool_proj", pooled),
        ]
    )
