"""A CUDA device as CuPy drives it: which one it is, whether it works, and how long work on it takes.

A time is the median over runs of that between two CUDA events. Before each, a buffer larger than the L2 cache is
written: the inputs come from memory, as they do in a large model, and by the time the device has done that, as often
as the host needs, the host has queued the kernels of an operator, so that launching them isn't part of the time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cached_property
from statistics import median
from typing import Any

import numpy as np

from taso_gym.cost.cuda_kernels import cudnn_version, expect_libraries
from taso_gym.cost.packages import failure, require
from taso_gym.errors import CostError, one_line

WARM_UPS, WARM_S = 3, 0.02
"""Before it is timed, work is done so often and so long: a device that had nothing to do is slower."""
MIN_RUNS, MAX_RUNS = 9, 101
ENOUGH_MS = 30.0
FLUSHES, MOST_FILLS = 4, 64
"""The buffer that is written before a run is so many times larger than the L2 cache, and written so often at most."""


class CudaDevice:
    """A device, and the precision of products on it.

    Attributes:
        number: its, by which CuPy knows it.
        tf32: whether products of float32 round their operands to 10 bits of mantissa.
    """

    def __init__(self, argument: str, tf32: bool) -> None:
        """Find a device by its number; empty for 0; raises as `open_device` does."""
        self.number, self.tf32 = open_device(argument), tf32

    @cached_property
    def key(self) -> str:
        """Device, versions, and whether TF32 is used."""
        cupy = require("cupy")
        runtime = cupy.cuda.runtime
        name = runtime.getDeviceProperties(self.number)["name"].decode()
        versions = f"cupy {cupy.__version__}|CUDA {runtime.runtimeGetVersion()}|cuDNN {cudnn_version()}"
        return f"{name}|{versions}|{'tf32' if self.tf32 else 'fp32'}"

    def __getstate__(self) -> dict[str, object]:
        """Leave behind what device this is when pickled: another machine may read it."""
        return {name: value for name, value in self.__dict__.items() if name != "key"}

    def time_ms(self, prepare: Callable[[], Callable[[], Any]], what: str) -> float:
        """Return the median time in milliseconds of what `prepare` returns, its inputs not in the L2 cache.

        Raises:
            KernelError: a library doesn't take or run it, which ``what`` names.
            OutOfMemoryError: there is too little memory.
        """
        try:
            with require("cupy").cuda.Device(self.number), _precision(self.tf32):
                return time_ms(prepare(), self.number)
        except _refusals() as error:
            raise failure(what, error) from error

    def expect_working(self) -> None:
        """Make sure that the device works, and that the libraries are there.

        Raises:
            CostError: it doesn't, or one isn't.
        """
        cuda = require("cupy").cuda
        try:
            with cuda.Device(self.number) as device:
                device.synchronize()  # an error that a kernel leaves behind comes back here
                expect_libraries(self.number)
        except (cuda.runtime.CUDARuntimeError, *_refusals()) as error:
            raise CostError(f"expected the CUDA device {self.number} to work, found {one_line(error)}") from error


def _refusals() -> tuple[type[Exception], ...]:
    """Return what CuPy and the libraries below it raise for operands that they don't take, or don't run on.

    CUDA's and cuBLAS's errors are RuntimeErrors; cuDNN's of what it doesn't support, and the compiler's, are not.
    """
    places = ("cudnn", "cudnnGraphNotSupportedError"), ("cupy.cuda.compiler", "CompileException")
    others = (getattr(sys.modules.get(module), name, None) for module, name in places)
    return (MemoryError, RuntimeError, TypeError, ValueError, *(other for other in others if other))


@contextmanager
def _precision(tf32: bool) -> Generator[None]:
    """Within it cuBLAS computes products of float32 in TF32, or doesn't."""
    linalg, single = require("cupy")._core._routines_linalg, np.dtype(np.float32)
    before = linalg.get_compute_type(single)
    linalg.set_compute_type(single, linalg.COMPUTE_TYPE_TF32 if tf32 else linalg.COMPUTE_TYPE_FP32)
    try:
        yield
    finally:
        linalg.set_compute_type(single, before)


def open_device(argument: str) -> int:
    """Return the number of a CUDA device, having made sure that it is there.

    Raises:
        MissingPackageError: CuPy isn't installed.
        CostError: there is no such device.
    """
    cupy = require("cupy")
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise CostError(f"expected a CUDA device, found none: {one_line(error)}") from error
    if not (argument or "0").isdecimal() or int(argument or 0) >= count:
        raise CostError(f"expected a CUDA device from 0 to {count - 1}, found {argument!r}")
    return int(argument or 0)


def time_ms(run: Callable[[], Any], device: int = 0) -> float:
    """Return the median time in milliseconds that work on the current stream takes, its inputs not in the L2 cache."""
    cupy = require("cupy")
    size = cupy.cuda.runtime.getDeviceProperties(device)["l2CacheSize"]
    buffer = cupy.empty(FLUSHES * max(size, 1 << 20), cupy.uint8)
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    began, launches, fills = time.monotonic(), list[float](), list[float]()
    while len(launches) < WARM_UPS or time.monotonic() < began + WARM_S:
        launched = time.monotonic()
        run()
        launches.append(1e3 * (time.monotonic() - launched))
        start.record()
        buffer.fill(0)
        stop.record()
        stop.synchronize()
        fills.append(float(cupy.cuda.get_elapsed_time(start, stop)))
    needed = min(MOST_FILLS, 1 + int(median(launches) / max(median(fills), 1e-3)))
    times: list[float] = []
    while len(times) < MIN_RUNS or (len(times) < MAX_RUNS and sum(times) < ENOUGH_MS):
        for _ in range(needed):
            buffer.fill(len(times) & 1)
        start.record()
        run()
        stop.record()
        stop.synchronize()
        times.append(float(cupy.cuda.get_elapsed_time(start, stop)))
    return median(times)
