"""``taso-gym measure``: latency of several files, side by side."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from taso_gym.cli.choices import Dim, Threads
from taso_gym.console import console, dimensions, say
from taso_gym.cost.dims import bind_symbols
from taso_gym.cost.measure import measure as latency
from taso_gym.cost.measurement import FEWEST
from taso_gym.errors import OptionError
from taso_gym.onnx_io.types import TypeReader
from taso_gym.onnx_io.wire import read_model
from taso_gym.tensor import ValueType
from taso_gym.weights import MappedFile


def measure(
    models: Annotated[list[Path], typer.Argument(help="ONNX files; the first is the reference.")],
    threads: Threads = 1,
    provider: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    dim: Dim = None,
    sessions: Annotated[int, typer.Option(help="Fresh processes for each model.", min=1)] = 2,
    rounds: Annotated[
        int | None, typer.Option(help="Interleaved rounds in each; default: 30, fewer of slow models.", min=1)
    ] = None,
) -> None:
    """Measure ONNX models side by side in onnxruntime, interleaved, in fresh processes."""
    for path in models:
        if not os.path.isfile(path):
            raise OptionError(f"expected an ONNX file, found none at {path}")
    names, dims = _named(models), _bound([t for path in models for t in _inputs(path)], dimensions(dim or []))
    found = latency(names, threads=threads, provider=provider, dims=dims, sessions=sessions, rounds=rounds)
    table = Table(title=found.conditions, title_justify="left")
    for name in ("model", "ms", "times faster than the first [95 %]"):
        table.add_column(name, overflow="fold")
    for name in names:
        ratio = str(found.speedup(name)) if found.has_intervals else f"{found.ratio(name):.3f}x"
        table.add_row(name, f"{found.time_ms(name):.3f}", "" if name == found.reference else ratio)
    console.print(table)
    if not found.has_intervals:
        say(f"too few rounds for intervals: at least {FEWEST} in all sessions together are needed")
    if found.unstable:
        say(f"the machine was busy: halves of the rounds differ by over 2 % for {', '.join(found.unstable)}")


def _named(models: Sequence[Path]) -> dict[str, Path]:
    """Return files by their paths; one that is given again is numbered: it shows the noise."""
    named: dict[str, Path] = {}
    for i, path in enumerate(models):
        before = models[:i].count(path)
        named[f"{path} ({before + 1})" if before else str(path)] = path
    return named


def _inputs(path: Path) -> list[ValueType]:
    """Return the types of a file's inputs."""
    model, _ = read_model(MappedFile(path))
    reader = TypeReader(model)
    return [reader.read(each.type, each.name) for each in model.graph.input]


def _bound(types: Sequence[ValueType], dims: Mapping[str, int]) -> dict[str, int]:
    """Return a size for each open dimension of some types, the given one where there is one.

    Raises:
        OptionError: one is given that they don't have.
    """
    known = bind_symbols(types, {})
    if unknown := sorted(dims.keys() - known.keys()):
        choices = ", ".join(sorted(known)) or "none, as all sizes are fixed"
        raise OptionError(f"expected dimensions of the inputs ({choices}), found {', '.join(unknown)}")
    return bind_symbols(types, dims)
