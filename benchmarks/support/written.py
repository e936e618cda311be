"""Published networks that no package describes, as torch modules: with PRelu, few-output convolutions, upsampling."""

from collections.abc import Callable
from functools import partial
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


def dcgan() -> nn.Module:
    """Return DCGAN's generator of images of 64 x 64 (Radford et al., 2016): transposed convolutions."""
    layers: list[nn.Module] = []
    for place, (inputs, outputs) in enumerate(pairwise((100, 512, 256, 128, 64))):
        step = (2, 1) if place else (1, 0)
        layers += [nn.ConvTranspose2d(inputs, outputs, 4, *step, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh())


def tiny_decoder() -> nn.Module:
    """Return TAESD's decoder of latent images: pixels are doubled before convolutions (Boer Bohan, 2023)."""

    def block() -> nn.Module:
        first, second, third = (nn.Conv2d(64, 64, 3, 1, 1) for _ in range(3))
        return nn.Sequential(Residual(nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), third)), nn.ReLU())

    def larger() -> list[nn.Module]:
        return [block(), block(), block(), nn.Upsample(scale_factor=2), nn.Conv2d(64, 64, 3, 1, 1, bias=False)]

    stem = [nn.Conv2d(4, 64, 3, 1, 1), nn.ReLU()]
    return nn.Sequential(*stem, *larger(), *larger(), *larger(), block(), nn.Conv2d(64, 3, 3, 1, 1))


class SeveralReaches(nn.Module):
    """The mean of residual blocks with kernels of several sizes and growing dilations."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.ways = nn.ModuleList(self._way(channels, kernel) for kernel in (3, 7, 11))

    def _way(self, channels: int, kernel: int) -> nn.Module:
        def conv(dilation: int) -> list[nn.Module]:
            reach = dilation * (kernel - 1) // 2
            return [nn.LeakyReLU(0.1), nn.Conv1d(channels, channels, kernel, 1, reach, dilation)]

        return nn.Sequential(*(Residual(nn.Sequential(*conv(dilation), *conv(1))) for dilation in (1, 3, 5)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second, third = (way(x) for way in self.ways)
        return (first + second + third) / 3


def hifi_gan() -> nn.Module:
    """Return the vocoder HiFi-GAN V2: 256 samples for each frame of a mel spectrogram (Kong et al., 2020)."""
    layers: list[nn.Module] = [nn.Conv1d(80, 128, 7, 1, 3)]
    channels = 128
    for rate in (8, 8, 2, 2):
        wider = nn.ConvTranspose1d(channels, channels // 2, 2 * rate, rate, rate // 2)
        layers += [nn.LeakyReLU(0.1), wider, SeveralReaches(channels // 2)]
        channels //= 2
    return nn.Sequential(*layers, nn.LeakyReLU(), nn.Conv1d(channels, 1, 7, 1, 3), nn.Tanh())


class Snake(nn.Module):
    """x + sin²(a x)/a, with an ``a`` for each channel (Ziyin et al., 2020)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.rand(1, channels, 1) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + (self.a + 1e-9).reciprocal() * torch.sin(self.a * x).pow(2)


class Reach(nn.Module):
    """A residual unit of DAC."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        wide = nn.Conv1d(channels, channels, 7, 1, 3 * dilation, dilation)
        self.layers = nn.Sequential(Snake(channels), wide, Snake(channels), nn.Conv1d(channels, channels, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


def dac_decoder() -> nn.Module:
    """Return the decoder of the audio codec DAC, narrower: 320 samples for each frame (Kumar et al., 2023)."""
    channels = 512
    layers: list[nn.Module] = [nn.Conv1d(64, channels, 7, 1, 3)]
    for rate in (8, 5, 4, 2):
        wider = nn.ConvTranspose1d(channels, channels // 2, 2 * rate, rate, -(-rate // 2), rate % 2)
        layers += [Snake(channels), wider, *(Reach(channels // 2, dilation) for dilation in (1, 3, 9))]
        channels //= 2
    return nn.Sequential(*layers, Snake(channels), nn.Conv1d(channels, 1, 7, 1, 3), nn.Tanh())


class UNet(nn.Module):
    """U-Net (Ronneberger et al., 2015; for volumes Çiçek et al., 2016) that doubles to the nearest, as most do now."""

    def __init__(self, widths: tuple[int, ...] = (32, 64, 128, 256), inputs: int = 3, *, volume: bool = False) -> None:
        super().__init__()
        ends = list(pairwise(widths))
        self.conv, self.norm = (nn.Conv3d, nn.BatchNorm3d) if volume else (nn.Conv2d, nn.BatchNorm2d)
        self.down = nn.ModuleList(self._twice(*pair) for pair in [(inputs, widths[0]), *ends])
        self.up = nn.ModuleList(self._twice(wide + narrow, narrow) for narrow, wide in reversed(ends))
        self.halve = nn.MaxPool3d(2) if volume else nn.MaxPool2d(2)
        self.enlarge, self.head = nn.Upsample(scale_factor=2), self.conv(widths[0], 2, 1)

    def _twice(self, inputs: int, outputs: int) -> nn.Module:
        convs = ((inputs, outputs), (outputs, outputs))
        layers = [[self.conv(a, b, 3, 1, 1, bias=False), self.norm(b), nn.ReLU()] for a, b in convs]
        return nn.Sequential(*(layer for each in layers for layer in each))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept: list[torch.Tensor] = []
        for block in self.down:
            x = block(self.halve(x) if kept else x)
            kept.append(x)
        kept.pop()
        for block in self.up:
            x = block(torch.cat([self.enlarge(x), kept.pop()], 1))
        return self.head(x)


WRITTEN: dict[str, Callable[[], nn.Module]] = {
    "iresnet18": iresnet18,
    "srresnet": srresnet,
    "dcgan": dcgan,
    "tiny_decoder": tiny_decoder,
    "hifi_gan": hifi_gan,
    "dac_decoder": dac_decoder,
    "u_net": UNet,
    "u_net_3d": partial(UNet, (16, 32, 64), 1, volume=True),
}
