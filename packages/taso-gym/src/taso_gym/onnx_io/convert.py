"""Converting a model to another opset, only ever on request."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import ModelProto, inliner, shape_inference, version_converter

from taso_gym.errors import ModelError, OptionError


def converted(path: str | Path, opset: int) -> ModelProto:
    """Return a model file converted to an opset of the default domain by onnx.version_converter.

    That drops model-local functions, which are inlined before, and what is said of inputs, outputs and the graph.

    Raises:
        ModelError: it isn't a model, or the converter can't convert it.
        OptionError: there is no such opset.
    """
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= opset <= newest:
        raise OptionError(f"expected an opset from 1 to {newest}, found {opset}")
    try:
        model = onnx.load(str(path))  # pyright: ignore[reportUnknownMemberType]
        if model.training_info:
            raise ValueError("training information, which isn't converted")
        return _described(version_converter.convert_version(_inlined(model), opset), model)
    except Exception as error:  # the converter raises whatever its C++ code throws
        reason = str(error).strip().splitlines()
        raise ModelError(
            f"{path}: expected a model that converts to opset {opset}, found {reason[0] if reason else repr(error)}"
        ) from error


def _inlined(model: ModelProto) -> ModelProto:
    """Return a model without functions; to convert one of another opset the inliner has to know types."""
    if not model.functions:
        return model
    return inliner.inline_local_functions(shape_inference.infer_shapes(model), convert_version=True)


def _described(model: ModelProto, original: ModelProto) -> ModelProto:
    """Return a model with the metadata of its original, and the inputs and outputs as that declares them."""
    graph, before = model.graph, original.graph
    for values, given in ((graph.input, before.input), (graph.output, before.output)):
        named = {value.name: value for value in given}
        for value in values:
            if value.name in named:
                value.CopyFrom(named[value.name])
    for listed, given in (
        (model.metadata_props, original.metadata_props),
        (graph.metadata_props, before.metadata_props),
        (graph.quantization_annotation, before.quantization_annotation),
    ):
        del listed[:]
        listed.extend(given)  # pyright: ignore[reportArgumentType]
    return model
