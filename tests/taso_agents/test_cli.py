"""The command line, as a user runs it."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
import torch
import typer
from onnx import helper, numpy_helper

from taso_agents import checkpoint, cli
from taso_agents.data.episodes import load_dataset
from taso_agents.dreams.settings import DreamTrainSettings
from taso_agents.training.run_state import torch_threads
from taso_agents.training.settings import PPOSettings

SQUEEZENET = "TasoGraph-SqueezeNet1.1-v0"


def taso_agents(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from taso_agents.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=280)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    done = taso_agents("train", SQUEEZENET, "--steps", "64", "-o", "p.pt", "--onnx", "best.onnx", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert re.search(r"p.pt: \d+\.\d\d % saved by the cost model; best seen \d+\.\d\d %", done.stdout)
    return folder


def test_train_writes_policy_and_graph(trained: Path) -> None:
    assert (trained / "p.pt").exists()
    onnx.checker.check_model(trained / "best.onnx")


def test_train_says_that_ctrl_c_came_before_there_was_a_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That is while packages and the model are loaded."""

    def load(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("taso_agents.training.ppo.RecordedVecEnv", load)
    with pytest.raises(KeyboardInterrupt):
        cli.train(SQUEEZENET, tmp_path / "p.pt")
    assert capsys.readouterr().err == f"no policy is kept: Ctrl-C came before {tmp_path}/p.pt was written\n"
    assert not list(tmp_path.iterdir())


def test_evaluate_compares_with_searches(trained: Path) -> None:
    done = taso_agents("evaluate", "p.pt", "--episodes", "1", "--searches", "greedy, random", cwd=trained)
    assert done.returncode == 0, done.stderr
    for row in ("most probable actions", "actions drawn", "best of 1", "greedy", "random"):
        assert row in done.stdout


def test_evaluate_makes_searches_before_it_plays(trained: Path) -> None:
    done = taso_agents("evaluate", "p.pt", "--episodes", "1000000", "--searches", "taso,greedy:foo", cwd=trained)
    assert done.returncode == 2 and "expected options of search 'greedy:foo'" in done.stderr


def test_evaluate_refuses_a_policy_of_another_network(trained: Path, tmp_path: Path) -> None:
    data = checkpoint.load(trained / "p.pt", "policy")
    other = {**data, "taso": {**data["taso"], "graph": "another"}}
    checkpoint.save(tmp_path / "other.pt", **{key: value for key, value in other.items() if key != "format"})
    done = taso_agents("evaluate", str(trained / "p.pt"), str(tmp_path / "other.pt"), cwd=tmp_path)
    assert done.returncode == 2 and "expected policies of one network or --model, found" in done.stderr


def test_evaluate_refuses_a_policy_whose_network_is_another_by_now(trained: Path, tmp_path: Path) -> None:
    """As of a file that was exported again since; with --model it is played on whatever that is."""
    data = checkpoint.load(trained / "p.pt", "policy")
    other = {**data, "taso": {**data["taso"], "graph": "another"}}
    checkpoint.save(tmp_path / "p.pt", **{key: value for key, value in other.items() if key != "format"})
    done = taso_agents("evaluate", "p.pt", "--searches", "greedy", cwd=tmp_path)
    assert done.returncode == 2 and f"expected graph of {SQUEEZENET} as p.pt was made of, found others" in done.stderr
    done = taso_agents(
        "evaluate", "p.pt", "--episodes", "1", "--searches", "greedy", "--model", SQUEEZENET, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr


class PlayedError(Exception):
    """Stands for what is played."""


@pytest.mark.parametrize("command", ["collect", "evaluate"])
def test_policies_are_played_by_one_thread_as_they_were_trained(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def play(*_arguments: object) -> None:
        raise PlayedError(torch.get_num_threads())

    monkeypatch.setattr("taso_agents.data.collect.collect", play)
    monkeypatch.setattr("taso_agents.training.evaluate.evaluate", play)
    policy = trained / "p.pt"
    run = {
        "collect": lambda: cli.collect(SQUEEZENET, tmp_path / "e.npz", [str(policy)], 6, 3, 0.3, 0, None),
        "evaluate": lambda: cli.evaluate([policy], None, 1, 0, ""),
    }[command]
    with torch_threads(2), pytest.raises(PlayedError, match="1"):
        run()


def test_dream_writes_world_model_and_controller(tmp_path: Path) -> None:
    small = ["--rounds", "1", "--steps", "20", "--max-steps", "8", "--dream-steps", "64", "-o", "d.pt"]
    done = taso_agents("dream", SQUEEZENET, *small, "--plot", "d.png", "--onnx", "d.onnx", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "real steps: controller saves" in done.stdout
    assert all((tmp_path / name).exists() for name in ("d.pt", "d.png", "d.onnx"))


def test_collect_writes_episodes_and_says_how_deep_they_went(tmp_path: Path) -> None:
    options = ["--steps", "12", "--max-steps", "6", "--actor", "random-noop", "--actor", "greedy"]
    done = taso_agents("collect", SQUEEZENET, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "0 to 9" in done.stdout and (tmp_path / "episodes.npz").exists()


def test_train_keeps_the_model_and_its_weights(tmp_path: Path) -> None:
    model = helper.make_model(onnx.parser.parse_graph("g (float[2] x) => (float[2] y) { y = Add(x, w) }"))
    model.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "w"))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    for options in (["-o", "m.onnx"], ["--onnx", "w.bin"]):
        done = taso_agents("train", "m.onnx", *options, cwd=tmp_path)
        assert done.returncode == 2 and f"expected another file to write than {options[1]}" in done.stderr


def test_collect_plays_what_train_wrote(trained: Path) -> None:
    done = taso_agents("collect", SQUEEZENET, "--steps", "6", "--max-steps", "3", "--actor", "p.pt", cwd=trained)
    assert done.returncode == 0, done.stderr


def test_episodes_of_several_networks_are_the_same_for_a_seed(tmp_path: Path) -> None:
    for name in "ab":
        options = ["--steps", "12", "--max-steps", "6", "--actor", "random", "-o", f"{name}.npz", "--seed", "3"]
        assert taso_agents("collect", "TasoGraph-GeneratedTest-v0", *options, cwd=tmp_path).returncode == 0
    first, second = (load_dataset(tmp_path / f"{name}.npz") for name in "ab")
    assert [e.actions for e in first.episodes] == [e.actions for e in second.episodes]
    assert [e.rewards for e in first.episodes] == [e.rewards for e in second.episodes]


def help_of(command: str, option: str) -> str:
    group: Any = typer.main.get_command(cli.app)
    return next(one.help for one in group.commands[command].params if one.name == option)


def test_help_says_how_many_steps_are_played() -> None:
    ppo, dreams = PPOSettings(), DreamTrainSettings()
    update = ppo.environments * ppo.rollout
    rounded = f"rounded up to a multiple of {ppo.environments}, above {update} to one of {update};"
    assert rounded in help_of("train", "steps")
    assert f"in multiples of {dreams.dreams * dreams.rollout}." in help_of("dream", "dream_steps")
    assert all("whole episodes" in help_of(command, "steps") for command in ("collect", "dream", "gap"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "nothing.onnx"], "nothing.onnx"),
        (["train", SQUEEZENET, "--policy", "oracle"], "expected a policy of pointer, autoregressive, found 'oracle'"),
        (["train", SQUEEZENET, "-o", "missing/p.pt"], "expected a folder to write p.pt into"),
        (["train", SQUEEZENET, "-o", "."], "expected"),
        (["train", SQUEEZENET, "--output", "missing/p.pt"], "expected a folder to write p.pt into"),
        (["collect", SQUEEZENET, "--output", "missing/e.npz"], "expected a folder to write e.npz into"),
        (["dream", SQUEEZENET, "--output", "missing/d.pt"], "expected a folder to write d.pt into"),
        (["train", SQUEEZENET, "-o", "p.pt", "--onnx", "p.pt"], "which is to be written for something else, too"),
        (["dream", SQUEEZENET, "--run-file", "dream.pt"], "expected another file to write than dream.pt"),
        (["collect", SQUEEZENET, "-o", "p.pt", "--actor", "p.pt"], "than p.pt, which is an actor"),
        (["gap", "d.pt", "--plot", "d.pt"], "than d.pt, which is a world model to play"),
        (["train", "TasoGraph-GeneratedTest-v0"], "expected an environment of one network, found 24 in"),
        (["dream", "TasoGraph-GeneratedTest-v0"], "expected an environment of one network, found 24 in"),
        (["collect", "TasoGraph-GeneratedTest-v0", "--minari", "a/b-v0"], "expected an environment of one network"),
        (["train", "CartPole-v1"], "expected an environment that takes location_counts, extra_views, found"),
        (["train", SQUEEZENET, "--seed", "4294967296"], "expected a seed of 0 to 4294967295, found 4294967296"),
        (["dream", SQUEEZENET, "--seed", "4294967296"], "expected a seed of 0 to 4294967295, found 4294967296"),
        (["collect", SQUEEZENET, "--seed", "18446744073709551616"], "expected a seed of 0 to 4294967295, found"),
        (["gap", "missing.pt", "--seed", "18446744073709551616"], "expected a seed of 0 to 4294967295, found"),
        (["evaluate", "missing.pt", "--seed", "18446744073709551616"], "expected a seed of 0 to 4294967295, found"),
        (["dream", SQUEEZENET, "--world-model", "vae"], "expected a world model of"),
        (["dream", SQUEEZENET, "--separate-reward"], "expected mdn with a separate reward network, found graph"),
        (["dream", SQUEEZENET, "--epochs", "2"], "of mdn, discrete, tokens with --epochs, found graph, which has none"),
        (["gap", "missing.pt"], "expected a world model of taso-agents in missing.pt, found no file"),
        (["evaluate", "missing.pt", "--searches", "astar"], "expected searches among greedy, taso, beam, random"),
        (["evaluate", "missing.pt", "--searches", "policy"], "random, ranked, found 'policy'"),
        (["evaluate", "missing.pt"], "expected a policy of taso-agents in missing.pt, found no file"),
    ],
)
def test_bad_input_is_one_line_and_code_2(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = taso_agents(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr.replace("\n", "")
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr
