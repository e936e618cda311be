"""YOLOv8n (Ultralytics 2023): an anchor-free detector, from image to decoded boxes, without suppression of overlaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taso_gym.graph import Graph
from taso_gym.models.layers import AFTER_SILU, RESIDUAL, Net

EPSILON = 1e-3
BINS = 16
STRIDES = (8, 16, 32)


def yolov8n(batch: int = 1, image: int = 640, classes: int = 80, seed: int = 0) -> Graph:
    """YOLOv8n, 3,157,184 trainable parameters (``yolov8.yaml``: "3157200 parameters, 3157184 gradients").

    The other 16 are the bins 0 … 15 of the distance decoder, a constant here.
    Input ``images`` ``[batch, 3, image, image]`` (image a multiple of 32); output ``output0``
    ``[batch, 4 + classes, cells]``: centre and size in pixels, and class probabilities.
    """
    net = _Yolo(seed)
    x = net.unit(net.input("images", (batch, 3, image, image)), "model.0", 16, 3, 2)
    x = net.c2f(net.unit(x, "model.1", 32, 3, 2), "model.2", 32, 1, shortcut=True)
    p3 = net.c2f(net.unit(x, "model.3", 64, 3, 2), "model.4", 64, 2, shortcut=True)
    p4 = net.c2f(net.unit(p3, "model.5", 128, 3, 2), "model.6", 128, 2, shortcut=True)
    x = net.c2f(net.unit(p4, "model.7", 256, 3, 2), "model.8", 256, 1, shortcut=True)
    p5 = net.sppf(x, "model.9", 256)
    middle = net.c2f(net.concat([net.upsample(p5), p4]), "model.12", 128, 1)
    small = net.c2f(net.concat([net.upsample(middle), p3]), "model.15", 64, 1)
    middle = net.c2f(net.concat([net.unit(small, "model.16", 64, 3, 2), middle]), "model.18", 128, 1)
    large = net.c2f(net.concat([net.unit(middle, "model.19", 128, 3, 2), p5]), "model.21", 256, 1)
    heads = [net.head(x, f"model.22.{{}}.{i}", classes) for i, x in enumerate((small, middle, large))]
    return net.build(output0=net.decode(heads, classes))


class _Yolo(Net):
    """The building blocks; names of layers as in Ultralytics' state dictionary."""

    def unit(self, x: int, name: str, channels: int, kernel: int = 1, stride: int = 1, scale: float = 1.0) -> int:
        """Add convolution, batch normalisation and SiLU."""
        x = self.conv(x, f"{name}.conv", channels, kernel, stride, gain=AFTER_SILU)
        return self.silu(self.batch_norm(x, f"{name}.bn", EPSILON, scale))

    def c2f(self, x: int, name: str, channels: int, count: int, *, shortcut: bool = False) -> int:
        """Add a cross-stage block: half of the channels pass ``count`` bottlenecks, every stage of which is kept."""
        half = channels // 2
        parts = list(self.split(self.unit(x, f"{name}.cv1", channels), (half, half), axis=1))
        for index in range(count):
            y = self.unit(parts[-1], f"{name}.m.{index}.cv1", half, 3)
            y = self.unit(y, f"{name}.m.{index}.cv2", half, 3, scale=RESIDUAL if shortcut else 1.0)
            parts.append(self.op("Add", parts[-1], y) if shortcut else y)
        return self.unit(self.concat(parts), f"{name}.cv2", channels)

    def sppf(self, x: int, name: str, channels: int) -> int:
        """Add spatial pyramid pooling: maxima over 5x5, 9x9, 13x13 by pooling three times."""
        parts = [self.unit(x, f"{name}.cv1", channels // 2)]
        for _ in range(3):
            parts.append(self.max_pool(parts[-1], 5, 1, 2))
        return self.unit(self.concat(parts), f"{name}.cv2", channels)

    def upsample(self, x: int) -> int:
        """Double height and width, repeating each pixel."""
        scales = (1.0, 1.0, 2.0, 2.0)
        return self.op("Resize", x, scales=scales, coordinate_transformation_mode="asymmetric", nearest_mode="floor")

    def head(self, x: int, name: str, classes: int) -> int:
        """Add the two branches of a level, for distances and classes: ``[B, 4 BINS + classes, cells]``."""
        branches: list[int] = []
        for branch, width, channels in (("cv2", 64, 4 * BINS), ("cv3", max(64, min(classes, 100)), classes)):
            y = x
            for index in (0, 1):
                y = self.unit(y, f"{name.format(branch)}.{index}", width, 3)
            branches.append(self.conv(y, f"{name.format(branch)}.2", channels, bias=True, gain=AFTER_SILU))
        B, _, H, W = self.shape(x)
        return self.op("Reshape", self.concat(branches), shape=(B, 4 * BINS + classes, H * W))

    def decode(self, levels: Sequence[int], classes: int) -> int:
        """Turn distances to the four sides, as distributions over bins, into boxes in pixels."""
        every = self.concat(levels, axis=2)
        B, _, A = self.shape(every)
        sides, scores = self.split(every, (4 * BINS, classes), axis=1)
        sides = self.op("Transpose", self.op("Reshape", sides, shape=(B, 4, BINS, A)), perm=(0, 2, 1, 3))
        bins = self.constant("model.22.dfl.conv.weight", np.arange(BINS, dtype=np.float32).reshape(1, BINS, 1, 1))
        sides = self.op("Reshape", self.op("Conv", self.op("Softmax", sides, axis=1), bins), shape=(B, 4, A))
        low, high = self.split(sides, (2, 2), axis=1)
        centres, strides = self.cells([self.shape(level)[2] for level in levels])
        low, high = self.op("Sub", centres, low), self.op("Add", centres, high)
        middle = self.op("Div", self.op("Add", low, high), self.scalar(2.0))
        boxes = self.op("Mul", self.concat([middle, self.op("Sub", high, low)]), strides)
        return self.concat([boxes, self.op("Sigmoid", scores)])

    def cells(self, counts: Sequence[int]) -> tuple[int, int]:
        """Return the cells' centres in units of their strides ``[1, 2, cells]``, and the strides ``[1, 1, cells]``."""
        centres: list[np.ndarray] = []
        for count in counts:
            side = round(count**0.5)
            y, x = np.divmod(np.arange(count), side)
            centres.append(np.stack([x, y]) + 0.5)
        strides = np.repeat(STRIDES, counts)
        return (
            self.constant("centres", np.concatenate(centres, axis=1)[None].astype(np.float32)),
            self.constant("strides", strides[None, None].astype(np.float32)),
        )
