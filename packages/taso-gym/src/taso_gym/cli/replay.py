"""``taso-gym replay``: play a recorded optimisation back and check it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taso_gym import onnx_io
from taso_gym.atomic import check_targets
from taso_gym.console import say
from taso_gym.onnx_io.external import files_of
from taso_gym.replay import Replay


def replay(
    file: Annotated[Path, typer.Argument(help="A replay (JSON), as `taso_gym.Replay` writes it.")],
    model: Annotated[str | None, typer.Option(help="The model, where it isn't at the recorded path.")] = None,
    rules: Annotated[str | None, typer.Option(help="The rule set, where it isn't at the recorded path.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the optimised ONNX file.")] = None,
) -> None:
    """Repeat a recorded optimisation; model, rules and the cost after every rewrite must agree bit for bit."""
    found = Replay.load(file)
    read = files_of(found.source.model if model is None else model)
    check_targets(output, kept={file: "is the replay", **read})
    state = found.validate(model, rules)
    before, after = found.start_ps / 1e9, state.cost.time_ms
    say(f"{len(found.moves)} rewrites, {before:.4g} ms to {after:.4g} ms by {found.source.cost}: all agree")
    if output is not None:
        onnx_io.save(state.graph, output)
