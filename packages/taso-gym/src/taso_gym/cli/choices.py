"""What options of several commands say about their choices and defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taso_gym.checks import MOST_THREADS
from taso_gym.cost.devices import DEFAULT_DEVICE, DEVICES
from taso_gym.cost.recorded import table_names

COSTS = (
    f"roofline (of {DEFAULT_DEVICE}; roofline:DEVICE of {', '.join(d for d in DEVICES if d != DEFAULT_DEVICE)}), "
    "onnxruntime (measured here; onnxruntime:cuda on a GPU), cupy (CUDA kernels, measured here), recorded:NAME "
    f"({', '.join(table_names())}, or a file of taso-gym record)"
)
CLASSES = "exact (every bit stays), reassociate (roundings in another order), fast (forms that lose some accuracy, too)"
RULE_SETS = "default (all hand-written ones), a topic of it, basis or full (generated), or a .rules or .pb file"

Cache = Annotated[
    Path | None,
    typer.Option(
        help="File of the measurements; default: taso-gym/measurements.sqlite in $XDG_CACHE_HOME, which is ~/.cache "
        "where it isn't set."
    ),
]
Dim = Annotated[list[str] | None, typer.Option(help="Size of a dynamic dimension: batch=1; repeat for others.")]
Threads = Annotated[int, typer.Option(help="Threads to run with.", min=1, max=MOST_THREADS)]
RuleSource = Annotated[str, typer.Option(help=f"Rule set: {RULE_SETS}.")]
