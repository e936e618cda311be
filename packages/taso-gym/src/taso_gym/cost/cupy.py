"""CUDA kernels timed one by one on CuPy's device memory, and whole graphs in onnxruntime's CUDA provider.

A kernel's time is the median over runs of the time between two CUDA events. Before each, a buffer larger than the L2
cache is written: the inputs come from memory, as they do in a large model, and by the time the device has done that, as
often as the host needs, the host has queued the kernels of an operator, so that launching them isn't part of the time.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from taso_gym.cost.cache import Cache
from taso_gym.cost.cuda_kernels import cudnn_version, expect_libraries, kernel
from taso_gym.cost.devices import DEVICES
from taso_gym.cost.dims import Dims
from taso_gym.cost.packages import PROVIDERS, failure, require, require_provider
from taso_gym.cost.region import lone
from taso_gym.cost.regional import StartedCost, bind_signature, describe
from taso_gym.cost.small_model import draw
from taso_gym.cost.work import Work
from taso_gym.errors import CostError, KernelError, OutOfMemoryError, one_line
from taso_gym.graph import Graph
from taso_gym.onnx_io import to_model
from taso_gym.signature import OpaqueOperator, Signature
from taso_gym.tensor import TensorType, numpy_dtype

WARM_UPS, WARM_S = 3, 0.02
"""Before it is timed, work is done so often and so long: a device that had nothing to do is slower."""
MIN_RUNS, MAX_RUNS = 9, 101
ENOUGH_MS = 30.0
BY_BYTES = frozenset({"Resize"})
"""Operators that are a kernel in libraries, and by their bodies one for each row of the result."""
FLUSHES, MOST_FILLS = 4, 64
"""The buffer that is written before a run is so many times larger than the L2 cache, and written so often at most."""


class CupyCost(StartedCost):
    """Isolated CUDA kernels: what each operator of the graph takes by itself, without a runtime's fusions."""

    deterministic = False

    def __init__(
        self,
        argument: str = "",
        dims: Mapping[str, int] | None = None,
        *,
        start: Graph | None = None,
        tf32: bool = False,
        cache: str | Path | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        """Make the model of the current CUDA device.

        Args:
            argument: number of the device; empty for 0.
            dims: values of dimension symbols.
            start: the graph that a search begins with; what fails of it costs its roofline bound, wherever it is, and
                all else that fails more than the whole start.
            tf32: let matrix products and convolutions of float32 round their operands to 10 bits of mantissa, as
                onnxruntime does.
            cache: file of the measurements; None for the user's.
            progress: called with a description of each signature before it is measured.

        Raises:
            MissingPackageError: CuPy isn't installed.
            CostError: there is no such CUDA device.
        """
        path = None if cache is None else str(cache)
        super().__init__(f"cupy:{argument}" if argument else "cupy", dims, start, tf32=tf32, cache=path)
        self._device = open_device(argument)
        self.bound_device = DEVICES["h200-tf32" if tf32 else "h200"]
        self.tf32, self._cache, self._progress = tf32, Cache(cache), progress

    @property
    def key(self) -> str:
        """Device, versions, whether TF32 is used, and bound dimensions."""
        return f"{self._device_key}[{self._dims.key}]"

    @cached_property
    def _device_key(self) -> str:
        cupy = require("cupy")
        runtime = cupy.cuda.runtime
        name = runtime.getDeviceProperties(self._device)["name"].decode()
        versions = f"cupy {cupy.__version__}|CUDA {runtime.runtimeGetVersion()}|cuDNN {cudnn_version()}"
        return f"{name}|{versions}|{'tf32' if self.tf32 else 'fp32'}"

    def __getstate__(self) -> dict[str, object]:
        """Leave behind what device this is when pickled, too: another machine may read it."""
        return {name: value for name, value in super().__getstate__().items() if name != "_device_key"}

    def time(self, sig: Signature, context: Hashable, load: Work) -> tuple[int, int]:  # noqa: ARG002
        """Return the measured time of a signature, and one kernel; some, and opaque ones, are costed by their bytes."""
        if isinstance(sig.op, OpaqueOperator) or sig.op.key in BY_BYTES:
            return self.opaque_time(sig, load)
        name = f"{self.key}|{describe(lone(sig), self._dims)}"
        text = self._cache.get(name)
        found = self._found(name, sig) if text is None else json.loads(text)
        if "failed" not in found:
            return found["ps"], 1
        return self.unknown_time(lone(sig), load)

    def _found(self, name: str, sig: Signature) -> dict[str, Any]:
        """Measure a signature and remember it, or that it fails; where memory is short it fails for now only.

        Raises:
            CostError: the cache can't be used, or the device doesn't work.
        """
        if self._progress:
            self._progress(str(sig))
        try:
            found = self._measure(bind_signature(sig, self._dims))
        except OutOfMemoryError as error:
            return {"failed": str(error)}
        except KernelError as error:
            self._expect_working()  # else what is remembered would be the device's fault
            found = {"failed": str(error)}
        return json.loads(self._cache.put(name, json.dumps(found)))

    def _measure(self, sig: Signature) -> dict[str, Any]:
        try:
            with require("cupy").cuda.Device(self._device), _Precision(self.tf32):
                return {"ps": int(time_ms(kernel(sig, self.tf32), self._device) * 1e9)}
        except _refusals() as error:
            raise failure(f"a kernel for {sig.op.key}", error) from error

    def _expect_working(self) -> None:
        cuda = require("cupy").cuda
        try:
            with cuda.Device(self._device) as device:
                device.synchronize()  # an error that a kernel leaves behind comes back here
                expect_libraries(self._device)
        except (cuda.runtime.CUDARuntimeError, *_refusals()) as error:
            raise CostError(f"expected the CUDA device {self._device} to work, found {one_line(error)}") from error


def _refusals() -> tuple[type[Exception], ...]:
    """Return what CuPy and the libraries below it raise for operands that they don't take, or don't run on.

    CUDA's and cuBLAS's errors are RuntimeErrors; cuDNN's of what it doesn't support, and the compiler's, are not.
    """
    places = ("cudnn", "cudnnGraphNotSupportedError"), ("cupy.cuda.compiler", "CompileException")
    others = (getattr(sys.modules.get(module), name, None) for module, name in places)
    return (MemoryError, RuntimeError, TypeError, ValueError, *(other for other in others if other))


class _Precision:
    """Within it cuBLAS computes products of float32 in TF32, or doesn't."""

    def __init__(self, tf32: bool) -> None:
        self._tf32 = tf32

    def __enter__(self) -> None:
        linalg = require("cupy")._core._routines_linalg
        self._before = linalg.get_compute_type(np.dtype(np.float32))
        kind = linalg.COMPUTE_TYPE_TF32 if self._tf32 else linalg.COMPUTE_TYPE_FP32
        linalg.set_compute_type(np.dtype(np.float32), kind)

    def __exit__(self, *_: object) -> None:
        require("cupy")._core._routines_linalg.set_compute_type(np.dtype(np.float32), self._before)


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


def graph_time_ms(graph: Graph, dims: Mapping[str, int] | None = None, device: int = 0) -> float:
    """Return the median time in milliseconds of a whole graph in onnxruntime's CUDA provider.

    Its inputs and outputs are CuPy arrays that the session is bound to, and it runs on CuPy's stream, so that the same
    events time it.

    Raises:
        MissingPackageError: CuPy or onnxruntime isn't installed.
        CostError: no such device, or the provider isn't there or doesn't work.
    """
    open_device(str(device))
    cupy, ort, binder = require("cupy"), require_provider("cuda"), Dims(dims)
    with cupy.cuda.Device(device), cupy.cuda.Stream(non_blocking=True) as stream:
        options = {"device_id": str(device), "user_compute_stream": str(stream.ptr)}
        provider = PROVIDERS["cuda"]
        ort.set_default_logger_severity(3)  # given options it looks for a plugin first, and warns that there is none
        try:
            session = ort.InferenceSession(to_model(graph).SerializeToString(), providers=[(provider, options)])
        finally:
            ort.set_default_logger_severity(2)
        if (found := session.get_providers()[0]) != provider:
            raise CostError(f"expected the provider {provider} to work, found {found} in its place")
        binding, rng = session.io_binding(), np.random.default_rng(0)
        kept: list[Any] = []
        for value in graph.info.inputs:
            t = binder.bind([graph.type_of(value)])[0]
            assert isinstance(t, TensorType)
            array = cupy.asarray(draw(t, rng))
            name, dtype = graph.leaves[value].name, numpy_dtype(t.dtype)
            binding.bind_input(name, "cuda", device, dtype, array.shape, array.data.ptr)
            kept.append(array)
        for name in graph.info.output_names:
            binding.bind_output(name, "cuda", device)
        stream.synchronize()
        return time_ms(lambda: session.run_with_iobinding(binding), device)
