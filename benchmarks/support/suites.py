"""Models to be loaded, rewritten and saved: ONNX's own tests with their inputs, and exported networks."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper
from support import exported

from taso_gym.equivalence.compare import Value
from taso_gym.equivalence.runtime import Feeds

BACKEND = ("node", "simple", "pytorch-converted", "pytorch-operator")
LIGHT = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx"))
SUITES = (*BACKEND, "light", *exported.EXPORTERS)


@dataclass(frozen=True)
class Case:
    """A model and one set of inputs for it; None where inputs are to be drawn."""

    name: str
    model: ModelProto
    feeds: Feeds | None


def names(suite: str) -> list[str]:
    """Return the models of a suite."""
    if suite in BACKEND:
        return list(_tests(suite))
    if suite == "light":
        return [path.stem for path in LIGHT]
    return [name for name, network in exported.NETWORKS.items() if suite in network.exporters]


def case(suite: str, name: str, folder: Path) -> Case:
    """Return a model of a suite.

    Args:
        suite: a row of `SUITES`.
        name: one of `names`.
        folder: where exported networks are kept.
    """
    if suite in BACKEND:
        return _backend_case(_tests(suite)[name])
    if suite == "light":
        return Case(name, _without_last_softmax(onnx.load(next(path for path in LIGHT if path.stem == name))), None)
    return Case(name, onnx.load(exported.export(name, folder, exporter=suite)), None)


def _without_last_softmax(model: ModelProto) -> ModelProto:
    """End a light network at its logits.

    All its weights are equal, so its logits are, too, some 1e10 large: Softmax gives 1/1000 whatever is wrong with all
    of them, and 0 where one is rounded otherwise.
    """
    output = model.graph.output[0]
    for i, node in enumerate(model.graph.node):
        if node.op_type == "Softmax" and list(node.output) == [output.name]:
            output.name = node.input[0]
            output.type.tensor_type.ClearField("shape")  # Softmax may have come after a change of it
            del model.graph.node[i]
            break
    return model


def cases(suites: Sequence[str], stride: int = 1) -> Iterator[Case]:
    """Yield every so many-th model of suites of the backend tests, in their order."""
    listed = [test for suite in suites for test in _tests(suite).values()]
    yield from map(_backend_case, listed[::stride])


@cache
def _tests(suite: str) -> Mapping[str, Any]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases compute with infinities
        return {test.name: test for test in load_model_tests(kind=suite)}


def _backend_case(test: Any) -> Case:
    model = test.model or onnx.load(Path(test.model_dir) / "model.onnx")
    if test.data_sets is None:
        folder = Path(test.model_dir) / "test_data_set_0"
        count = len(list(folder.glob("input_*.pb")))
        values = [_read(model, i, (folder / f"input_{i}.pb").read_bytes()) for i in range(count)]
    else:
        values = [_value(v) for v in test.data_sets[0][0]]
    return Case(test.name, model, {i.name: v for i, v in zip(model.graph.input, values, strict=False)})


def _value(value: Any) -> Value:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return value if value is None or isinstance(value, list) else np.asarray(value)


def _read(model: ModelProto, index: int, data: bytes) -> Value:
    kind = model.graph.input[index].type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))
