"""The roofline model: a kernel takes as long as its arithmetic or its memory traffic, whichever is longer.

time = max(flops / peak, bytes / bandwidth) + overhead per kernel (Williams, Waterman, Patterson: Roofline, CACM 2009).

Each operator of the graph is one kernel: it reads its inputs from memory, writes its outputs there, and is launched.
So an element-wise operator after a convolution costs a whole round trip, and fusing the two (or removing one) pays by
that much. A runtime that fuses by itself makes part of that gain disappear: what it executes is what
`taso_gym.cost.onnxruntime` measures. No efficiency factors: kernels far below the peak look better than they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from taso_gym.cost.base import SummedCost
from taso_gym.cost.devices import DEFAULT_DEVICE, DEVICES, Device
from taso_gym.cost.work import Work
from taso_gym.errors import OptionError
from taso_gym.signature import Signature


class RooflineCost(SummedCost):
    """Analytic, deterministic costs on a named device; an opaque operator is costed by its bytes."""

    def __init__(self, argument: str = "", dims: Mapping[str, int] | None = None) -> None:
        """Make the model of a device.

        Args:
            argument: name of a device in `DEVICES`; empty for the default CPU.
            dims: values of dimension symbols.

        Raises:
            OptionError: no such device.
        """
        device = argument or DEFAULT_DEVICE
        if device not in DEVICES:
            raise OptionError(f"expected a device among {', '.join(DEVICES)}, found {device!r}")
        super().__init__(f"roofline:{device}", dims)
        self.device: Device = DEVICES[device]

    @property
    def key(self) -> str:
        """Device and bound dimensions."""
        return f"{self.name}[{self._dims.key}]"

    def time(self, sig: Signature, context: Hashable, load: Work) -> tuple[int, int]:  # noqa: ARG002
        """Return the bound of ``load`` on the device, and one kernel."""
        return bound_ps(self.device, load), 1


def bound_ps(device: Device, load: Work) -> int:
    """Return the least time in picoseconds that a kernel with this work takes on a device."""
    gflops = device.gflops.get(load.dtype, device.gflops["float"])
    return max(load.flops * 1000 // gflops, load.bytes_moved * 1000 // device.gbytes_per_s) + device.overhead_ps
