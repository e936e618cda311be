"""Peak figures of named devices, for the roofline model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Device:
    """What bounds a kernel on a device.

    Attributes:
        summary: what it is and where the figures come from.
        gflops: element type -> peak in 10^9 floating-point operations per second; "float" serves those not listed.
        gbytes_per_s: peak memory bandwidth in 10^9 bytes per second.
        overhead_ps: time in picoseconds that a kernel takes however small it is.
    """

    summary: str
    gflops: Mapping[str, int]
    gbytes_per_s: int
    overhead_ps: int


DEVICES = {
    "epyc-zen5-1t": Device(
        "one core of an AMD EPYC (Zen 5): 64 float32 operations a cycle at 4 GHz; bandwidth and overhead as they "
        "fitted 20 measured variants of SqueezeNet and GoogLeNet in onnxruntime to within 2 %",
        {"float": 256, "double": 128},
        60,
        1_500_000,
    ),
    "h200": Device(
        "NVIDIA H200 SXM: data sheet, dense tensor cores for 8 and 16 bits; 2 µs from one launch to the next",
        {"float": 67_000, "double": 34_000, "float16": 989_000, "bfloat16": 989_000, "int8": 1_979_000},
        4_800,
        2_000_000,
    ),
    "h200-tf32": Device(
        "the same, products and convolutions of float32 in TF32, as onnxruntime computes them",
        {"float": 494_000, "double": 34_000, "float16": 989_000, "bfloat16": 989_000, "int8": 1_979_000},
        4_800,
        2_000_000,
    ),
    "v100": Device(
        "NVIDIA V100 SXM2 (the GPU of the TASO and RLFlow papers): data sheet; 4 µs from one launch to the next",
        {"float": 15_700, "double": 7_800, "float16": 125_000},
        900,
        4_000_000,
    ),
}
DEFAULT_DEVICE = "epyc-zen5-1t"
FASTEST = {
    "cpu": Device(
        "one core of an AMD EPYC (Zen 5) at 5 GHz: 64 float32 operations a cycle and as many bytes, out of its own "
        "caches, and no time for a kernel as such; 2 of 1,551 regions of the package's tables took less",
        {"float": 320, "double": 160, "int8": 1280, "uint8": 1280},
        320,
        0,
    ),
    "cuda": DEVICES["h200-tf32"],
}
"""Short name of a provider -> a device that hardly any kernel of onnxruntime is faster than there; of CPUs, a core."""


def fastest(provider: str, threads: int = 1) -> Device:
    """Return a device that hardly any kernel of a provider of onnxruntime is faster than with so many threads."""
    device, times = FASTEST[provider], threads if provider == "cpu" else 1
    gflops = {dtype: times * peak for dtype, peak in device.gflops.items()}
    return replace(device, gflops=gflops, gbytes_per_s=times * device.gbytes_per_s)
