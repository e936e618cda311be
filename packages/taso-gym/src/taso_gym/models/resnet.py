"""Residual networks: ResNet-18, ResNet-50, ResNeXt-50.

He et al. 2015, arXiv 1512.03385; Xie et al. 2016, arXiv 1611.05431; as torchvision builds them: stride in a
bottleneck's 3x3 convolution, batch normalisation as a node of its own.
"""

from __future__ import annotations

from taso_gym.graph import Graph
from taso_gym.models.layers import RESIDUAL, Net


def resnet18(batch: int = 1, image: int = 224, classes: int = 1000, seed: int = 0) -> Graph:
    """ResNet-18, 11,689,512 parameters (torchvision, ``ResNet18_Weights.meta["num_params"]``).

    Input ``input`` ``[batch, 3, image, image]``, output ``logits`` ``[batch, classes]``.
    """
    return _resnet(_Blocks(Net(seed), bottleneck=False), (2, 2, 2, 2), (batch, 3, image, image), classes)


def resnet50(batch: int = 1, image: int = 224, classes: int = 1000, seed: int = 0) -> Graph:
    """ResNet-50, 25,557,032 parameters (torchvision, ``ResNet50_Weights.meta["num_params"]``).

    Input ``input`` ``[batch, 3, image, image]``, output ``logits`` ``[batch, classes]``.
    """
    return _resnet(_Blocks(Net(seed), bottleneck=True), (3, 4, 6, 3), (batch, 3, image, image), classes)


def resnext50(batch: int = 1, image: int = 224, classes: int = 1000, seed: int = 0) -> Graph:
    """ResNeXt-50 32x4d, 25,028,904 parameters (torchvision, ``ResNeXt50_32X4D_Weights.meta["num_params"]``).

    Input ``input`` ``[batch, 3, image, image]``, output ``logits`` ``[batch, classes]``.
    """
    blocks = _Blocks(Net(seed), bottleneck=True, group=32, width=4)
    return _resnet(blocks, (3, 4, 6, 3), (batch, 3, image, image), classes)


class _Blocks:
    """The blocks of one network of the family."""

    def __init__(self, net: Net, *, bottleneck: bool, group: int = 1, width: int = 64) -> None:
        self.net, self.bottleneck, self.group, self.width = net, bottleneck, group, width

    def conv_norm(
        self, x: int, conv: str, norm: str, channels: int, kernel: int, stride: int, *, group: int = 1, scale: float = 1
    ) -> int:
        """Add a convolution and its batch normalisation."""
        convolved = self.net.conv(x, conv, channels, kernel, stride, group=group)
        return self.net.batch_norm(convolved, norm, scale=scale)

    def relu_conv(self, x: int, name: str, index: int, channels: int, kernel: int, stride: int, group: int = 1) -> int:
        """Add convolution ``index`` of a block with its normalisation and ReLU."""
        conv, norm = f"{name}.conv{index}", f"{name}.bn{index}"
        return self.net.op("Relu", self.conv_norm(x, conv, norm, channels, kernel, stride, group=group))

    def block(self, x: int, name: str, planes: int, stride: int) -> int:
        """Add a residual block; a 1x1 convolution takes the shortcut where the shape changes."""
        if self.bottleneck:
            width = planes * self.width // 64 * self.group
            out = planes * 4
            y = self.relu_conv(x, name, 1, width, 1, 1)
            y = self.relu_conv(y, name, 2, width, 3, stride, self.group)
            y = self.conv_norm(y, f"{name}.conv3", f"{name}.bn3", out, 1, 1, scale=RESIDUAL)
        else:
            out = planes
            y = self.relu_conv(x, name, 1, planes, 3, stride)
            y = self.conv_norm(y, f"{name}.conv2", f"{name}.bn2", out, 3, 1, scale=RESIDUAL)
        if stride > 1 or self.net.shape(x)[1] != out:
            x = self.conv_norm(x, f"{name}.downsample.0", f"{name}.downsample.1", out, 1, stride, scale=0.7)
        return self.net.op("Relu", self.net.op("Add", y, x))


def _resnet(blocks: _Blocks, repeats: tuple[int, ...], shape: tuple[int, ...], classes: int) -> Graph:
    net = blocks.net
    x = net.op("Relu", blocks.conv_norm(net.input("input", shape), "conv1", "bn1", 64, 7, 2))
    x = net.max_pool(x, 3, 2, 1)
    for stage, count in enumerate(repeats):
        for index in range(count):
            stride = 2 if stage and not index else 1
            x = blocks.block(x, f"layer{stage + 1}.{index}", 64 << stage, stride)
    return net.build(logits=net.pooled_logits(x, "fc", classes))
