"""Does a better score in dreams mean a better one in reality? Controllers at several stages of their training.

    python benchmarks/stages.py [--network TasoGraph-BERT-v0] [--seeds 5] [--temperatures 0.5 1 2] [--out FOLDER]

Controllers that are all trained to the end are all alike, and their scores differ by chance only. So here they begin
at random, not greedy by the predicted rewards, and are judged before training and after each stage of it, at every τ
and in the world model of every seed: by the mean return of dreams, and by that of real episodes, both with actions
drawn. Printed are the correlations of the two over all of them, with 95 % intervals by drawing seeds anew, and within
each seed and τ. Every run is a file in FOLDER and isn't repeated.
"""

from __future__ import annotations

import argparse
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from support.cells import cell

from taso_agents.data.collect import empty_dataset
from taso_agents.dreams.controller import dream, load_policy
from taso_agents.dreams.env import DreamSettings, DreamVectorEnv, play_dreams
from taso_agents.dreams.latent import LatentObservation
from taso_agents.dreams.plots import write
from taso_agents.dreams.run import DreamRun
from taso_agents.dreams.settings import DreamTrainSettings
from taso_agents.dreams.starts import Starts, starts_of
from taso_agents.dreams.train import build_model, gather
from taso_agents.environment.real_env import make_env
from taso_agents.stats import Estimate, iqm_estimate
from taso_agents.training.evaluate import play_policy
from taso_agents.training.run_state import torch_threads
from taso_agents.world_models.fit import fit
from taso_gym.cost.calibrate import rank_correlation
from taso_gym.rules.ruleset import RuleSet

STAGES = (0, 512, 1024, 2048, 4096)
DREAMS = 16


def known(options: argparse.Namespace, seed: int) -> tuple[DreamRun, Starts]:
    """Return a run whose world model is fitted to the real steps of a seed, and where dreams begin."""
    settings = settings_of(options, seed)
    torch.manual_seed(seed)
    env = make_env(options.network, max_steps=options.max_steps)
    env.reset()
    run = DreamRun(build_model(env, settings), empty_dataset(env))
    gather(env, run, settings, 0)
    latents = fit(run.model, run.dataset, settings.fit)
    return run, starts_of(run.model, run.dataset, latents, anywhere=False)


def settings_of(options: argparse.Namespace, seed: int) -> DreamTrainSettings:
    """Return the settings of a seed; updates are small, so that there is something between the stages."""
    sizes = {"dreams": DREAMS, "rollout": options.rollout, "minibatch": 64, "epochs": 4}
    return replace(DreamTrainSettings(), steps=options.steps, seed=seed, greed=0.0, **sizes)


def judged(options: argparse.Namespace, run: DreamRun, starts: Starts, how: DreamTrainSettings) -> tuple[float, float]:
    """Return the mean returns of a run's controller in dreams and in real episodes."""
    policy = load_policy(run, how)
    dreams = DreamVectorEnv(run.model, starts, DREAMS, DreamSettings(how.temperature, options.max_steps))
    dreamt = play_dreams(lambda seen: np.asarray(policy.predict(seen)[0]), dreams, how.seed).mean()
    env = LatentObservation(make_env(options.network, max_steps=options.max_steps), run.model)
    seeds = range(1000 * how.seed, 1000 * how.seed + options.episodes)
    played = [play_policy(policy, env, deterministic=False, seed=seed) for seed in seeds]
    return float(dreamt), float(np.mean([100 * (e.start_ps - e.final_ps) / e.start_ps for e in played]))


def measured(
    options: argparse.Namespace, model: DreamRun, starts: Starts, seed: int, temperature: float
) -> dict[str, Any]:
    """Train a controller stage by stage; return its scores after each."""
    run = DreamRun(deepcopy(model.model), model.dataset)  # one that has played knows graphs that others don't
    how = replace(settings_of(options, seed), temperature=temperature)
    scores = [judged(options, run, starts, how)]
    for before, after in pairwise(STAGES):
        stage = replace(how, dream_steps=after - before, seed=1000 * seed + after)
        dream(run, starts, stage, options.max_steps, lambda _text: None)
        scores.append(judged(options, run, starts, how))
    return {"dream": [d for d, _ in scores], "real": [r for _, r in scores]}


def pearson(a: np.ndarray, b: np.ndarray) -> float:
    """Return the correlation of two rows of numbers; nan if either is constant."""
    return float(np.corrcoef(a, b)[0, 1]) if np.ptp(a) and np.ptp(b) else float("nan")


def over_seeds(scores: np.ndarray, correlation: Any, resamples: int = 2000) -> Estimate:
    """Return a correlation over all scores (seeds, τ, stages, 2), with an interval by drawing seeds anew."""
    rng = np.random.default_rng(0)

    def of(chosen: np.ndarray) -> float:
        pairs = scores[chosen].reshape(-1, 2)
        return correlation(pairs[:, 0], pairs[:, 1])

    drawn = [of(rng.integers(len(scores), size=len(scores))) for _ in range(resamples)]
    return Estimate(of(np.arange(len(scores))), *map(float, np.nanquantile(drawn, [0.025, 0.975])))


def draw(scores: np.ndarray, options: argparse.Namespace) -> None:
    """Draw dreamt scores against real ones, a colour a stage, a shape a τ."""
    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    for number, stage in enumerate(STAGES):
        for marker, t in zip("os^Dv", range(scores.shape[1]), strict=False):
            label = f"{stage} imagined steps" if t == 0 else None
            axes.scatter(*scores[:, t, number].T, marker=marker, s=18, color=f"C{number}", label=label)
    low, high = float(scores.min()), float(scores.max())
    axes.plot([low, high], [low, high], color="grey", linewidth=0.8)
    shapes = ", ".join(f"{s} τ {t:g}" for s, t in zip("●■▲◆▼", options.temperatures, strict=False))
    axes.set(title=shapes, xlabel="in dreams, % saved", ylabel="for real, % saved")
    axes.legend(fontsize="small")
    write(figure, options.out / "stages.png")


def main() -> None:
    """Run what isn't there yet and show all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="TasoGraph-BERT-v0")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.5, 1.0, 2.0])
    parser.add_argument("--steps", type=int, default=600, help="real steps of a world model")
    parser.add_argument("--max-steps", type=int, default=40, help="of an episode")
    parser.add_argument("--rollout", type=int, default=16, help="steps of each dream between updates")
    parser.add_argument("--episodes", type=int, default=4, help="real ones to judge a controller by")
    parser.add_argument("--out", type=Path, default=Path("out/stages"))
    options = parser.parse_args()
    used = {name: getattr(options, name) for name in ("network", "steps", "max_steps", "rollout", "episodes")}
    used |= {"stages": STAGES, "rules": RuleSet.load("default").digest}
    models = lru_cache(maxsize=1)(lambda seed: known(options, seed))
    rows: list[list[list[list[float]]]] = []
    with torch_threads(1):
        for seed in range(options.seeds):
            found = [
                cell(options.out, f"{seed}-{t:g}", used, lambda s=seed, t=t: measured(options, *models(s), s, t))
                for t in options.temperatures
            ]
            rows.append([list(zip(f["dream"], f["real"], strict=True)) for f in found])
    scores = np.array(rows)
    columns = ("imagined steps", "dream, % saved", "real, % saved", "correlation in this stage")
    table = Table(*columns, title=f"{options.network}, IQM over seeds")
    for number, stage in enumerate(STAGES):
        cells = [str(iqm_estimate(scores[:, :, number, which].mean(1))) for which in range(2)]
        table.add_row(str(stage), *cells, str(over_seeds(scores[:, :, number], pearson)))
    console = Console(width=120)
    console.print(table)
    within = [pearson(*scores[s, t].T) for s in range(scores.shape[0]) for t in range(scores.shape[1])]
    console.print(
        f"correlation over {scores[..., 0].size} controllers: Pearson {over_seeds(scores, pearson)}, ", end=""
    )
    ranked = over_seeds(scores.round(6), rank_correlation)
    console.print(f"Spearman {ranked}; within a seed and τ: {iqm_estimate(within)}")
    draw(scores, options)


if __name__ == "__main__":
    main()
