"""Recorded environments."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import onnx
import pytest
from model_texts import parsed

from taso_agents.environment.real_env import Action, play, state_of
from taso_agents.environment.recorder import Archive, RecordedVecEnv

MODEL = "TasoGraph-SqueezeNet1.1-v0"


def make_venv(restarts: float = 0.0) -> RecordedVecEnv:
    return RecordedVecEnv(MODEL, 2, {"location_counts": True, "max_steps": 12}, reward_scale=0.5, restarts=restarts)


def random_actions(venv: RecordedVecEnv, rng: np.random.Generator) -> np.ndarray:
    return np.stack([env.unwrapped.sample_valid(rng) for env in venv.envs])


def walk(venv: RecordedVecEnv, steps: int) -> list[dict]:
    rng = np.random.default_rng(0)
    venv.reset()
    infos: list[dict] = []
    for _ in range(steps):
        infos += venv.step(random_actions(venv, rng))[3]
    return infos


def test_archive_keeps_the_first_of_equals() -> None:
    archive = Archive(100)
    archive.note(100, [(0, 0)])
    assert archive.actions == []
    archive.note(90, [(1, 0)])
    archive.note(90, [(2, 0)])
    assert (archive.time_ps, archive.actions) == (90, [(1, 0)])


def test_archive_is_the_cheapest_graph_of_all(squeezenet: gym.Env) -> None:
    venv = make_venv()
    walk(venv, 40)
    assert venv.archive.time_ps < venv.start_ps
    play(squeezenet, venv.archive.actions)
    assert state_of(squeezenet).cost.time_ps == venv.archive.time_ps


def test_reward_is_scaled_and_sums_to_the_improvement() -> None:
    venv = make_venv()
    rng = np.random.default_rng(0)
    venv.reset()
    total = sum(venv.step(random_actions(venv, rng))[1][0] for _ in range(11))
    saved = 100 * (venv.start_ps - state_of(venv.envs[0]).cost.time_ps) / venv.start_ps
    assert total == pytest.approx(0.5 * saved, abs=1e-4)


def test_a_restarted_episode_says_where_it_is() -> None:
    venv = make_venv(restarts=1.0)
    walk(venv, 40)
    venv.reset()
    recorder = venv.envs[0]
    assert recorder.restarted
    assert venv.reset_infos[0]["step"] == len(recorder.actions) > 0


def test_views_alone_are_never_improved(tmp_path: Path) -> None:
    """They cost nothing, of which nothing can be saved."""
    model = parsed("g (float[2, 3] x) => (y) { a = Unsqueeze(x, i) b = Squeeze(a, i) y = Unsqueeze(b, i) }", i=[0])
    onnx.save(model, tmp_path / "views.onnx")
    venv = RecordedVecEnv(str(tmp_path / "views.onnx"), 1, {"location_counts": True, "max_steps": 4})
    venv.reset()
    assert venv.start_ps == venv.archive.time_ps == 0
    venv.step(random_actions(venv, np.random.default_rng(0)))
    assert venv.archive.actions == [] and venv.relative(0) == 1.0


def test_lowest_cost_of_an_episode_is_reported_at_its_end() -> None:
    infos = walk(make_venv(), 12)
    lowest = [info["lowest_time_ps"] for info in infos if "lowest_time_ps" in info]
    assert len(lowest) == 2 and min(lowest) <= min(round(info["cost_ms"] * 1e9) for info in infos)


def test_restarts_begin_on_the_way_to_the_cheapest_graph(squeezenet: gym.Env) -> None:
    venv = make_venv(restarts=1.0)
    walk(venv, 12)
    best: list[Action] = venv.archive.actions
    assert best
    for env in venv.envs:
        env.reset()
        assert env.restarted and env.actions == best[: len(env.actions)]
        expected = play(squeezenet, env.actions)
        assert state_of(env).hash == state_of(squeezenet).hash
        np.testing.assert_array_equal(env.game.observe()["matches"], expected["matches"])


def test_a_restart_leaves_a_step_to_take() -> None:
    """Also where the way to the cheapest graph is as long as an episode may be."""
    venv, rng = make_venv(), np.random.default_rng(0)
    venv.reset()
    for _ in range(5):
        venv.step(random_actions(venv, rng))
    env = venv.envs[0]
    venv.archive.note(0, env.actions)
    env.restarts, env.game.max_steps = 1.0, 5
    begun = set()
    for _ in range(100):
        env.reset()
        begun.add(len(env.actions))
    assert begun == {1, 2, 3, 4}


def test_restarted_episodes_don_t_report_their_cost() -> None:
    venv = make_venv(restarts=1.0)
    walk(venv, 12)
    assert not [info for info in walk(venv, 12) if "lowest_time_ps" in info]


def test_it_is_taken_up_where_it_was() -> None:
    venv = make_venv(restarts=0.5)
    walk(venv, 17)
    other = make_venv(restarts=0.5)
    observation = other.take_up(venv.histories())
    for env, copy in zip(venv.envs, other.envs, strict=True):
        assert state_of(env).hash == state_of(copy).hash
    expected = [env.game.observe() for env in venv.envs]
    for key, array in observation.items():
        np.testing.assert_array_equal(array, np.stack([o[key] for o in expected]))
