"""The picture of the table of benchmarks/end_to_end.py: how much faster each network runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from taso_gym.atomic import replacing

SHOWN = {"taso-gym": "tab:blue", "taso-gym, fast": "tab:orange", "openvino": "tab:gray"}
"""Columns of the table that have bars."""
LABELS = {"taso-gym, fast": "taso-gym --numerics fast", "openvino": "OpenVINO"}


def draw(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw a group of bars for each network, the largest gain first; a file left as it was has a bar of length 0."""
    rows = sorted(rows, key=lambda row: max(row["speedups"][tool][0] for tool in row["speedups"] if tool != "openvino"))
    figure = Figure(figsize=(9, 0.27 * len(rows) + 1.2), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(rows))
    shown = [tool for tool in SHOWN if any(tool in row["speedups"] for row in rows)]
    for i, tool in enumerate(shown):
        found = [row["speedups"].get(tool, [np.nan] * 3) for row in rows]
        middle, low, high = np.array(found).T
        axes.barh(
            places + 0.28 * (1 - i),
            middle - 1,
            left=1,
            height=0.26,
            color=SHOWN[tool],
            label=LABELS.get(tool, tool),
            xerr=np.nan_to_num([middle - low, high - middle]),
            error_kw={"linewidth": 0.6},
        )
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(places, [row["network"] for row in rows], fontsize="small")
    axes.set(xlabel="times as fast as the file given, both in onnxruntime (OpenVINO: in its own runtime)", xscale="log")
    ticks = [0.9, 1, 1.1, 1.2, 1.5, 2, 2.5]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.legend(loc="lower right")
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
