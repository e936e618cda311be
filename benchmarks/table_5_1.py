"""The temperature sweep of the dissertation (Table 5.1, Figures 5.5 and 5.6), right and as the published code had it.

``python benchmarks/table_5_1.py --out table`` writes one line a run into ``table/runs.jsonl``, and leaves out what is
there, so that it can be killed and begun again; a folder holds runs of the same settings and rules
(``settings.json``). World models are files beside it, one a seed, shared by all τ, and controllers with them, one a
run, for ``taso-agents gap``.

Right: scores of dreams and of real episodes are the same sum of rewards, played by the trained controller with chance.
As published (``--published``): see `benchmarks/support/published.py`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from support.lines import read
from support.published import fitted_as_published, published_run

from taso_agents.cli.dream import of_kind
from taso_agents.data.collect import empty_dataset
from taso_agents.dreams.controller import dream as train_controller
from taso_agents.dreams.env import DreamSettings, DreamVectorEnv, play_dreams
from taso_agents.dreams.latent import LatentObservation
from taso_agents.dreams.plots import without_losses, write
from taso_agents.dreams.run import DreamRun
from taso_agents.dreams.settings import DreamTrainSettings
from taso_agents.dreams.starts import Starts, starts_of
from taso_agents.dreams.train import build_model, gather
from taso_agents.environment.real_env import describe, make_env
from taso_agents.stats import iqm_estimate
from taso_agents.training.evaluate import play_policy
from taso_agents.world_models.fit import fit
from taso_agents.world_models.mdn_rnn import load_world_model
from taso_gym.atomic import write_text
from taso_gym.rules.ruleset import RuleSet

TEMPERATURES = (0.1, 0.5, 0.75, 1.0, 1.2, 1.5, 1.75, 2.0, 2.5, 3.0)
PUBLISHED_TEMPERATURES = (0.5, 1.0, 2.0)


def fitted(options: argparse.Namespace, seed: int) -> tuple[Any, Starts, dict[str, Any]]:
    """Return the world model of a seed, where its dreams begin, and what it belongs to; it is fitted once.

    It is read from its file each time, for one that has played knows graphs that it hadn't seen before.
    """
    path = options.out / f"world_model_{options.world_model}_{seed}.pt"
    settings = settings_of(options, seed)
    if not path.exists():
        torch.manual_seed(seed)
        env = make_env(options.network, max_steps=options.max_steps)
        env.reset()
        taso = describe(options.network, env, {}, {"max_steps": options.max_steps})
        run = DreamRun(build_model(env, settings), empty_dataset(env))
        gather(env, run, settings, 0)
        latents = fit(run.model, run.dataset, settings.fit, run.fits.append)
        starts = starts_of(run.model, run.dataset, latents, anywhere=False).take(torch.tensor([0]))
        losses = [list(f) for f in run.fits]
        run.model.save(path, taso, starts=list(starts), losses=losses, real_steps=run.dataset.steps)
    model, data = load_world_model(path)
    return model, Starts(*data["starts"]), data["taso"]


def settings_of(options: argparse.Namespace, seed: int) -> DreamTrainSettings:
    """Return the settings of a run."""
    settings = DreamTrainSettings(
        steps=options.steps, dream_steps=options.dream_steps, branch=None, seed=seed, dreams=options.dreams
    )
    settings = of_kind(settings, options.world_model, separate_reward=False)
    epochs = options.epochs
    return replace(settings, fit=replace(settings.fit, encoder_epochs=epochs, epochs=4 * epochs, seed=seed))


def right_run(
    options: argparse.Namespace, seed: int, temperature: float, models: Callable[[int], tuple[Any, ...]]
) -> dict[str, Any]:
    """Train a controller in dreams at a temperature; return its mean returns there and in reality, and its curve."""
    model, starts, taso = models(seed)
    settings = replace(settings_of(options, seed), temperature=temperature)
    env = make_env(options.network, max_steps=options.max_steps)
    env.reset()
    run = DreamRun(model, empty_dataset(env))
    controller = train_controller(run, starts, settings, options.max_steps, lambda _text: None)
    path = options.out / f"dream_{options.world_model}_{seed}_{temperature}.pt"
    taso = {**taso, "settings": {"temperature": temperature}}
    model.save(path, taso, starts=list(starts), controller=controller.policy.state_dict())
    dreams = DreamVectorEnv(model, starts, options.dreams, DreamSettings(temperature, options.max_steps))
    dreamt = play_dreams(lambda seen: np.asarray(controller.policy.predict(seen)[0]), dreams, seed)
    seen = LatentObservation(env, model)
    played = [
        play_policy(controller.policy, seen, deterministic=False, seed=1000 * seed + i) for i in range(options.episodes)
    ]
    real = [100 * (e.start_ps - e.final_ps) / e.start_ps for e in played]
    return {
        "dream": float(np.mean(dreamt)),
        "real": float(np.mean(real)),
        "best": max(e.improvement_percent for e in played),
        "curve": [[steps, mean] for _, steps, mean in run.returns],
    }


def table_of(rows: list[dict[str, Any]], title: str) -> Table:
    """Return τ against scores: the IQM over seeds with 95 % bootstrap intervals."""
    table = Table("τ", "dream, % saved", "real, % saved", "gap, %", "seeds", title=title)
    for temperature in sorted({row["temperature"] for row in rows}):
        chosen = [row for row in rows if row["temperature"] == temperature]
        dream, real = (iqm_estimate([row[name] for row in chosen]) for name in ("dream", "real"))
        gaps = [100 * abs(r["dream"] - r["real"]) / max(abs(r["real"]), 1.0) for r in chosen]
        table.add_row(str(temperature), str(dream), str(real), str(iqm_estimate(gaps)), str(len(chosen)))
    return table


def correlation(rows: list[dict[str, Any]]) -> float:
    """Return the correlation of dream and real scores over seeds and temperatures; nan if there are too few."""
    scores = np.array([[row["dream"], row["real"]] for row in rows])
    return float(np.corrcoef(scores.T)[0, 1]) if len(scores) > 2 and scores.std(0).all() else float("nan")


def draw(options: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    """Draw the sweep, the losses of the world models (Figure 5.5) and the returns of dreams in training (5.6)."""
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    sweep, losses, returns = figure.subplots(1, 3)
    temperatures = sorted({row["temperature"] for row in rows})
    for name in ("dream", "real"):
        scores = [[row[name] for row in rows if row["temperature"] == t] for t in temperatures]
        sweep.errorbar(temperatures, list(map(np.mean, scores)), list(map(np.std, scores)), marker="o", label=name)
    sweep.set(title="saved by temperature (Table 5.1), deviation of seeds", xlabel="τ", ylabel="%")
    sweep.set_ylim(min(0.0, sweep.get_ylim()[0]))
    sweep.legend(fontsize="small")
    for path in sorted(options.out.glob(f"world_model_{options.world_model}_*.pt")):
        _, data = load_world_model(path)
        totals = [np.mean([v for v in part.values() if v > 0]) for *_, part in data["losses"]]
        if totals:
            losses.plot(totals, marker=".", label=path.stem.rpartition("_")[2])
    if losses.lines:
        losses.set(title="losses of the world model by seed (5.5)", xlabel="epoch", yscale="log")
    else:
        without_losses(losses)
    for row in rows:
        scores = np.array([mean for _, mean in row["curve"]])
        returns.plot([steps for steps, _ in row["curve"]], scores, marker=".", color="C0", alpha=0.4)
    returns.set(title="returns of dreams in training (5.6)", xlabel="imagined steps", ylabel="%")
    write(figure, options.out / f"figures_{options.world_model}.png")


VARIED = {"out", "published", "world_model", "seeds", "temperatures"}
"""Options that runs in one folder may differ in: the files and lines there say which they belong to."""


def claim(folder: Path, options: argparse.Namespace) -> str | None:
    """Make a folder for runs of these settings; return what is wrong with it if it holds runs of others."""
    settings = {name: value for name, value in vars(options).items() if name not in VARIED}
    settings["rules"] = RuleSet.load("default").digest
    path = folder / "settings.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(settings, indent=1) + "\n")
        return None
    there = json.loads(path.read_text())
    other = ", ".join(f"{name} {there.get(name)}" for name, value in settings.items() if there.get(name) != value)
    return f"{folder} holds runs with {other}; name another folder with --out" if other else None


def main() -> None:
    """Run what isn't there yet and show all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="TasoGraph-BERT-v0")
    parser.add_argument("--world-model", default="graph")
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--temperatures", type=float, nargs="+")
    parser.add_argument("--steps", type=int, default=600, help="real steps a seed")
    parser.add_argument("--max-steps", type=int, default=40, help="of an episode")
    parser.add_argument("--epochs", type=int, default=6, help="of the fit, of kinds that have epochs")
    parser.add_argument("--dream-steps", type=int, default=1024, help="of a controller")
    parser.add_argument("--dreams", type=int, default=16)
    parser.add_argument("--episodes", type=int, default=4, help="real ones to judge a controller by")
    parser.add_argument("--out", type=Path, default=Path("out/table_5_1"))
    options = parser.parse_args()
    wrong = claim(options.out, options)
    if wrong:
        parser.error(wrong)
    torch.set_num_threads(1)
    temperatures = options.temperatures or (PUBLISHED_TEMPERATURES if options.published else TEMPERATURES)
    kind = "published" if options.published else options.world_model
    path = options.out / "runs.jsonl"
    rows = read(path)
    console = Console()
    published = lru_cache(maxsize=1)(partial(fitted_as_published, options))
    models = published if options.published else partial(fitted, options)
    for seed in range(options.seeds):
        for temperature in temperatures:
            if any((r["kind"], r["seed"], r["temperature"]) == (kind, seed, temperature) for r in rows):
                continue
            began = process_time()
            run = published_run if options.published else right_run
            found = run(options, seed, temperature, models)
            rows.append({"kind": kind, "seed": seed, "temperature": temperature, **found})
            rows[-1]["cpu_s"] = round(process_time() - began, 1)
            write_text(path, "".join(json.dumps(row) + "\n" for row in rows))
            console.print(f"seed {seed}, τ {temperature}: dream {found['dream']:.2f} %, real {found['real']:.2f} %")
    chosen = [row for row in rows if row["kind"] == kind]
    console.print(table_of(chosen, f"{options.network}, {kind}: IQM over seeds"))
    console.print(f"correlation of dream and real over {len(chosen)} runs: {correlation(chosen):.2f}")
    if not options.published:
        draw(options, chosen)


if __name__ == "__main__":
    main()
