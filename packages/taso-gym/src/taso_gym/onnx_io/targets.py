"""The files that are read with a model, which nothing is to be written over."""

from __future__ import annotations

import os
from pathlib import Path

from taso_gym.onnx_io.external import data_files


def files_of(model: str | Path) -> dict[Path, str]:
    """Return the file of a model and those that hold its weights, with what is said of them, as `check_targets` does.

    There are none for the name of a network.

    Raises:
        ModelError: the file isn't a model, or one with weights isn't below its folder.
    """
    path = Path(model)
    if not os.path.isfile(path):
        return {}
    weights = {path.parent / name: f"holds weights of {path}" for name in data_files(path)}
    return {path: "is the model", **weights}
