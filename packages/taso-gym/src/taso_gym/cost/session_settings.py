"""Which settings of onnxruntime's session make a model faster: its optimisation level, optimizers to leave out.

Some of its fusions end in kernels that are slower than what they replace; which ones depends on model and machine, so
all of a short list are measured. The winner is measured again by itself, in fresh sessions, before it is believed.
Denormals count as zero, too, only where outputs stay what they are: a logarithm of zero is infinite.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.atomic import write_text
from taso_gym.cost.latency_child import DENORMALS, LEVELS
from taso_gym.cost.measure import SessionSettings, measure, outputs_with
from taso_gym.cost.measurement import Measurement
from taso_gym.cost.packages import PROVIDERS, require
from taso_gym.errors import CostError

DEFAULT = SessionSettings()
CANDIDATES = (
    SessionSettings("basic"),
    SessionSettings("extended"),
    SessionSettings(disabled=("NchwcTransformer",)),
    SessionSettings(disabled=("SkipLayerNormFusion",)),
    SessionSettings(disabled=("QuickGeluFusion",)),
    SessionSettings(disabled=("BiasGeluFusion",)),
    SessionSettings(disabled=("AttentionFusion",)),
    SessionSettings(disabled=("MatMulScaleFusion",)),
    SessionSettings(denormals_as_zero=True),
)
"""What is tried besides the default."""

KEYS = (
    "graph_optimization_level",
    "disabled_optimizers",
    "session_config_entries",
    "intra_op_num_threads",
    "providers",
    "onnxruntime",
)
"""Of the file of settings."""

ROUNDING = 1e-6
"""Part of an output's largest magnitude by which what takes denormals for zero may differ."""

FIRST_LOOK = 10
"""Rounds of the first look at each, beside the default: all at once would take the memory of as many models."""


def best_settings(
    model: str | Path, *, threads: int = 1, provider: str = "cpu", dims: Mapping[str, int] | None = None
) -> SessionSettings:
    """Return the settings with which a model runs fastest; the default ones unless others save 2 % for sure.

    Args:
        model: a file.
        threads: intra-op threads.
        provider: "cpu" or "cuda".
        dims: values of dimension symbols.

    Raises:
        CostError: the model doesn't load or run.
    """
    timed = partial(measure, dict.fromkeys(("default", "other"), model), threads=threads, provider=provider, dims=dims)

    def against_default(other: SessionSettings, sessions: int = 2, rounds: int | None = None) -> Measurement:
        return timed(settings={"default": DEFAULT, "other": other}, sessions=sessions, rounds=rounds)

    looks = {other: against_default(other, sessions=1, rounds=FIRST_LOOK) for other in CANDIDATES}
    ranked = sorted(CANDIDATES, key=lambda other: -looks[other].ratio("other"))
    safe = partial(_keep_outputs, model, threads=threads, provider=provider, dims=dims)
    best = next(other for other in ranked if not other.denormals_as_zero or safe(other))
    worth_it = looks[best].ratio("other") > 1 and against_default(best).gain("other")
    return best if worth_it else DEFAULT


def _keep_outputs(model: str | Path, settings: SessionSettings, **how: Any) -> bool:
    """Whether a model returns the same with settings, on inputs that are drawn; no where that can't be seen."""
    try:
        expected, found = (outputs_with(each, model, **how) for each in (DEFAULT, settings))
    except CostError:
        return False
    return all(map(_alike, expected, found))


def _alike(expected: NDArray[Any], found: NDArray[Any]) -> bool:
    if expected.shape != found.shape or expected.dtype.kind != "f":
        return np.array_equal(expected, found)
    largest = np.max(np.abs(expected), where=np.isfinite(expected), initial=0.0)
    return np.allclose(found, expected, rtol=0.0, atol=ROUNDING * float(largest), equal_nan=True)


def write_settings(path: Path, settings: SessionSettings, threads: int, provider: str = "cpu") -> None:
    """Write settings as JSON, in onnxruntime's words."""
    version = require("onnxruntime").__version__
    entries = {DENORMALS: "1"} if settings.denormals_as_zero else {}
    values = (level_name(settings), list(settings.disabled), entries, threads, [PROVIDERS[provider]], version)
    write_text(path, json.dumps(dict(zip(KEYS, values, strict=True)), indent=1) + "\n")


def code(model: Path, settings: SessionSettings, threads: int, provider: str = "cpu") -> str:
    """Return Python code that opens a model with settings."""
    given = f"providers={[PROVIDERS[provider]]!r}, disabled_optimizers={list(settings.disabled)!r}"
    lines = [
        "import onnxruntime as ort",
        *(["ort.preload_dlls()  # CUDA's, where they are Python packages"] if provider == "cuda" else []),
        "options = ort.SessionOptions()",
        f"options.graph_optimization_level = ort.GraphOptimizationLevel.{level_name(settings)}",
        f"options.intra_op_num_threads = {threads}",
        *(
            [f'options.add_session_config_entry("{DENORMALS}", "1")  # of a process\'s first session']
            if settings.denormals_as_zero
            else []
        ),
        f"session = ort.InferenceSession({str(model)!r}, options, {given})",
    ]
    return "\n".join(lines)


def level_name(settings: SessionSettings) -> str:
    """Return onnxruntime's name of an optimisation level."""
    return LEVELS.get(settings.level, "ORT_ENABLE_ALL")
