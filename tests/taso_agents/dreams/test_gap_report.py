"""The report of the gap."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from taso_agents import checkpoint
from taso_agents.data.collect import random_actor
from taso_agents.dreams.env import load_dreams
from taso_agents.dreams.gap_report import TARGETS, Gap, compare, figures_of, report, table_of
from taso_agents.dreams.gap_scores import scores
from taso_agents.dreams.plots import plot_gap, plot_run
from taso_agents.dreams.settings import DreamTrainSettings
from taso_agents.dreams.train import train_in_dream
from taso_agents.environment.real_env import make_env
from taso_agents.world_models.fit import FitSettings
from taso_agents.world_models.mdn_rnn import load_world_model
from taso_agents.world_models.token_model import TokenSettings
from taso_gym.errors import CheckpointError, OptionError

SMALL = DreamTrainSettings(
    rounds=1,
    steps=16,
    dream_steps=128,
    dreams=4,
    rollout=16,
    episodes=1,
    minibatch=64,
    epochs=1,
    model=TokenSettings(width=8, transition=16, encoder=8, rounds=1),
    fit=FitSettings(encoder_epochs=2, learning_rate=2e-3),
)
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("dreams")
    for network in ("SqueezeNet1.1", "ResNet18"):
        result = train_in_dream(f"TasoGraph-{network}-v0", SMALL, max_steps=8)
        result.save(folder / f"{network}.pt")
        plot_run(result.run, folder / f"{network}.png")
    return [str(folder / f"{network}.pt") for network in ("SqueezeNet1.1", "ResNet18")]


@pytest.fixture(scope="module")
def found(files: list[str]) -> dict[str, list[Gap]]:
    return report(files[:1], 16)


def test_every_target_is_a_figure_of_the_table(found: dict[str, list[Gap]]) -> None:
    assert set(found) == {"random", "noisy greed", "controller"}
    for gaps in found.values():
        assert set(TARGETS) <= set(figures_of(gaps[0]))
    console = Console(width=140, record=True)
    console.print(table_of(found))
    shown = console.export_text()
    assert "gap, full" in shown and "error of the mean, full, %" in shown


def test_curves_are_png_files(found: dict[str, list[Gap]], tmp_path: Path, files: list[str]) -> None:
    plot_gap(found, tmp_path / "gap.png")
    assert (tmp_path / "gap.png").read_bytes()[:4] == PNG
    assert Path(files[0]).with_suffix(".png").read_bytes()[:4] == PNG


def test_figures_of_an_actor_that_stops_at_once_are_undefined(
    found: dict[str, list[Gap]], files: list[str], tmp_path: Path
) -> None:
    model, data = load_world_model(files[0])
    env = make_env(data["taso"]["model"], **data["taso"]["arguments"])
    env.reset()
    stops, _ = compare(model, env, random_actor(1.0), 3, 0)
    assert np.isnan([*stops.ranking, *stops.one_step, stops.horizons[-1].gap]).all()
    console = Console(width=140, record=True)
    console.print(table_of({**found, "controller": [stops]}))
    assert console.export_text().count("undefined") >= len(figures_of(stops)) - 1
    plot_gap({**found, "controller": [stops]}, tmp_path / "gap.png")
    assert (tmp_path / "gap.png").read_bytes()[:4] == PNG


@pytest.mark.parametrize("what", ["graph", "rules"])
def test_a_world_model_of_another_graph_is_refused(files: list[str], tmp_path: Path, what: str) -> None:
    """As of a file that was exported again since."""
    data = checkpoint.load(files[0], "world model")
    other = {**data, "taso": {**data["taso"], what: "another"}}
    checkpoint.save(tmp_path / "other.pt", **{key: value for key, value in other.items() if key != "format"})
    for read in (lambda path: report([path], 12), lambda path: scores(path, 1)):
        with pytest.raises(CheckpointError, match=f"expected {what} of TasoGraph-SqueezeNet1.1-v0 as .* was made of"):
            read(str(tmp_path / "other.pt"))


@pytest.mark.parametrize(
    ("part", "read"),
    [
        ("controller", lambda path: report([path], 12)),
        ("controller", lambda path: scores(path, 1)),
        ("starts", lambda path: scores(path, 1)),
        ("starts", load_dreams),
    ],
)
def test_a_world_model_without_what_is_needed_is_refused(
    files: list[str], tmp_path: Path, part: str, read: Callable[[str], object]
) -> None:
    data = checkpoint.load(files[0], "world model")
    left = {key: value for key, value in data.items() if key not in ("format", part)}
    checkpoint.save(tmp_path / "alone.pt", **left)
    with pytest.raises(CheckpointError, match=f"expected a world model with its {part} in .*alone.pt, found one with"):
        read(str(tmp_path / "alone.pt"))


def test_world_models_of_different_networks_are_refused(files: list[str]) -> None:
    with pytest.raises(OptionError, match="expected world models of TasoGraph-SqueezeNet1"):
        report(files, 12)
