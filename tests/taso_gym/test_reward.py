"""Rewards by name."""

import numpy as np
import onnx
import pytest
from games import tiny_env
from model_texts import parsed

from taso_gym.cost.objective import Objective, quantities
from taso_gym.env import TasoGraphEnv
from taso_gym.errors import OptionError
from taso_gym.reward import REWARDS, make_reward


def play(env, steps=20, seed=0):
    """Rewards of an episode of legal moves that NO-OP ends."""
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    rewards = [env.play(env.sample_valid(rng))[0] for _ in range(steps)]
    return [*rewards, env.play((env.layout.xfers, 0))[0]]


def improvement(env):
    """Saved run time in %."""
    start = env.episode.start.state.cost
    return 100 * (start.time_ps - env.state.cost.time_ps) / start.time_ps


def test_runtime_sums_up_to_the_total_improvement():
    env = tiny_env()
    assert sum(play(env)) == pytest.approx(improvement(env))


def test_terminal_pays_at_the_end_only():
    env = tiny_env(reward="terminal")
    rewards = play(env)
    assert rewards[:-1] == [0] * 20 and rewards[-1] == pytest.approx(improvement(env))


def test_terminal_pays_at_truncation():
    env = tiny_env(reward="terminal", max_steps=3)
    env.reset()
    rng = np.random.default_rng(0)
    rewards = [env.step(env.sample_valid(rng))[1] for _ in range(3)]
    assert rewards[:2] == [0, 0] and rewards[2] == pytest.approx(improvement(env))


def test_runtime_memory_weighs_time_and_accesses():
    parts = [
        play(tiny_env(reward="runtime_memory", reward_kwargs={"alpha": a, "beta": b})) for a, b in ((1, 0), (0, 1))
    ]
    both = play(tiny_env(reward="runtime_memory", reward_kwargs={"alpha": 0.8, "beta": 0.2}))
    assert parts[0] == pytest.approx(play(tiny_env()))
    assert both == pytest.approx([0.8 * time + 0.2 * memory for time, memory in zip(*parts, strict=True)])


@pytest.mark.parametrize("objective", ["time", "kernels", "memory+size"])
def test_an_objective_sums_up_to_what_it_was_lowered_by(objective):
    env = tiny_env(reward="objective", reward_kwargs={"objective": objective})
    total, start, goal = sum(play(env)), env.episode.start.state, Objective.parse(objective)
    found = [quantities(s.graph, s.cost, s.cost_model) for s in (start, env.state)]
    before, after = (goal.value(q, found[0]) for q in found)
    assert total == pytest.approx(100 * (before - after) / before)


def test_measured_measures_every_few_steps_and_at_the_end(monkeypatch):
    class Found:
        def time_ms(self, name):
            return {"start": 4.0, "now": next(latencies)}[name] if name == "now" else 4.0

    latencies = iter([3.0, 2.0])
    asked = []
    monkeypatch.setattr("taso_gym.cost.measure.measure", lambda models, **_: asked.append(models) or Found())
    env = tiny_env(reward="measured", reward_kwargs={"every": 2})
    rewards = play(env, steps=3)
    assert rewards == [0, 25, 0, 25]
    assert [m["start"] is env.episode.start.graph for m in asked] == [True, True]


def test_measured_measures_at_the_sizes_of_the_environment(monkeypatch, tmp_path):
    class Found:
        def time_ms(self, _name):
            return 1.0

    given = []
    monkeypatch.setattr("taso_gym.cost.measure.measure", lambda *_, dims, **__: given.append(dims) or Found())
    path = tmp_path / "model.onnx"
    onnx.save(parsed("g (float[N, 4] x) => (y) { a = Relu(x)\n b = Relu(a)\n y = Exp(b) }"), path)
    env = TasoGraphEnv(path, dims={"N": 64}, reward="measured", reward_kwargs={"every": 1})
    play(env, steps=1)
    assert given == [{"N": 64}]


def test_the_penalty_is_added_to_an_illegal_action():
    env = tiny_env(invalid_penalty=-3)
    env.reset()
    assert env.step((-1, 0))[1] == -3


def test_an_own_reward_can_be_given():
    class Constant:
        deterministic = True

        def reset(self, state):
            pass

        def step(self, previous, state, end):
            return 7.0

    env = tiny_env(reward=Constant())
    env.reset()
    assert env.step((env.layout.xfers, 0))[1] == 7


@pytest.mark.parametrize("name", REWARDS)
def test_every_name_makes_a_reward(name):
    assert isinstance(make_reward(name).deterministic, bool)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("latency", {}, "expected a Reward, or the name of one among runtime, .*, found 'latency'"),
        ("runtime", {"alpha": 1}, "expected no parameters for runtime, found 'alpha'"),
        ("measured", {"k": 1}, "among every, threads, provider, rounds, found 'k'"),
        ("measured", {"every": 0}, "expected every to be a whole number from 1 on, found 0"),
        ("runtime_memory", {"beta": float("inf")}, "expected finite numbers as alpha and beta, found 0.8 and inf"),
    ],
)
def test_a_wrong_reward_is_named(name, parameters, message):
    with pytest.raises(OptionError, match=message):
        make_reward(name, **parameters)
