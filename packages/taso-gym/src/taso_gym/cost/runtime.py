"""Optional packages of the cost models, imported when a model needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from taso_gym.errors import CostError, MissingPackageError

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
"""Short name -> onnxruntime's name of an execution provider."""

EXTRAS = {"onnxruntime": ("cpu", "gpu"), "cupy": ("gpu",)}
"""Package -> extras of taso-gym that bring it."""


def require(package: str) -> Any:
    """Return a package of an extra.

    Raises:
        MissingPackageError: it isn't installed; the message names the extras that bring it.
    """
    try:
        return import_module(package)
    except ImportError as error:
        choices = " or ".join(f"pip install 'taso-gym[{extra}]'" for extra in EXTRAS[package])
        raise MissingPackageError(f"expected the package {package}, found none ({error}): {choices}") from error


def require_provider(provider: str) -> Any:
    """Return onnxruntime, having made sure that it offers an execution provider.

    Raises:
        MissingPackageError: onnxruntime isn't installed.
        CostError: it comes without the provider.
    """
    ort = require("onnxruntime")
    found = ort.get_available_providers()
    if provider not in found:
        raise CostError(f"expected onnxruntime with the provider {provider}, found {', '.join(found)}")
    return ort
