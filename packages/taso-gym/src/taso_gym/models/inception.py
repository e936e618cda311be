"""Inception-v3 (Szegedy et al. 2015, arXiv 1512.00567) without its auxiliary classifier, as torchvision builds it."""

from __future__ import annotations

from taso_gym.graph import Graph
from taso_gym.models.layers import Net

EPSILON = 1e-3
Kernel = int | tuple[int, int]


def inception_v3(batch: int = 1, image: int = 299, classes: int = 1000, seed: int = 0) -> Graph:
    """Inception-v3, 23,834,568 parameters: torchvision's 27,161,264 less 3,326,696 of the auxiliary classifier.

    Input ``input`` ``[batch, 3, image, image]`` (image at least 75), output ``logits`` ``[batch, classes]``.
    """
    net = _Inception(seed)
    x = net.unit(net.input("input", (batch, 3, image, image)), "Conv2d_1a_3x3", 32, 3, 2, 0)
    x = net.unit(x, "Conv2d_2a_3x3", 32, 3, 1, 0)
    x = net.unit(x, "Conv2d_2b_3x3", 64, 3)
    x = net.unit(net.max_pool(x, 3, 2), "Conv2d_3b_1x1", 80)
    x = net.unit(x, "Conv2d_4a_3x3", 192, 3, 1, 0)
    x = net.max_pool(x, 3, 2)
    for name, pooled in (("Mixed_5b", 32), ("Mixed_5c", 64), ("Mixed_5d", 64)):
        x = net.mixed_a(x, name, pooled)
    x = net.mixed_b(x, "Mixed_6a")
    for name, width in (("Mixed_6b", 128), ("Mixed_6c", 160), ("Mixed_6d", 160), ("Mixed_6e", 192)):
        x = net.mixed_c(x, name, width)
    x = net.mixed_d(x, "Mixed_7a")
    for name in ("Mixed_7b", "Mixed_7c"):
        x = net.mixed_e(x, name)
    return net.build(logits=net.pooled_logits(x, "fc", classes))


class _Inception(Net):
    """The building blocks; letters and names as in torchvision, figures as in the paper."""

    def unit(
        self, x: int, name: str, channels: int, kernel: Kernel = 1, stride: int = 1, pad: int | None = None
    ) -> int:
        """Add convolution, batch normalisation and ReLU."""
        x = self.conv(x, f"{name}.conv", channels, kernel, stride, pad)
        return self.op("Relu", self.batch_norm(x, f"{name}.bn", EPSILON))

    def chain(self, x: int, name: str, *layers: tuple[str, int, Kernel]) -> int:
        """Add units one after the other, each (name, channels, kernel)."""
        for suffix, channels, kernel in layers:
            x = self.unit(x, f"{name}.{suffix}", channels, kernel)
        return x

    def pooled(self, x: int, name: str, channels: int) -> int:
        """Add the pooling branch: a 3x3 average, padding counted, and a 1x1 convolution."""
        return self.unit(self.average_pool(x, 3, 1, 1, count_pad=True), f"{name}.branch_pool", channels)

    def mixed_a(self, x: int, name: str, pooled: int) -> int:
        """Add a 35x35 block (figure 5): 5x5 beside two 3x3."""
        return self.concat(
            [
                self.unit(x, f"{name}.branch1x1", 64),
                self.chain(x, name, ("branch5x5_1", 48, 1), ("branch5x5_2", 64, 5)),
                self.chain(x, name, ("branch3x3dbl_1", 64, 1), ("branch3x3dbl_2", 96, 3), ("branch3x3dbl_3", 96, 3)),
                self.pooled(x, name, pooled),
            ]
        )

    def mixed_b(self, x: int, name: str) -> int:
        """Add the reduction from 35x35 to 17x17 (figure 10)."""
        double = self.chain(x, name, ("branch3x3dbl_1", 64, 1), ("branch3x3dbl_2", 96, 3))
        return self.concat(
            [
                self.unit(x, f"{name}.branch3x3", 384, 3, 2, 0),
                self.unit(double, f"{name}.branch3x3dbl_3", 96, 3, 2, 0),
                self.max_pool(x, 3, 2),
            ]
        )

    def mixed_c(self, x: int, name: str, width: int) -> int:
        """Add a 17x17 block (figure 6): 7x7 in factors 1x7 and 7x1."""
        tall, wide = (7, 1), (1, 7)
        single = (("branch7x7_1", width, 1), ("branch7x7_2", width, wide), ("branch7x7_3", 192, tall))
        double = (
            ("branch7x7dbl_1", width, 1),
            ("branch7x7dbl_2", width, tall),
            ("branch7x7dbl_3", width, wide),
            ("branch7x7dbl_4", width, tall),
            ("branch7x7dbl_5", 192, wide),
        )
        return self.concat(
            [
                self.unit(x, f"{name}.branch1x1", 192),
                self.chain(x, name, *single),
                self.chain(x, name, *double),
                self.pooled(x, name, 192),
            ]
        )

    def mixed_d(self, x: int, name: str) -> int:
        """Add the reduction from 17x17 to 8x8."""
        factored = (("branch7x7x3_1", 192, 1), ("branch7x7x3_2", 192, (1, 7)), ("branch7x7x3_3", 192, (7, 1)))
        return self.concat(
            [
                self.unit(self.unit(x, f"{name}.branch3x3_1", 192), f"{name}.branch3x3_2", 320, 3, 2, 0),
                self.unit(self.chain(x, name, *factored), f"{name}.branch7x7x3_4", 192, 3, 2, 0),
                self.max_pool(x, 3, 2),
            ]
        )

    def mixed_e(self, x: int, name: str) -> int:
        """Add an 8x8 block (figure 7): branches that part again into 1x3 and 3x1."""
        single = self.unit(x, f"{name}.branch3x3_1", 384)
        double = self.chain(x, name, ("branch3x3dbl_1", 448, 1), ("branch3x3dbl_2", 384, 3))
        return self.concat(
            [
                self.unit(x, f"{name}.branch1x1", 320),
                self.fork(single, f"{name}.branch3x3_2"),
                self.fork(double, f"{name}.branch3x3dbl_3"),
                self.pooled(x, name, 192),
            ]
        )

    def fork(self, x: int, name: str) -> int:
        """Add 1x3 beside 3x1, joined."""
        return self.concat([self.unit(x, f"{name}a", 384, (1, 3)), self.unit(x, f"{name}b", 384, (3, 1))])
