"""CUDA kernels timed one by one on CuPy's device memory, and whole graphs in onnxruntime's CUDA provider."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from taso_gym.cost.cuda_device import CudaDevice, open_device, time_ms
from taso_gym.cost.cuda_kernels import kernel
from taso_gym.cost.devices import DEVICES
from taso_gym.cost.dims import Dims
from taso_gym.cost.findings import Findings
from taso_gym.cost.packages import PROVIDERS, require, require_provider
from taso_gym.cost.region import lone
from taso_gym.cost.regional import StartedCost, bind_signature, describe
from taso_gym.cost.small_model import draw
from taso_gym.cost.work import Work
from taso_gym.errors import CostError
from taso_gym.graph import Graph
from taso_gym.onnx_io import to_model
from taso_gym.signature import OpaqueOperator, Signature
from taso_gym.tensor import TensorType, numpy_dtype

BY_BYTES = frozenset({"Resize"})
"""Operators that are a kernel in libraries, and by their bodies one for each row of the result."""


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
        self._device = CudaDevice(argument, tf32)
        self.bound_device = DEVICES["h200-tf32" if tf32 else "h200"]
        self._findings, self._progress = Findings(self._device, cache), progress

    @property
    def key(self) -> str:
        """Device, versions, whether TF32 is used, and bound dimensions."""
        return f"{self._device.key}[{self._dims.key}]"

    def time(self, sig: Signature, context: Hashable, load: Work) -> tuple[int, int]:  # noqa: ARG002
        """Return the measured time of a signature, and one kernel; some, and opaque ones, are costed by their bytes."""
        if isinstance(sig.op, OpaqueOperator) or sig.op.key in BY_BYTES:
            return self.opaque_time(sig, load)
        found = self._findings.found(describe(lone(sig), self._dims), partial(self._measure, sig))
        return (found["ps"], 1) if "failed" not in found else self.unknown_time(lone(sig), load)

    def _measure(self, sig: Signature) -> dict[str, Any]:
        if self._progress:
            self._progress(str(sig))
        prepare = partial(kernel, bind_signature(sig, self._dims), self._device.tf32)
        return {"ps": int(self._device.time_ms(prepare, f"a kernel for {sig.op.key}") * 1e9)}


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
