"""Rewards by name."""

from copy import deepcopy

import numpy as np
import onnx
import pytest
from games import rule_set, tiny_env
from model_texts import parsed

from taso_gym.builder import GraphBuilder
from taso_gym.cost.objective import Objective, quantities
from taso_gym.env import TasoGraphEnv
from taso_gym.errors import OptionError
from taso_gym.reward import REWARDS, Runtime, make_reward
from taso_gym.tensor import TensorType


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


@pytest.mark.parametrize("name", [*(n for n in REWARDS if n != "measured")])
def test_nothing_is_paid_where_there_was_nothing_to_save(name):
    builder = GraphBuilder({"": 20})
    builder.output("y", builder.add("Flatten", builder.input("x", TensorType("float", (4, 8, 2)))))
    env = TasoGraphEnv(builder.build(), reward=name)
    env.reset()
    assert env.state.cost.time_ps == 0 and env.step((env.layout.xfers, 0))[1] == 0


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


class Counting:
    """Pays the number of steps so far, which it counts in a list."""

    deterministic = True

    def __init__(self):
        self.seen = []

    def reset(self, state):
        self.seen = [state]

    def step(self, previous, state, end):
        self.seen.append(state)
        return float(len(self.seen) - 1)


def test_what_an_own_reward_holds_is_not_shared_by_copies():
    env = tiny_env(reward=Counting())
    env.reset()
    copies = [env, env.clone(), deepcopy(env)]
    assert [[e.step((0, 0))[1] for _ in range(2)] for e in copies] == [[1, 2]] * 3
    assert [e.episode.reward.seen[0] is env.episode.start.state for e in copies] == [True] * 3


@pytest.mark.parametrize("name", REWARDS)
def test_every_name_makes_a_reward(name):
    if name == "measured":
        pytest.importorskip("onnxruntime")
    assert isinstance(make_reward(name).deterministic, bool)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("latency", {}, "expected a Reward, or the name of one among runtime, .*, found 'latency'"),
        ("runtime", {"alpha": 1}, "expected no parameters for runtime, found 'alpha'"),
        ("measured", {"k": 1}, "among every, threads, provider, rounds, found 'k'"),
        ("measured", {"every": 0}, "expected every to be a whole number from 1 on, found 0"),
        ("measured", {"threads": 0}, "expected a whole number from 1 to 4096 as threads, found 0"),
        ("measured", {"rounds": "x"}, "expected rounds to be a whole number from 1 on, found 'x'"),
        ("measured", {"provider": "foo"}, "expected provider among cpu, cuda, found 'foo'"),
        ("measured", {"provider": []}, r"expected provider among cpu, cuda, found \[\]"),
        ("runtime_memory", {"beta": float("inf")}, "expected a finite number as beta, found inf"),
        ("runtime_memory", {"alpha": "x"}, "expected a finite number as alpha, found 'x'"),
        ("objective", {"objective": 5}, "expected a sum of quantities or an Objective as objective, found 5"),
        ([], {}, r"expected a Reward, or the name of one among .*, found \[\]"),
        ({}, {}, "expected a Reward, or the name of one among .*, found {}"),
        (Runtime, {}, "expected a Reward, or the name of one among .*, found <class"),
        (Runtime(), {"alpha": 1}, "expected no parameters for a reward that is given, found alpha"),
    ],
)
def test_a_wrong_reward_is_named(name, parameters, message):
    with pytest.raises(OptionError, match=message):
        make_reward(name, **parameters)


@pytest.mark.parametrize(("objective", "expected"), [("size", 0), ("time+0.2*size", "time")])
def test_what_is_0_at_the_start_earns_and_costs_nothing(objective, expected):
    builder = GraphBuilder({"": 20})
    builder.output("y", builder.add("Relu", builder.input("x", TensorType("float", (4, 8)))))
    rules = rule_set("times-one: Relu(x) => Mul(Relu(x), 1.0)")
    env = TasoGraphEnv(builder.build(), rules=rules, reward="objective", reward_kwargs={"objective": objective})
    env.reset()
    reward = env.play((0, 0))[0]
    assert quantities(env.state.graph, env.state.cost, None)["size"] > 0
    assert reward == pytest.approx(improvement(env) if expected == "time" else expected)
