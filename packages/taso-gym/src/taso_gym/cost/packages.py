"""Packages that cost models need and an extra brings, imported when one is needed, and what goes wrong in them."""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from taso_gym.errors import (
    CostError,
    KernelError,
    MissingPackageError,
    OptionError,
    OutOfMemoryError,
    WriteError,
    one_line,
)

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
"""Short name -> onnxruntime's name of an execution provider."""

EXTRAS = {"onnxruntime": ("cpu", "gpu"), "cupy": ("gpu",), "cudnn": ("gpu",)}
"""Package -> extras of taso-gym that bring it."""

MEMORY_SHORT = re.compile(r"failed to allocate|bad[ _]?alloc|out of memory|alloc_failed", re.IGNORECASE)
"""What onnxruntime, the C++ library, CUDA and cuBLAS say where memory is short: they have no exception of its own."""


def require(package: str) -> Any:
    """Return a package of an extra.

    Raises:
        MissingPackageError: it isn't installed; the message names the extras that bring it.
    """
    try:
        return import_module(package)
    except ImportError as error:
        choices = " or ".join(f"'taso-gym[{extra}]'" for extra in EXTRAS[package])
        never_both = ", in an environment without 'taso-gym[cpu]'" if EXTRAS[package] == ("gpu",) else ""
        raise MissingPackageError(
            f"expected the package {package}, found none ({error}): pip install {choices} brings it{never_both}"
        ) from error


def require_provider(provider: str) -> Any:
    """Return onnxruntime, having made sure that it offers an execution provider, by short name.

    Raises:
        OptionError: an unknown provider.
        MissingPackageError: onnxruntime isn't installed.
        CostError: it comes without the provider.
    """
    if provider not in tuple(PROVIDERS):
        raise OptionError(f"expected a provider among {', '.join(PROVIDERS)}, found {provider!r}")
    ort = require("onnxruntime")
    if provider == "cuda":
        _load_libraries(ort)
    found = ort.get_available_providers()
    if PROVIDERS[provider] not in found:
        raise CostError(f"expected onnxruntime with the provider {PROVIDERS[provider]}, found {', '.join(found)}")
    return ort


@cache
def _load_libraries(ort: Any) -> None:
    """Load CUDA's libraries from the packages that the extra brings, where onnxruntime doesn't look by itself."""
    with redirect_stdout(io.StringIO()):  # where it says which it doesn't find: the system may have them
        ort.preload_dlls()


def failure(expected: str, error: Exception) -> KernelError | OutOfMemoryError:
    """Return what to raise for an exception of a library that was to load or run something."""
    short = isinstance(error, MemoryError) or MEMORY_SHORT.search(str(error))
    kind = OutOfMemoryError if short else KernelError
    return kind(f"expected {expected}, found {one_line(error) or 'too little memory'}")


@contextmanager
def temporary_folder(*cut_off: type[Exception], kind: type[CostError] = CostError) -> Generator[Path]:
    """Make a folder for a model and what comes of it, which is deleted at the end; raises as `expecting_room` does."""
    with expecting_room(*cut_off, kind=kind), tempfile.TemporaryDirectory(prefix="taso-gym-") as folder:
        yield Path(folder)


@contextmanager
def expecting_room(*cut_off: type[Exception], kind: type[CostError] = CostError) -> Generator[None]:
    """Write to a folder for temporary files; a pipe that breaks meanwhile, to which progress is told, is none of it.

    Args:
        cut_off: what reading a file raises, besides OSError, that didn't fit onto the disk.
        kind: what is raised.

    Raises:
        CostError: there is no room.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, WriteError, *cut_off) as error:
        where = tempfile.tempdir or "a folder for temporary files"  # which may be what there is none of
        raise kind(f"expected room for a model in {where}, found {one_line(error)}") from error
