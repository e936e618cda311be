"""Converting a model to another opset, only ever on request."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import ModelProto, version_converter

from taso_gym.errors import ModelError, OptionError


def converted(path: str | Path, opset: int) -> ModelProto:
    """Return a model file converted to an opset of the default domain by onnx.version_converter.

    Raises:
        ModelError: it isn't a model, or the converter can't convert it.
        OptionError: there is no such opset.
    """
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= opset <= newest:
        raise OptionError(f"expected an opset from 1 to {newest}, found {opset}")
    try:
        model = onnx.load(str(path))  # pyright: ignore[reportUnknownMemberType]
        return version_converter.convert_version(model, opset)
    except Exception as error:  # the converter raises whatever its C++ code throws
        reason = str(error).strip().splitlines()
        raise ModelError(
            f"{path}: expected a model that converts to opset {opset}, found {reason[0] if reason else error!r}"
        ) from error
