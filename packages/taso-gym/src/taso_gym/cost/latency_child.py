"""Times one model in onnxruntime, in a process of its own; `taso_gym.cost.measure` starts it and talks to it.

A script, run by its path: it imports nothing of the package, so that it starts fast. It reads lines of JSON from
standard input and answers each with one line on standard output: first the settings, then one line per round.
It ends when its input does.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LEVELS = {"none": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED"}
DENORMALS = "session.set_denormal_as_zero"
"""Entry of a session's configuration; for the main thread the first session of a process decides."""
LEADING, OTHER = 1, 128
MOST_MARKS = 4
"""So many ``#`` are looked for in the symbol of a dimension without a name."""

Requests = Iterator[Mapping[str, Any]]


class Element(NamedTuple):
    """A tensor in a sequence or an optional input, as onnxruntime describes an input."""

    name: str
    type: str
    shape: list[int | str | None]


def main(serve: Callable[[Mapping[str, Any], Requests], Iterator[dict[str, Any]]]) -> None:
    """Answer standard input line by line, as ``serve`` does of settings and requests; an error is an answer too.

    What libraries print goes to standard error: standard output is for answers only.
    """
    requests = (json.loads(line) for line in sys.stdin)
    with os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8") as answers:
        os.dup2(2, 1)
        try:
            for answer in serve(next(requests), requests):
                answers.write(json.dumps(answer) + "\n")
        except Exception as error:
            answers.write(json.dumps({"error": f"{type(error).__name__}: {error}"}) + "\n")


def rounds(run: Callable[[], Any], clock: Callable[[], int], requests: Requests) -> Iterator[dict[str, Any]]:
    """Say that the model is ready, then yield the times in nanoseconds of each round of runs."""
    yield {"ready": True}
    for request in requests:
        times: list[int] = []
        for _ in range(request["runs"]):
            start = clock()
            run()
            times.append(clock() - start)
        yield {"times": times}


def serve(settings: Mapping[str, Any], requests: Requests) -> Iterator[dict[str, Any]]:
    """Load the model that ``settings`` names, then yield the times in nanoseconds of each round of runs.

    Where they name a file for outputs, write what the first run returns before.
    """
    session = open_session(settings)
    device, feeds = "cuda" if settings["provider"] == "CUDAExecutionProvider" else "cpu", drawn(session, settings)
    if "outputs" in settings:
        np.savez(settings["outputs"], *session.run(None, feeds))
    run, kept = runner(session, feeds, device)
    clock = time.thread_time_ns if settings["threads"] == 1 and device == "cpu" else time.perf_counter_ns
    yield from rounds(run, clock, requests)
    kept.clear()  # the binding doesn't keep its inputs alive: until here


def open_session(settings: Mapping[str, Any]) -> Any:
    """Return a session on the wanted provider; never on another one."""
    ort: Any = import_module("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads = settings["threads"]
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.force_spinning_stop", "1")  # models that wait don't burn a core
    options.graph_optimization_level = getattr(
        ort.GraphOptimizationLevel, LEVELS.get(settings["level"], "ORT_ENABLE_ALL")
    )
    if settings["denormals_as_zero"]:
        options.add_session_config_entry(DENORMALS, "1")
    if settings["provider"] == "CUDAExecutionProvider":
        ort.preload_dlls()  # CUDA's libraries may be Python packages
    session = ort.InferenceSession(
        settings["model"],
        options,
        providers=[settings["provider"]],
        disabled_optimizers=list(settings["disabled"]) or None,
    )
    found = session.get_providers()[0]
    if found != settings["provider"]:
        raise RuntimeError(f"expected the provider {settings['provider']}, found {found}")
    return session


def drawn(session: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return values for a session's inputs by their names."""
    rng, dims = np.random.default_rng(settings["seed"]), dict(settings["dims"])
    return {
        e.name: draw(e, dims, rng) if e.type.startswith("tensor(") else draw_other(e, settings["model"], dims, rng)
        for e in session.get_inputs()
    }


def runner(session: Any, feeds: Mapping[str, Any], device: str) -> tuple[Callable[[], Any], list[Any]]:
    """Return what runs a session, and what has to be kept meanwhile: the inputs, put onto the device once.

    Strings, sequences and optional inputs can't be bound: where there is one, all are handed over at each run.
    """
    entries = session.get_inputs()
    if not all(e.type.startswith("tensor(") and "string" not in e.type for e in entries):
        return partial(session.run, None, feeds), []
    binding = session.io_binding()
    kept = [bind_input(binding, e.name, feeds[e.name], device) for e in entries]
    for entry in session.get_outputs():
        binding.bind_output(entry.name, device)
    return partial(session.run_with_iobinding, binding), kept


def bind_input(binding: Any, name: str, value: NDArray[Any], device: str) -> Any:
    """Put an input onto the device once, so that runs don't copy it."""
    ort: Any = import_module("onnxruntime")
    if value.dtype.isbuiltin == 1:
        placed = ort.OrtValue.ortvalue_from_numpy(value, device)
    else:  # of ml_dtypes: onnxruntime makes these on the CPU only
        code = import_module("onnx.helper").np_dtype_to_tensor_dtype(value.dtype)
        placed = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(value.view(f"u{value.dtype.itemsize}"), code)
    binding.bind_ortvalue_input(name, placed)
    return placed


def draw(entry: Any, dims: dict[str, int], rng: np.random.Generator) -> NDArray[Any]:
    """Return a value for a session's input: normal floats, else 0 and 1, which serve as token ids and masks."""
    kind = entry.type.removeprefix("tensor(").removesuffix(")")
    shape = sizes(entry.name, entry.shape, dims)
    if kind in ("float", "double", "float16"):
        return rng.standard_normal(shape).astype({"float": "f4", "double": "f8", "float16": "f2"}[kind])
    if kind == "string":
        return np.full(shape, "a", object)
    if kind.startswith(("int", "uint")) and kind.removeprefix("u") in ("int8", "int16", "int32", "int64"):
        return rng.integers(0, 2, shape).astype(kind)
    if kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in ("bfloat16", "int4", "uint4") or kind.startswith("float8"):
        onnx: Any = import_module("onnx")  # only here: it takes long
        dtype = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(kind.upper()))
        return (rng.standard_normal(shape) if "float" in kind else rng.integers(0, 2, shape)).astype(dtype)
    raise TypeError(f"expected a tensor as input {entry.name!r}, found {entry.type}")


def draw_other(entry: Any, model: str, dims: dict[str, int], rng: np.random.Generator) -> Any:
    """Return a value for an optional input, or a sequence of two, of the sizes that the file declares."""
    onnx: Any = import_module("onnx")
    declared = next(i for i in onnx.load(model, load_external_data=False).graph.input if i.name == entry.name).type
    lists = "seq(" in entry.type
    for kind in ("optional_type", "sequence_type"):
        if declared.HasField(kind):
            declared = getattr(declared, kind).elem_type
    if not declared.HasField("tensor_type"):
        raise TypeError(f"expected a tensor, a sequence or an optional one as input {entry.name!r}, found {entry.type}")
    shape = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in declared.tensor_type.shape.dim]
    element = Element(entry.name, re.sub(r".*(tensor\(\w+\)).*", r"\1", entry.type), shape)
    return [draw(element, dims, rng) for _ in range(2)] if lists else draw(element, dims, rng)


def sizes(name: str, shape: Sequence[int | str | None], dims: dict[str, int]) -> list[int]:
    """Return a size for each dimension of an input: its own, else that of its symbol.

    One that has none gets it: 1 on a leading axis, else 128. A dimension without a name has the symbol that
    `taso_gym.onnx_io` gives it: ``name#axis``, with as many ``#`` as make it differ from all names.
    """
    found = list[int]()
    for axis, size in enumerate(shape):
        if not isinstance(size, int):
            own = [f"{name}{'#' * count}{axis}" for count in range(MOST_MARKS, 0, -1)]
            symbol = size or next((each for each in own if each in dims), own[-1])
            size = dims.setdefault(symbol, OTHER if axis else LEADING)
        found.append(size)
    return found


if __name__ == "__main__":
    main(serve)
