"""Figures 5.3, 5.5 and 5.6 of the dissertation: how training goes, for real, of the world model, and in its dreams.

    python benchmarks/training_figures.py [networks] [--seeds 3] [--out FOLDER]

* 5.3: what the model-free agent's episodes save while it trains in the real environment, knowing no cost changes;
* 5.5: the log-likelihood loss of the mixture (``mdn``) while it is fitted to whole episodes;
* 5.6: what dreams save, by the world model, while the controller trains in them: of ``mdn``, and of ``graph`` with a
  controller that begins at random.

As there, curves of 5.3 and 5.6 are scaled to 0 … 1 by the least and the largest mean of each network. Lines are
interquartile means over seeds, bands their 95 % bootstrap intervals. Runs of 5.3 are those of `dream_costs.py` in the
same FOLDER; every run is a file there and isn't repeated.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from dream_costs import arguments, measured
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from support.cells import cell

from taso_agents.cli.dream import of_kind
from taso_agents.data.collect import empty_dataset
from taso_agents.dreams.controller import dream
from taso_agents.dreams.plots import write
from taso_agents.dreams.run import DreamRun
from taso_agents.dreams.settings import DreamTrainSettings
from taso_agents.dreams.starts import starts_of
from taso_agents.dreams.train import build_model, gather
from taso_agents.environment.real_env import make_env
from taso_agents.stats import iqm_estimate
from taso_agents.training.run_callback import Point
from taso_agents.training.run_state import torch_threads
from taso_agents.world_models.fit import fit
from taso_gym.registration import env_id
from taso_gym.rules.ruleset import RuleSet

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Steps (T,), and values of each seed (seeds, T)."""


def trained(options: argparse.Namespace, kind: str, network: str, seed: int) -> dict[str, Any]:
    """Fit a world model and train a controller in its dreams; return the losses and the returns of dreams."""

    def measure() -> dict[str, Any]:
        torch.manual_seed(seed)
        sizes = {"dreams": 16, "rollout": options.rollout, "minibatch": 64, "epochs": 4, "greed": 0.0}
        settings = replace(
            DreamTrainSettings(), seed=seed, steps=options.fit_steps, dream_steps=options.imagined, **sizes
        )
        settings = of_kind(settings, kind, separate_reward=False)
        epochs = {"encoder_epochs": options.passes[0], "epochs": options.passes[1], "seed": seed}
        settings = replace(settings, fit=replace(settings.fit, **epochs))
        env = make_env(env_id(network), max_steps=options.fit_max_steps)
        env.reset()
        run = DreamRun(build_model(env, settings), empty_dataset(env))
        gather(env, run, settings, 0)
        latents = fit(run.model, run.dataset, settings.fit, run.fits.append)
        starts = starts_of(run.model, run.dataset, latents, anywhere=False)
        dream(run, starts, settings, options.fit_max_steps, lambda _text: None)
        losses = [fitted.losses["latent"] for fitted in run.fits if fitted.phase == "memory"]
        return {"losses": losses, "returns": [[steps, mean] for _, steps, mean in run.returns]}

    names = ("fit_steps", "fit_max_steps", "imagined", "rollout", "passes")
    settings = {name: getattr(options, name) for name in names} | {"rules": options.rules}
    return cell(options.out, f"figures-{kind}/{network}-{seed}", settings, measure)


def normalised(curve: Curve) -> Curve:
    """Scale values so that the least of the means over seeds is 0 and the largest 1, where all seeds have a value."""
    there = np.isfinite(curve[1]).all(0)
    steps, values = curve[0][there], curve[1][:, there]
    means = values.mean(0)
    return steps, (values - means.min()) / max(float(np.ptp(means)), 1e-9)


def draw(axes: Axes, curve: Curve, label: str) -> None:
    """Draw the interquartile mean of seeds and its interval."""
    steps, values = curve
    estimates = np.array([iqm_estimate(column, resamples=500) for column in values.T])
    (line,) = axes.plot(steps, estimates[:, 0], label=label)
    axes.fill_between(steps, estimates[:, 1], estimates[:, 2], color=line.get_color(), alpha=0.15, linewidth=0)


def model_free(options: argparse.Namespace, network: str) -> Curve:
    """Return what training episodes save in %, by real steps."""
    runs = [measured(options, "blind-ppo", network, seed)["curve"] for seed in range(options.seeds)]
    points = [[Point(*row) for row in run] for run in runs]
    steps = np.array([point.steps for point in points[0]], np.float64)
    return steps, np.array([[100 * (1 - point.episodes) for point in run] for run in points])


def dreamt(options: argparse.Namespace, kind: str, network: str) -> Curve:
    """Return what dreams save in %, by imagined steps."""
    runs = [trained(options, kind, network, seed)["returns"] for seed in range(options.seeds)]
    return np.array([steps for steps, _ in runs[0]]), np.array([[mean for _, mean in run] for run in runs])


def likelihood(options: argparse.Namespace, network: str) -> Curve:
    """Return the mixture's loss by passes over the episodes."""
    runs = np.array([trained(options, "mdn", network, seed)["losses"] for seed in range(options.seeds)])
    return np.arange(1, runs.shape[1] + 1, dtype=np.float64), runs


def main() -> None:
    """Run what isn't there yet and draw all."""
    parser = arguments()
    parser.set_defaults(seeds=3)
    parser.add_argument("--fit-steps", type=int, default=400, help="real steps that world models are fitted to")
    parser.add_argument("--fit-max-steps", type=int, default=40, help="of their episodes and of dreams")
    parser.add_argument("--imagined", type=int, default=6144, help="imagined steps of a controller")
    parser.add_argument("--rollout", type=int, default=16, help="steps of each of 16 dreams between updates")
    parser.add_argument("--passes", type=int, nargs=2, default=(6, 40), help="over the steps, and over the episodes")
    options = parser.parse_args()
    options.rules = RuleSet.load("default").digest
    figures = {name: Figure(figsize=(6.4, 3.8), layout="constrained") for name in ("5_3", "5_5", "5_6")}
    real, losses = figures["5_3"].subplots(), figures["5_5"].subplots()
    figures["5_6"].set_size_inches(11, 3.8)
    of_kind_axes = dict(zip(("mdn", "graph"), figures["5_6"].subplots(1, 2, sharey=True), strict=True))
    with torch_threads(1):
        for network in options.networks:
            draw(losses, likelihood(options, network), network)
            for kind, axes in of_kind_axes.items():
                draw(axes, normalised(dreamt(options, kind, network)), network)
            draw(real, normalised(model_free(options, network)), network)
    real.set(title="model-free, for real (5.3)", xlabel="real steps", ylabel="saved by an episode, normalised")
    losses.set(title="fit of the mixture (5.5)", xlabel="passes over the episodes", ylabel="-log p(next latent)")
    for kind, axes in of_kind_axes.items():
        axes.set(title=f"in dreams of {kind} (5.6)", xlabel="imagined steps")
    of_kind_axes["mdn"].set_ylabel("saved by a dream, normalised")
    for axes in (real, losses, of_kind_axes["mdn"]):
        axes.legend(fontsize="small")
    for name, figure in figures.items():
        write(figure, options.out / f"figure_{name}.png")


if __name__ == "__main__":
    main()
