"""Running a large model in a process of its own, so that its memory is given back before the next one runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from onnx import OptionalProto, numpy_helper

from taso_gym.cost.packages import temporary_folder
from taso_gym.equivalence.compare import Value
from taso_gym.equivalence.runtime import Feeds, run_model


def run_in_child(model: Path, feeds: Sequence[Feeds]) -> list[list[Value] | str]:
    """Do what `run_model` does, in another process; values go through files.

    Where the process dies, most likely for want of memory, the model failed on all inputs.

    Raises:
        CostError: there is no room for temporary files.
    """
    with temporary_folder() as folder:
        listed = [{key: _write(folder, value) for key, value in feed.items()} for feed in feeds]
        (folder / "feeds.json").write_text(json.dumps(listed), encoding="utf-8")
        command = [sys.executable, "-P", __file__, str(model), str(folder)]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            status = f"{done.returncode}, {said[-1]}" if said else str(done.returncode)
            return [f"its process ended with {status}"] * len(feeds)
        results: list[Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        return [r if isinstance(r, str) else [_read(folder, file) for file in r] for r in results]


def _write(folder: Path, value: Value) -> str:
    """Write a value as ONNX's own test data are written and return the file's name."""
    path = folder / f"{len(list(folder.iterdir()))}.pb"
    if isinstance(value, list):
        proto = OptionalProto(
            elem_type=OptionalProto.SEQUENCE, sequence_value=numpy_helper.from_list(cast(list[Any], value))
        )
    elif value is None:
        proto = OptionalProto(elem_type=OptionalProto.UNDEFINED)
    else:
        proto = OptionalProto(elem_type=OptionalProto.TENSOR, tensor_value=numpy_helper.from_array(np.asarray(value)))
    path.write_bytes(proto.SerializeToString())
    return path.name


def _read(folder: Path, name: str) -> Value:
    proto = OptionalProto.FromString((folder / name).read_bytes())
    if proto.elem_type == OptionalProto.SEQUENCE:
        return numpy_helper.to_list(proto.sequence_value)
    return numpy_helper.to_array(proto.tensor_value) if proto.elem_type == OptionalProto.TENSOR else None


def main(model: str, name: str) -> None:
    """Run the model on the inputs in a folder and leave the outputs there."""
    folder = Path(name)
    listed: list[dict[str, str]] = json.loads((folder / "feeds.json").read_text(encoding="utf-8"))
    feeds = [{key: _read(folder, file) for key, file in feed.items()} for feed in listed]
    results = run_model(Path(model), feeds)
    written = [r if isinstance(r, str) else [_write(folder, value) for value in r] for r in results]
    (folder / "results.json").write_text(json.dumps(written), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
