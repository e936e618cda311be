"""What arguments of several commands say."""

from __future__ import annotations

from typing import Annotated

import typer

Model = Annotated[str, typer.Argument(help="Id of an environment, or an ONNX file.")]
ACTOR_STEPS = "Least real steps of each actor, which plays whole episodes."
