"""Figures of dream training and of its gap, as PNG files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from taso_agents.dreams.gap_report import Gap
from taso_agents.dreams.run import DreamRun
from taso_gym.atomic import replacing


def write(figure: Figure, path: str | Path) -> None:
    """Write a figure, whole or not at all."""
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=120)


def without_losses(axes: Axes) -> None:
    """Say that a world model isn't fitted by gradients, in place of its losses."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, "this kind counts: it has no losses", ha="center", va="center")


def plot_run(run: DreamRun, path: str | Path) -> None:
    """Draw the losses of the world model, the returns of dreams, and what came of it in reality."""
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    losses, returns, real = figure.subplots(1, 3)
    for name in sorted({name for fitted in run.fits for name in fitted.losses}):
        points = [(i, f.losses[name]) for i, f in enumerate(run.fits) if name in f.losses]
        losses.plot(*zip(*points, strict=True), label=name)
    if run.fits:
        values = [value for fitted in run.fits for value in fitted.losses.values()]
        scale = "log" if min(values, default=1.0) > 0 else "symlog"  # densities may be above 1
        losses.set(title="losses of the world model", xlabel="epoch", yscale=scale)
        losses.legend(fontsize="small")
    else:
        without_losses(losses)
    steps = np.cumsum([0, *(b[1] - a[1] if b[0] == a[0] else b[1] for a, b in zip(run.returns, run.returns[1:]))])  # noqa: B905
    returns.plot(steps + (run.returns[0][1] if run.returns else 0), [r[2] for r in run.returns])
    returns.set(title="return of dreams", xlabel="imagined steps", ylabel="%")
    taken = [r.real_steps for r in run.rounds]
    for name, label in (("drawn", "actions drawn"), ("fixed", "most probable actions"), ("best", "best so far")):
        real.plot(taken, [getattr(r, name) for r in run.rounds], marker="o", label=label)
    real.set(title="saved in reality", xlabel="real steps", ylabel="% of the start graph's cost")
    real.legend(fontsize="small")
    write(figure, path)


def plot_gap(found: Mapping[str, Sequence[Gap]], path: str | Path) -> None:
    """Draw the gap, the error of rewards and the masks over the horizon, one line an actor."""
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    gap, error, masks = figure.subplots(1, 3)
    for number, (name, gaps) in enumerate(found.items()):
        steps = [horizon.steps for horizon in gaps[0].horizons]

        def mean(attribute: str, gaps: Sequence[Gap] = gaps) -> np.ndarray:
            return np.mean([[getattr(h, attribute) for h in g.horizons] for g in gaps], axis=0)

        colour = f"C{number}"
        gap.plot(steps, mean("gap"), marker="o", color=colour, label=name)
        error.plot(steps, mean("reward_error"), marker="o", color=colour, label=name)
        error.plot(steps, mean("persistence_error"), linestyle=":", color=colour)
        masks.plot(steps, mean("f1"), marker="o", color=colour, label=name)
        masks.plot(steps, 1 - mean("illegal"), linestyle="--", color=colour)
    gap.axhline(0.1, color="grey", linewidth=0.8)
    gap.set(
        title="gap of the sum of rewards", xlabel="steps", ylabel="|dreamt - real| / max(|real|, 1 %)", xscale="log"
    )
    error.set(title="error of it; dotted: rewards of 0", xlabel="steps", ylabel="% of the start", xscale="log")
    error.set_yscale("log")
    masks.set(title="mask F1; dashed: legal locations", xlabel="steps", xscale="log")
    gap.legend(fontsize="small")
    write(figure, path)
