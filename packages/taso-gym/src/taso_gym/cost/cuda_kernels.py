"""Runs single operators on a CUDA device: on CuPy arrays, by cuBLAS, cuDNN and CuPy's own kernels.

Most operators run the body that defines them, over CuPy's array module. Those whose body would be many kernels where
libraries have one are run otherwise: a convolution by cuDNN (its graph interface takes CuPy's arrays as they are), a
window pool as one reduction over a strided view, a BatchNormalization as one elementwise kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from taso_gym.cost.dims import sizes_of
from taso_gym.cost.packages import require
from taso_gym.cost.small_model import DIVISIONS, draw
from taso_gym.errors import KernelError, MissingPackageError
from taso_gym.ops import OPERATORS
from taso_gym.ops.floating import cupy_module
from taso_gym.signature import Signature
from taso_gym.tensor import TensorType

Run = Callable[[], Any]
CUDNN_TYPES = {"float": "FLOAT", "float16": "HALF", "bfloat16": "BFLOAT16"}
DOUBLE = 8
POOLS = {"MaxPool": "max", "AveragePool": "mean"}


def kernel(sig: Signature, tf32: bool = False) -> Run:
    """Return a function that runs a signature once, on inputs made for it; its symbols are bound.

    Args:
        sig: what runs.
        tf32: let a convolution of float32 round its operands to 10 bits of mantissa.

    Raises:
        MissingPackageError: CuPy, or for a convolution cuDNN's front end, isn't installed.
        KernelError: an operator without a body, or with an operand that is no tensor.
    """
    cupy, rng = require("cupy"), np.random.default_rng(0)
    arrays: list[Any] = []
    for t in sig.inputs:
        if t is not None and not isinstance(t, TensorType):
            raise KernelError(f"expected tensors as operands of {sig.op.key}, found {t}")
        arrays.append(None if t is None else cupy.asarray(draw(t, rng, ones=sig.op.name in DIVISIONS)))
    if sig.op.name == "Conv" and _fits_cudnn(sig):
        return _convolution(sig, arrays, tf32)
    if sig.op.name in POOLS and len(sig.outputs) == 1:
        return _pool(sig, arrays[0])
    if sig.op.name == "BatchNormalization" and len(sig.outputs) == 1 and arrays[0].dtype.itemsize < DOUBLE:
        return normalization(arrays, sig.attr("epsilon"))
    return _body(sig, arrays)


def _body(sig: Signature, arrays: Sequence[Any]) -> Run:
    """Run the operator's own body; what it returns as a view is copied, as the runtime of a model would."""
    cupy, op = require("cupy"), OPERATORS[sig.op.domain, sig.op.name]
    body, xp, attrs = op.body, cupy_module(), dict(sig.attrs)

    held = [a.data.mem for a in arrays if a is not None]

    def run() -> Any:
        result: Any = body(xp, *arrays, **attrs)
        outputs: list[Any] = [*result] if isinstance(result, tuple) else [result]
        return [o.copy() if any(o.data.mem is mem for mem in held) else cupy.ascontiguousarray(o) for o in outputs]

    return run


def _fits_cudnn(sig: Signature) -> bool:
    pads, spatial = sig.attr("pads"), len(sig.attr("strides"))
    data = sig.inputs[0]
    return isinstance(data, TensorType) and data.dtype in CUDNN_TYPES and pads[:spatial] == pads[spatial:]


def cudnn_version() -> str:
    """Return the version of cuDNN, "none" where it or its front end isn't installed."""
    try:
        return str(require("cudnn").backend_version())
    except (MissingPackageError, OSError, RuntimeError):  # it looks for cuDNN only when it is called
        return "none"


def expect_libraries(device: int) -> None:
    """Use the compiler and each library once, and raise what they raise where one isn't found."""
    cupy = require("cupy")
    ones = cupy.ones((2, 2), cupy.float32)
    _ = (ones + ones) @ ones
    if cudnn_version() != "none":
        _cudnn_handle(device)


@cache
def _cudnn_handle(device: int) -> Any:  # noqa: ARG001 - the current one; each handle holds memory of its device
    return require("cudnn").create_handle()


def _convolution(sig: Signature, arrays: Sequence[Any], tf32: bool) -> Run:
    """Run a convolution by cuDNN, in the layout of the file, then add the bias; groups follow from the shapes."""
    cupy, cudnn = require("cupy"), require("cudnn")
    data, output = sig.inputs[0], sig.outputs[0]
    assert isinstance(data, TensorType) and isinstance(output, TensorType)
    kind = getattr(cudnn.data_type, CUDNN_TYPES[data.dtype])
    x, w = arrays[:2]
    y = cupy.empty(sizes_of(output), x.dtype)
    handle = _cudnn_handle(cupy.cuda.Device().id)
    cudnn.set_stream(handle=handle, stream=cupy.cuda.get_current_stream().ptr)
    graph = cudnn.pygraph(
        handle=handle,
        io_data_type=kind,
        intermediate_data_type=cudnn.data_type.FLOAT,
        compute_data_type=cudnn.data_type.FLOAT,
    )
    image, weight = (_tensor(graph, name, a, kind) for name, a in (("image", x), ("weight", w)))
    spatial = len(sig.attr("strides"))
    result = graph.conv_fprop(
        image=image,
        weight=weight,
        padding=list(sig.attr("pads")[:spatial]),
        stride=list(sig.attr("strides")),
        dilation=list(sig.attr("dilations")),
    )
    result.set_output(True).set_dim(list(y.shape)).set_stride(_strides(y)).set_data_type(kind)
    workspace = cupy.empty(max(_planned(graph, data.dtype == "float" and not tf32), 1), cupy.uint8)
    bias = arrays[2].reshape(1, -1, *[1] * spatial) if len(arrays) > 2 and arrays[2] is not None else None

    def run() -> Any:
        graph.execute({image: x, weight: w, result: y}, workspace, handle=handle)
        if bias is not None:
            cupy.add(y, bias, out=y)
        return y

    return run


def _planned(graph: Any, exact: bool) -> int:
    """Choose how cuDNN computes a graph, without rounding operands if it has to be ``exact``; return bytes it needs."""
    cudnn = require("cudnn")
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    if exact:
        graph.deselect_numeric_notes([cudnn.numerical_note.TENSOR_CORE, cudnn.numerical_note.DOWN_CONVERT_INPUTS])
    graph.check_support()
    graph.build_plans()
    return graph.get_workspace_size()


def _tensor(graph: Any, name: str, array: Any, kind: Any) -> Any:
    return graph.tensor(name=name, dim=list(array.shape), stride=_strides(array), data_type=kind)


def _strides(array: Any) -> list[int]:
    return [stride // array.dtype.itemsize for stride in array.strides]


def normalization(arrays: Sequence[Any], epsilon: float) -> Run:
    """Scale and shift each channel (the second axis) in one kernel."""
    cupy, (x, *others) = require("cupy"), arrays
    facts = [a.reshape(-1, *[1] * (x.ndim - 2)) for a in others]
    body = f"y = (x - mean) * rsqrt((float)var + {epsilon!r}f) * scale + bias"
    scaled = cupy.ElementwiseKernel("T x, T scale, T bias, T mean, T var", "T y", body, "normalize")
    return lambda: scaled(x, *facts)


def _pool(sig: Signature, x: Any) -> Run:
    """Reduce each window of a strided view of the image, padded before, in one kernel; padding counts in every mean."""
    cupy, output = require("cupy"), sig.outputs[0]
    assert isinstance(output, TensorType)
    counts = sizes_of(output)[2:]
    kernel_shape, strides, pads = (sig.attr(name) for name in ("kernel_shape", "strides", "pads"))
    dilations = dict(sig.attrs).get("dilations") or (1,) * len(counts)
    reach = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(counts, strides, kernel_shape, dilations, strict=True)]
    widths = [(p, max(r - p - size, 0)) for p, r, size in zip(pads, reach, x.shape[2:], strict=False)]
    reduce, axes = POOLS[sig.op.name], tuple(range(2 + len(counts), 2 + 2 * len(counts)))
    needs_padding = any(before or after for before, after in widths)
    padded = cupy.pad(x, [(0, 0), (0, 0), *widths]) if needs_padding else x
    inner = padded.strides[2:]
    windows = cupy.lib.stride_tricks.as_strided(
        padded,
        (*x.shape[:2], *counts, *kernel_shape),
        (
            *padded.strides[:2],
            *(s * step for s, step in zip(strides, inner, strict=True)),
            *(d * step for d, step in zip(dilations, inner, strict=True)),
        ),
    )
    return lambda: getattr(windows, reduce)(axis=axes)
