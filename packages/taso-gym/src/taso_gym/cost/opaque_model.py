"""A model of one operator that the table doesn't know, to be timed as it stands in its file."""

from __future__ import annotations

import ast
from itertools import islice
from typing import Any

import numpy as np
from google.protobuf.message import EncodeError
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

from taso_gym.cost.dims import Dims, size_bytes, sizes_of
from taso_gym.cost.machine import memory_bytes
from taso_gym.cost.packages import failure
from taso_gym.cost.runtime import Runtime
from taso_gym.cost.small_model import IR_VERSION, draw
from taso_gym.errors import KernelError, OutOfMemoryError
from taso_gym.onnx_io.reference import blank_node, named_node
from taso_gym.onnx_io.scope import fresh_names
from taso_gym.signature import OpaqueOperator, Signature
from taso_gym.tensor import TensorType, dtype_code


def time_alone(sig: Signature, dims: Dims, runtime: Runtime) -> int:
    """Return the picoseconds of an opaque operator as it stands in its file, on values that are drawn.

    Raises:
        CostError: it can't be built, loaded or run.
    """
    try:
        model, feeds = opaque_model(sig, dims)
        serialised = model.SerializeToString()
    except (ValueError, TypeError, EncodeError) as error:  # NumPy and protobuf refuse odd types, and over 2 GB
        raise failure(f"a model of {sig}", error) from error
    return runtime.time(serialised, {name: runtime.place(value) for name, value in feeds.items()})


def opaque_model(sig: Signature, dims: Dims) -> tuple[ModelProto, dict[str, NDArray[Any]]]:
    """Return a model of an opaque operator and values for its inputs; constants are initializers, drawn too.

    Raises:
        KernelError: it takes values that aren't tensors, or calls functions of its file.
        OutOfMemoryError: it takes more than fits into memory.
    """
    assert isinstance(sig.op, OpaqueOperator)
    versions, functions = ast.literal_eval(sig.op.context or "([], [])")
    if functions:
        raise KernelError(f"expected an operator of onnxruntime, found a function of the file: {sig.op.key}")
    bound = dims.bind([*sig.inputs, *sig.outputs])
    if sum(map(size_bytes, bound)) * 4 > memory_bytes():
        raise OutOfMemoryError(f"expected operators that memory can hold, found {sig}")
    blank = blank_node(sig.op)
    own, fresh = len(blank.input), fresh_names(blank, sig.op.captures)
    names = [*islice(fresh, own), *sig.op.captures]
    inputs: list[ValueInfoProto] = []
    weights: list[TensorProto] = []
    feeds: dict[str, NDArray[Any]] = {}
    rng = np.random.default_rng(0)
    for name, t in zip(names, bound[: len(sig.inputs)], strict=False):
        if t is None:
            continue
        if not isinstance(t, TensorType) or t.shape is None:
            raise KernelError(f"expected tensors as operands of {sig.op.key}, found {t}")
        value = draw(t, rng, ones=True)
        if t.const:
            weights.append(numpy_helper.from_array(value, name))
        else:
            inputs.append(helper.make_tensor_value_info(name, dtype_code(t.dtype), sizes_of(t)))
            feeds[name] = value
    given = {*feeds, *(w.name for w in weights)}
    node = named_node(sig.op, [n if n in given else "" for n in names[:own]], [*islice(fresh, len(sig.outputs))])
    wanted = [ValueInfoProto(name=name) for name in node.output if name]
    graph = helper.make_graph([node], "opaque", inputs, wanted, weights)
    opsets = [helper.make_opsetid(domain, version) for domain, version in versions if version]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION), feeds
