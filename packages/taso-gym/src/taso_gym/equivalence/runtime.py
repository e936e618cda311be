"""Running models in onnxruntime, with values of every element type."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from taso_gym.cost.packages import require
from taso_gym.equivalence.compare import Value, is_foreign
from taso_gym.errors import one_line
from taso_gym.tensor import dtype_name, numpy_dtype

Feeds = Mapping[str, Value]


def run_model(model: Path | bytes, feeds: Sequence[Feeds]) -> list[list[Value] | str]:
    """Run a model at the default optimisation level, once for each set of inputs.

    Args:
        model: a file or the content of one.
        feeds: values by the names of inputs; those that the model doesn't have are ignored.

    Returns:
        For each, the outputs in order, or onnxruntime's message where it failed.

    Raises:
        MissingPackageError: onnxruntime isn't installed.
    """
    ort = require("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 4  # what is wrong comes as an exception, too
    try:
        content = str(model) if isinstance(model, Path) else model
        session = ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions share no base class
        return [one_line(error)] * len(feeds)
    return [_run(ort, session, feed) for feed in feeds]


def _run(ort: Any, session: Any, feeds: Feeds) -> list[Value] | str:
    names = {i.name for i in (*session.get_inputs(), *session.get_overridable_initializers())}
    given = {name: value for name, value in feeds.items() if name in names}
    types = [o.type for o in session.get_outputs()]
    try:
        if all(map(_is_plain, given.values())) and all(map(_is_plain_type, types)):
            return session.run(None, given)
        placed = {name: _ort_value(ort, value) for name, value in given.items()}
        return [_numpy_value(v) for v in session.run_with_ort_values(None, placed)]
    except Exception as error:  # onnxruntime's exceptions share no base class
        return one_line(error)


def _is_plain(value: Value) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, cast(list[Value], value)))
    return value is None or not is_foreign(value.dtype)


def _is_plain_type(name: str) -> bool:
    """Whether a type of onnxruntime, ``tensor(float)`` or ``seq(tensor(int64))``, holds elements that NumPy has."""
    return not re.search(r"bfloat16|float8|float4|int4|int2", name)


def _ort_value(ort: Any, value: Value) -> Any:
    if _is_plain(value):
        return ort.OrtValue.ortvalue_from_numpy(value)
    bits: Value = np.ascontiguousarray(value).view(f"u{value.dtype.itemsize}").reshape(value.shape)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, helper.np_dtype_to_tensor_dtype(value.dtype))


def _numpy_value(value: Any) -> Value:
    """Return an output; onnxruntime doesn't convert the types that NumPy lacks, so their bytes are copied."""
    code: int = value.element_type()
    if not is_foreign(numpy_dtype(dtype_name(code))):
        return value.numpy()
    tensor = TensorProto(dims=value.shape(), data_type=code)
    tensor.raw_data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    return numpy_helper.to_array(tensor)
