"""NASNet-A (Zoph et al. 2017, arXiv 1707.07012, figures 2 to 4): cells found by architecture search.

Layout and counts are those of the TF-Slim models and their ports (Keras Applications, timm). A cell reads the last two;
separable convolutions are applied twice, each ReLU, depthwise, pointwise, batch normalisation.
"""

from __future__ import annotations

from collections.abc import Callable

from taso_gym.graph import Graph
from taso_gym.models.layers import AFTER_LINEAR, Net

EPSILON = 1e-3


def nasnet_mobile(batch: int = 1, image: int = 224, classes: int = 1000, seed: int = 0) -> Graph:
    """NASNet-A (4 @ 1056), "mobile", 5,289,978 parameters (Keras Applications, ``NASNetMobile``: trainable).

    Input ``input`` ``[batch, 3, image, image]``, output ``logits`` ``[batch, classes]``.
    """
    return _nasnet(_Cells(seed), (batch, 3, image, image), classes, stem=32, filters=44, repeats=4)


def nasnet_large(batch: int = 1, image: int = 331, classes: int = 1000, seed: int = 0) -> Graph:
    """NASNet-A (6 @ 4032), "large", 88,753,150 parameters (Keras Applications, ``NASNetLarge``: trainable; timm).

    Input ``input`` ``[batch, 3, image, image]``, output ``logits`` ``[batch, classes]``.
    """
    return _nasnet(_Cells(seed), (batch, 3, image, image), classes, stem=96, filters=168, repeats=6)


def _nasnet(net: _Cells, shape: tuple[int, ...], classes: int, *, stem: int, filters: int, repeats: int) -> Graph:
    x = net.conv(net.input("input", shape), "conv0", stem, 3, 2, 0)
    x = net.batch_norm(x, "conv0.bn", EPSILON)
    before = net.reduction_cell(x, None, "cell_stem_0", filters // 4)
    last = net.reduction_cell(before, x, "cell_stem_1", filters // 2)
    for stage in range(3):
        if stage:
            last = net.reduction_cell(last, before, f"reduction_cell_{stage - 1}", filters << stage)
        for index in range(stage * repeats, (stage + 1) * repeats):
            before, last = last, net.normal_cell(last, before, f"cell_{index}", filters << stage)
    return net.build(logits=net.pooled_logits(net.relu(last), "last_linear", classes))


class _Cells(Net):
    """The two cells and what they are made of."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._rectified: dict[int, int] = {}

    def relu(self, x: int) -> int:
        """Add a ReLU, once for each value: most are read by several branches that all begin with one."""
        if x not in self._rectified:
            self._rectified[x] = self.op("Relu", x)
        return self._rectified[x]

    def squeeze(self, x: int, name: str, channels: int) -> int:
        """Add ReLU, 1x1 convolution and batch normalisation."""
        return self.batch_norm(self.conv(self.relu(x), f"{name}.conv", channels), f"{name}.bn", EPSILON)

    def halve(self, x: int, name: str, channels: int) -> int:
        """Halve height and width: even and odd rows and columns go to half of the channels each."""
        x = self.relu(x)
        padded = self.op("Pad", x, pads=(0, 0, 0, 0, 0, 0, 1, 1))
        shifted = self.op("Slice", padded, starts=(1, 1), ends=(2**31 - 1, 2**31 - 1), axes=(2, 3), steps=(1, 1))
        parts = [
            self.conv(self.average_pool(part, 1, 2), f"{name}.path_{index}", width)
            for index, part, width in ((1, x, channels // 2), (2, shifted, channels - channels // 2))
        ]
        return self.batch_norm(self.concat(parts), f"{name}.final_path_bn", EPSILON)

    def separable(self, x: int, name: str, channels: int, kernel: int, stride: int = 1) -> int:
        """Add two separable convolutions, the first with the stride."""
        for index, step in ((1, stride), (2, 1)):
            x, group, part = self.relu(x), self.shape(x)[1], f"{name}.separable_{index}"
            x = self.conv(x, f"{part}.depthwise", group, kernel, step, group=group)
            x = self.conv(x, f"{part}.pointwise", channels, gain=AFTER_LINEAR)
            x = self.batch_norm(x, f"{name}.bn_sep_{index}", EPSILON, scale=0.7)
        return x

    def previous(self, x: int, like: int, name: str, channels: int) -> int:
        """Bring the output of the cell before the last to the size of the last one's, ``like``."""
        adapt: Callable[[int, str, int], int] = self.squeeze if self.shape(x)[2] == self.shape(like)[2] else self.halve
        return adapt(x, f"{name}.prev_1x1", channels)

    def normal_cell(self, last: int, before: int, name: str, channels: int) -> int:
        """Add a normal cell: ``[B, C, H, W] -> [B, 6 channels, H, W]``."""
        other = self.previous(before, last, name, channels)
        x = self.squeeze(last, f"{name}.conv_1x1", channels)

        def separable(value: int, suffix: str, kernel: int) -> int:
            return self.separable(value, f"{name}.comb_iter_{suffix}", channels, kernel)

        first = self.op("Add", separable(x, "0_left", 5), separable(other, "0_right", 3))
        second = self.op("Add", separable(other, "1_left", 5), separable(other, "1_right", 3))
        third = self.op("Add", self.average_pool(x, 3, 1, 1), other)
        averaged = self.average_pool(other, 3, 1, 1)
        fourth = self.op("Add", averaged, averaged)
        fifth = self.op("Add", separable(x, "4_left", 3), x)
        return self.concat([other, first, second, third, fourth, fifth])

    def reduction_cell(self, last: int, before: int | None, name: str, channels: int) -> int:
        """Add a reduction cell: ``[B, C, H, W] -> [B, 4 channels, H / 2, W / 2]``; the first one has no cell before."""
        x = self.squeeze(last, f"{name}.conv_1x1", channels)
        other = last if before is None else self.previous(before, last, name, channels)

        def separable(value: int, suffix: str, kernel: int, stride: int = 2) -> int:
            return self.separable(value, f"{name}.comb_iter_{suffix}", channels, kernel, stride)

        pooled = self.max_pool(x, 3, 2, 1)
        first = self.op("Add", separable(x, "0_left", 5), separable(other, "0_right", 7))
        second = self.op("Add", pooled, separable(other, "1_right", 7))
        third = self.op("Add", self.average_pool(x, 3, 2, 1), separable(other, "2_right", 5))
        fourth = self.op("Add", self.average_pool(first, 3, 1, 1), second)
        fifth = self.op("Add", separable(first, "4_left", 3, 1), pooled)
        return self.concat([second, third, fourth, fifth])
