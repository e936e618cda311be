"""``taso-gym validate``: do two files compute the same?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taso_gym.cli.choices import Dim
from taso_gym.console import console, dimensions
from taso_gym.equivalence import validate as compare


def validate(
    a: Annotated[Path, typer.Argument(help="An ONNX file.")],
    b: Annotated[Path, typer.Argument(help="Another one, with the same inputs and outputs.")],
    dim: Dim = None,
) -> None:
    """Compare two ONNX models on random inputs in onnxruntime; exit code 1 where they differ."""
    report = compare(a, b, dims=dimensions(dim or []))
    console.print(report)
    if not report.ok:
        raise typer.Exit(1)
