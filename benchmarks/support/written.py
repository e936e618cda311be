"""Published networks that no package describes, as torch modules: those with PRelu and with few-output convolutions."""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import nn


class FaceBlock(nn.Module):
    """A block of IResNet: normalise, convolve, PRelu with a slope for each channel, convolve (Duta et al., 2020)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.way = nn.Sequential(
            nn.BatchNorm2d(inputs),
            nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.PReLU(outputs),
            nn.Conv2d(outputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.short = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.way(x) + self.short(x)


def iresnet18() -> nn.Module:
    """Return ArcFace's IResNet-18 for faces of 112 x 112."""
    stem = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.PReLU(64)]
    blocks: list[nn.Module] = []
    for inputs, outputs in pairwise((64, 64, 128, 256, 512)):
        blocks += [FaceBlock(inputs, outputs, 2), FaceBlock(outputs, outputs, 1)]
    head = [nn.BatchNorm2d(512), nn.Flatten(), nn.Linear(512 * 7 * 7, 512), nn.BatchNorm1d(512)]
    return nn.Sequential(*stem, *blocks, *head)


class Residual(nn.Module):
    """A module and what goes around it."""

    def __init__(self, way: nn.Module) -> None:
        super().__init__()
        self.way = way

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.way(x)


def srresnet() -> nn.Module:
    """Return SRResNet, which enlarges an image four times (Ledig et al., 2017): PRelu with one slope, 3-output end."""

    def block() -> nn.Module:
        convs = [nn.Conv2d(64, 64, 3, 1, 1), nn.BatchNorm2d(64), nn.PReLU(), nn.Conv2d(64, 64, 3, 1, 1)]
        return Residual(nn.Sequential(*convs, nn.BatchNorm2d(64)))

    def larger() -> list[nn.Module]:
        return [nn.Conv2d(64, 256, 3, 1, 1), nn.PixelShuffle(2), nn.PReLU()]

    body = Residual(nn.Sequential(*(block() for _ in range(16)), nn.Conv2d(64, 64, 3, 1, 1), nn.BatchNorm2d(64)))
    stem = [nn.Conv2d(3, 64, 9, 1, 4), nn.PReLU()]
    return nn.Sequential(*stem, body, *larger(), *larger(), nn.Conv2d(64, 3, 9, 1, 4))


WRITTEN: dict[str, Callable[[], nn.Module]] = {"iresnet18": iresnet18, "srresnet": srresnet}
