"""Training: it improves, repeats itself, and goes on after it was killed."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from taso_agents import checkpoint
from taso_agents.environment.real_env import make_env
from taso_agents.environment.recorder import RecordedVecEnv
from taso_agents.training.evaluate import play_policy
from taso_agents.training.ppo import TrainResult, leaves_one, train
from taso_agents.training.settings import PPOSettings
from taso_gym.errors import CheckpointError, OptionError

MODEL = "TasoGraph-SqueezeNet1.1-v0"
SMALL = PPOSettings(
    steps=192, hidden=8, rounds=1, environments=2, rollout=32, minibatch=16, epochs=1, imitation=2, restarts=0.5
)
HORIZON = {"max_steps": 20}


def weights(result: TrainResult) -> list[torch.Tensor]:
    return list(result.policy.state_dict().values())


def same(a: TrainResult, b: TrainResult) -> bool:
    pairs = zip(weights(a), weights(b), strict=True)
    return str(a.curve) == str(b.curve) and all(torch.equal(x, y) for x, y in pairs)


@pytest.fixture(scope="module")
def result() -> TrainResult:
    return train(MODEL, SMALL, **HORIZON)


def test_curve_has_a_point_before_and_after_every_update(result: TrainResult) -> None:
    assert [point.steps for point in result.curve] == [0, 64, 128, 192]
    assert not result.interrupted


def test_whole_updates_are_played() -> None:
    short = replace(SMALL, steps=5, imitation=0)
    assert train(MODEL, short, **HORIZON).curve[-1].steps == short.played_steps == 6


def test_best_seen_is_what_the_curve_says(result: TrainResult) -> None:
    start = RecordedVecEnv(MODEL, 1, HORIZON).start_ps
    assert result.best_seen.cost.time_ps / start == result.curve[-1].best_seen <= min(p.policy for p in result.curve)


def test_the_policy_that_is_kept_is_the_best_of_the_curve(result: TrainResult) -> None:
    """By the episode without chance, which is what its file is judged by."""
    env = make_env(MODEL, **result.taso["arguments"])
    episode = play_policy(result.policy, env)
    assert episode.best_ps / episode.start_ps == min(point.policy for point in result.curve)


def test_same_seed_same_result(result: TrainResult) -> None:
    assert same(train(MODEL, SMALL, **HORIZON), result)


@pytest.mark.parametrize("killed_at", [70, 150])
def test_killed_and_resumed_is_the_same(tmp_path: Path, result: TrainResult, killed_at: int) -> None:
    class KilledError(Exception):
        pass

    def kill(steps: int) -> None:
        if steps >= killed_at:
            raise KilledError

    with pytest.raises(KilledError):
        train(MODEL, SMALL, run_file=tmp_path / "run.pt", on_step=kill, **HORIZON)
    torch.manual_seed(999)
    resumed = train(MODEL, SMALL, run_file=tmp_path / "run.pt", **HORIZON)
    assert same(resumed, result)
    train(MODEL, SMALL, run_file=tmp_path / "whole.pt", **HORIZON)
    last, other = (checkpoint.load(tmp_path / f"{name}.pt", "run")["weights"] for name in ("run", "whole"))
    assert all(torch.equal(last[name], other[name]) for name in other)  # not of the best policy alone
    assert resumed.best_seen.cost == result.best_seen.cost


def test_a_finished_run_has_nothing_left_to_do(tmp_path: Path, result: TrainResult) -> None:
    train(MODEL, SMALL, run_file=tmp_path / "run.pt", **HORIZON)
    steps: list[int] = []
    assert same(train(MODEL, SMALL, run_file=tmp_path / "run.pt", on_step=steps.append, **HORIZON), result)
    assert not steps


def test_ctrl_c_keeps_the_best(tmp_path: Path) -> None:
    import os
    import signal

    def interrupt(steps: int) -> None:
        if steps == 100:
            os.kill(os.getpid(), signal.SIGINT)

    result = train(MODEL, SMALL, on_step=interrupt, **HORIZON)
    assert result.interrupted
    assert [point.steps for point in result.curve] == [0, 64]
    early = train(MODEL, SMALL, on_point=lambda _: interrupt(100), **HORIZON)
    assert [point.steps for point in early.curve] == [0]  # the policy before the first update is kept
    result.save(tmp_path / "policy.pt")
    assert checkpoint.load(tmp_path / "policy.pt", "policy")["taso"]["model"] == MODEL


def test_another_run_s_file_is_refused(tmp_path: Path) -> None:
    short = PPOSettings(**{**SMALL.__dict__, "steps": 64})
    train(MODEL, short, run_file=tmp_path / "run.pt", **HORIZON)
    with pytest.raises(CheckpointError, match=r"expected a run with settings .*'steps': 192"):
        train(MODEL, SMALL, run_file=tmp_path / "run.pt", **HORIZON)


def test_an_unknown_network_is_refused() -> None:
    with pytest.raises(OptionError, match="expected an ONNX file or one of TasoGraph-"):
        train("TasoGraph-Nothing-v0", SMALL)


def test_without_costs_shown_the_policy_has_no_greed() -> None:
    blind = PPOSettings(**{**SMALL.__dict__, "steps": 64, "see_costs": False})
    result = train(MODEL, blind, **HORIZON)
    assert result.policy.greed is None
    assert "cost_changes" not in result.policy.observation_space.spaces


@pytest.mark.slow
def test_it_beats_greedy_where_that_is_possible() -> None:
    """SqueezeNet has gains behind steps that cost something; greedy search never takes them.

    Nor does training that only begins at the start, since there are rules by which greedy search gains more.
    """
    result = train(MODEL, PPOSettings(steps=8192, restarts=0.5, greed=2.0, entropy=0.02))
    greedy = result.curve[0].policy  # before training the policy is greedy
    assert result.curve[-1].best_seen < greedy - 0.003


@pytest.mark.parametrize(("rollout", "minibatch"), [(33, 16), (8, 1), (32, 16)])
def test_a_minibatch_of_one_step_spoils_no_weights(rollout: int, minibatch: int) -> None:
    """Its advantages have no deviation to be divided by."""
    settings = replace(SMALL, steps=rollout, environments=1, rollout=rollout, minibatch=minibatch, imitation=0)
    assert leaves_one(rollout, minibatch) == (rollout != 32)
    assert all(torch.isfinite(w).all() for w in weights(train(MODEL, settings, **HORIZON)))
