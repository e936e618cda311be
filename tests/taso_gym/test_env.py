"""The environment as a game: steps, ends, copies, illegal actions."""

from copy import deepcopy

import gymnasium as gym
import numpy as np
import pytest
from games import illegal_actions, pickled, rule_set, rules_file, same, tiny_env, tiny_graph, walk
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from taso_gym import onnx_io
from taso_gym.env import TasoGraphEnv
from taso_gym.errors import OptionError, RuleError
from taso_gym.observation.candidates import CandidateRows
from taso_gym.observation.rows import GraphRows
from taso_gym.rules.state import RewriteState
from taso_gym.rules.state import check as check_state


@pytest.mark.filterwarnings("ignore:.*Not able to test alternative render modes")
@pytest.mark.parametrize("arguments", [{}, {"location_counts": True, "extra_views": ("cost_changes",)}])
def test_gymnasium_checks_it(arguments):
    check_env(tiny_env(**arguments))


def test_a_legal_move_rewrites_the_graph():
    env = tiny_env()
    env.reset()
    before, expected = env.state, env.state.apply(env.state.matches[0][0])
    _, reward, terminated, truncated, info = env.step(np.array([0, 0]))
    assert env.state.graph == expected.graph and env.path == (before.matches[0][0],)
    assert reward == pytest.approx(100 * (before.cost.time_ps - expected.cost.time_ps) / before.cost.time_ps)
    assert (terminated, truncated, info["xfer"], info["location"], info["invalid_action"]) == (
        False,
        False,
        0,
        0,
        False,
    )


def test_the_state_stays_whole():
    env = tiny_env()
    env.reset()
    rng = np.random.default_rng(1)
    for _ in range(30):
        env.step(env.sample_valid(rng))
        check_state(env.state)


@pytest.mark.parametrize("location", [0, 19])
def test_noop_ends_the_episode_at_any_location(location):
    env = tiny_env()
    env.reset()
    before = env.state
    _, reward, terminated, truncated, info = env.step((env.layout.xfers, location))
    assert (reward, terminated, truncated) == (0.0, True, False) and not info["invalid_action"]
    assert env.state is before and info["xfer"] == env.layout.xfers


def test_it_terminates_when_nothing_is_legal_any_more():
    env = tiny_env(rules=rule_set("relu-twice: Relu(Relu(x)) => Relu(x)"))
    env.reset()
    ends = [env.step((0, 0))[2:4] for _ in range(2)]
    assert ends == [(False, False), (True, False)]


def test_with_nothing_legal_at_the_start_noop_is():
    env = tiny_env(rules=rule_set("exp-log: Exp(Log(x)) => x"))
    env.reset()
    assert env.sample_valid(np.random.default_rng(0)).tolist() == [1, 0]
    _, _, terminated, _, info = env.step((1, 0))
    assert terminated and not info["invalid_action"]


def test_it_truncates_at_max_steps():
    env = tiny_env(max_steps=3)
    env.reset()
    rng = np.random.default_rng(0)
    assert [env.step(env.sample_valid(rng))[2:4] for _ in range(3)] == [(False, False)] * 2 + [(False, True)]


def test_noop_at_the_last_step_terminates_only():
    env = tiny_env(max_steps=1)
    env.reset()
    assert env.step((env.layout.xfers, 0))[2:4] == (True, False)


def test_an_illegal_action_counts_and_costs_and_changes_nothing():
    env = tiny_env()
    env.reset()
    before = env.state
    for number, action in enumerate(illegal_actions(env.layout.xfers, env.layout.locations), 1):
        observation, reward, terminated, truncated, info = env.step(action)
        assert (reward, terminated, truncated) == (-1.0, False, number >= env.max_steps)
        assert (info["invalid_action"], info["step"], info["xfer"]) == (True, number, -1)
    assert env.state is before and observation in env.observation_space


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "float16", "float32", "float64"])
def test_whole_numbers_of_any_type_are_an_action(dtype):
    env = tiny_env()
    env.reset()
    assert not env.step(np.array([0, 0], dtype))[-1]["invalid_action"]


@pytest.mark.parametrize("error", [AttributeError, KeyError, ZeroDivisionError])
def test_an_action_whose_array_raises_is_illegal(error):
    class Odd:
        def __array__(self, *_args, **_kwargs):
            raise error("no array")

    env = tiny_env()
    env.reset()
    assert env.step(Odd())[-1]["invalid_action"]


def test_random_actions_of_the_space_never_raise():
    env = tiny_env()
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(300):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert np.isfinite(reward) and observation in env.observation_space
        if terminated or truncated:
            env.reset()


def test_infos_have_the_same_keys_and_types():
    env = tiny_env()
    infos = [env.reset()[1], env.step((0, 0))[-1], env.step("?")[-1], env.step((env.layout.xfers, 0))[-1]]
    assert all(info.keys() == infos[0].keys() for info in infos)
    assert all(isinstance(info.pop("invalid_action"), bool) for info in infos)
    assert all(isinstance(value, np.generic | np.ndarray) for info in infos for value in info.values())
    assert infos[0]["rules_digest"].tobytes().hex() == env.rules.digest


def test_marginal_masks_are_those_of_the_observation():
    env = tiny_env()
    observation, _ = env.reset()
    expected = [observation["location_masks"].any(1), observation["location_masks"].any(0)]
    assert env.action_masks().dtype == np.bool_ and same(env.action_masks(), np.concatenate(expected))


def test_sample_valid_draws_every_candidate_and_noop_if_asked():
    env = tiny_env()
    env.reset()
    rng = np.random.default_rng(0)
    drawn = {tuple(env.sample_valid(rng, noop=True).tolist()) for _ in range(2000)}
    total = env.episode.observer.total
    assert drawn == {env.candidate_action(i) for i in range(total)} | {(env.layout.xfers, 0)}


def test_two_environments_with_one_seed_play_the_same():
    first, second = tiny_env(), tiny_env()
    assert same(first.reset(seed=3), second.reset(seed=3))
    assert same(walk(first, 200), walk(second, 200))


@pytest.mark.parametrize("copied", [pickled, deepcopy, lambda env: env.clone()], ids=["pickle", "deepcopy", "clone"])
def test_a_copy_continues_alike(copied):
    env = tiny_env(models=[tiny_graph(), tiny_graph(blocks=1)])
    env.reset(seed=5)
    walk(env, 20)
    other = copied(env)
    assert same(walk(env, 60, seed=1), walk(other, 60, seed=1))
    assert other.np_random.bit_generator.state == env.np_random.bit_generator.state


def test_a_clone_leaves_the_original():
    env = tiny_env()
    env.reset(seed=0)
    before, clone = env.observe(), env.clone()
    walk(clone, 10)
    assert same(env.observe(), before) and len(env.path) == 0
    walk(env, 10)
    assert same(env.observe(), clone.observe())


def test_a_deepcopy_has_samplers_of_its_own():
    env = tiny_env()
    env.reset(seed=0)
    env.action_space.seed(0)
    other = deepcopy(env)
    assert [env.action_space.sample().tolist() for _ in range(5)] == [
        other.action_space.sample().tolist() for _ in range(5)
    ]


@pytest.mark.parametrize("kept", [lambda state: state, pickled], ids=["kept", "pickled"])
def test_a_state_is_come_back_to(kept):
    env = tiny_env(models=[tiny_graph(), tiny_graph(blocks=1)])
    env.reset(seed=0)
    walk(env, 12)
    state = kept(env.get_state())
    first = walk(env, 50, seed=2)
    env.set_state(state)
    second = walk(env, 50, seed=2)
    env.set_state(state)
    assert same(first, second) and same(first, walk(env, 50, seed=2))


def test_a_state_goes_to_another_environment():
    env, other = tiny_env(), tiny_env()
    env.reset(seed=0)
    walk(env, 5)
    other.set_state(env.get_state())
    assert same(env.observe(), other.observe())


def test_a_seed_that_is_refused_leaves_the_random_stream():
    env = tiny_env(models=[tiny_graph(), tiny_graph(blocks=1)])
    env.reset(seed=3)
    clone, other = env.clone(), env.clone()
    for seed in (-1, 1.5, "a"):
        with pytest.raises(Exception, match=r"[Ss]eed"):
            clone.reset(seed=seed)
    drawn, expected = ([int(one.reset()[1]["model"]) for _ in range(16)] for one in (clone, other))
    assert drawn == expected and set(drawn) == {0, 1}


@pytest.mark.parametrize("where", [GraphRows, CandidateRows])
def test_a_step_that_is_interrupted_is_as_if_it_hadnt_begun(where, monkeypatch):
    env, other = tiny_env(), tiny_env()
    for one in (env, other):
        one.reset(seed=0)
        walk(one, 5)
    action, patch = env.sample_valid(np.random.default_rng(0)), where.patch

    def interrupted(*given):
        patch(*given)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(where, "patch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        env.step(action)
    assert same(env.observe(), other.observe()) and env.path == other.path and env.state.graph == other.state.graph
    assert same(walk(env, 20), walk(other, 20))


def test_weights_are_held_once_however_it_is_copied():
    graph = tiny_graph()
    env = gym.make("TasoGraph-v0", model=graph)
    env.reset()
    assert env.spec.kwargs["model"] is graph and deepcopy(env).spec.kwargs["model"] is graph


def test_a_state_of_another_game_is_refused():
    env = tiny_env()
    before, _ = env.reset()
    others = {
        r"this environment's rules \(digest \w{32}\), found one with others \(\w{32}\)": tiny_env(
            rules=rule_set("relu-twice: Relu(Relu(x)) => Relu(x)")
        ),
        r"this environment's Layout\(.*matches=64.*found Layout\(.*matches=32": tiny_env(max_matches=32),
        r"this environment's costs \(.*\), found one with others \(roofline:h200": tiny_env(cost="roofline:h200"),
    }
    for expected, other in others.items():
        other.reset()
        with pytest.raises(OptionError, match=f"expected a snapshot with {expected}"):
            env.set_state(other.get_state())
    assert same(env.observe(), before)


def test_a_model_is_named_by_its_path(tmp_path):
    paths = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    for blocks, path in enumerate(paths, 1):
        onnx_io.save(tiny_graph(blocks=blocks), path)
    env = tiny_env(models=paths)
    assert [int(env.reset(options={"model": path})[1]["model"]) for path in (*paths, str(paths[1]))] == [0, 1, 1]


def test_one_name_or_path_is_one_of_models(tmp_path):
    onnx_io.save(tiny_graph(), tmp_path / "a.onnx")
    for models in (tmp_path / "a.onnx", str(tmp_path / "a.onnx")):
        assert [start.name for start in tiny_env(models=models).starts] == [str(models)]


def test_reset_chooses_the_model():
    env = tiny_env(models=[tiny_graph(), tiny_graph(blocks=1)])
    assert env.reset(options={"model": "graph1"})[1]["model"] == 1
    assert len(env.state.graph) == len(tiny_graph(blocks=1))
    assert env.reset(options={"model": 0})[1]["model"] == 0
    drawn = [int(env.reset(seed=seed)[1]["model"]) for seed in range(20)]
    assert set(drawn) == {0, 1} and drawn == [int(env.reset(seed=seed)[1]["model"]) for seed in range(20)]


UNKNOWN_OPTIONS = [
    {"model": "BERT"},
    {"model": 2},
    {"model": False},
    {"model": np.array([0, 1])},
    {"graph": 1},
    {"x": 1, 2: 3},
    5,
]


@pytest.mark.parametrize("options", UNKNOWN_OPTIONS, ids=str)
def test_reset_refuses_unknown_options(options):
    expected = "a model among graph0|options among model|a mapping from names to values as options"
    with pytest.raises(OptionError, match=f"expected ({expected}), found"):
        tiny_env(models=[tiny_graph()]).reset(options=options)


def test_nothing_works_before_reset():
    env = tiny_env(render_mode="ansi")
    for call in (lambda: env.step((0, 0)), env.render, env.action_masks, lambda: env.state, lambda: env.view("text")):
        with pytest.raises(ResetNeeded):
            call()


def test_views_are_computed_when_asked_for():
    env = tiny_env()
    env.reset()
    assert env.view("cost_changes").shape == (env.layout.matches,)
    assert "= MatMul(" in env.view("text") and env.view("text").startswith("%")
    assert isinstance(env.view("onnx"), bytes)
    with pytest.raises(OptionError, match="expected a view among cost_changes, onnx, text, found 'graph'"):
        env.view("graph")


def test_the_graph_is_saved(tmp_path):
    import taso_gym

    env = tiny_env()
    env.reset()
    walk(env, 5)
    env.save_onnx(tmp_path / "tiny.onnx")
    assert len(taso_gym.load(tmp_path / "tiny.onnx").info.inputs) == 1


def test_rules_come_from_a_file(tmp_path):
    env = tiny_env(rules=rules_file(tmp_path))
    assert env.rules.digest == rule_set().digest
    env.reset()
    assert isinstance(env.state, RewriteState)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": None}, "either model or models"),
        ({"models": [], "model": None}, "at least one model"),
        (
            {"model": "BRET"},
            r"expected an ONNX file, a graph or a network among .*, found 'BRET' \(did you mean 'BERT'",
        ),
        ({"models": [tiny_graph()], "model": tiny_graph()}, "either model or models"),
        ({"numerics": "loose"}, "expected numerics among exact, reassociate, fast, found 'loose'"),
        ({"render_mode": "human"}, "expected render_mode among None, ansi, svg, rgb_array, found 'human'"),
        ({"extra_views": ("onnx",)}, "expected extra_views among cost_changes, found 'onnx'"),
        ({"max_steps": 0}, "expected max_steps to be a whole number from 1 on, found 0"),
        ({"max_steps": 1.5}, "expected max_steps to be a whole number from 1 on, found 1.5"),
        ({"max_nodes": True}, "expected max_nodes to be a whole number from 1 on, found True"),
        ({"invalid_penalty": float("nan")}, "expected a finite number as invalid_penalty, found nan"),
        ({"model_kwargs": {"batch": 4}}, "expected no model_kwargs for a graph, found batch"),
        ({"portable": "false"}, "expected True or False as portable, found 'false'"),
        ({"location_counts": 1}, "expected True or False as location_counts, found 1"),
        ({"cost": "guess"}, "expected a cost model among .*, found 'guess'"),
        ({"cost": 3}, "expected a name or CostModel as cost, found 3"),
        ({"model": 3}, "expected a name, path or Graph as model, found 3"),
        ({"model": bytes(10**6)}, r"expected a name, path or Graph as model, found .{,200}$"),
        ({"rules": 3}, "expected a name, path or RuleSet as rules, found 3"),
        ({"reward": 3}, "expected a Reward, or the name of one among .*, found 3"),
        ({"reward_kwargs": 3}, "expected a mapping from names to values as reward_kwargs, found 3"),
        ({"reward_kwargs": {3: 4}}, "expected a mapping from names to values as reward_kwargs, found {3: 4}"),
        ({"model_kwargs": {3: 4}}, "expected a mapping from names to values as model_kwargs, found {3: 4}"),
        ({"models": 5, "model": None}, "expected a sequence of names, paths or Graphs as models, found 5"),
        ({"extra_views": 5}, "expected a sequence of names as extra_views, found 5"),
        ({"extra_views": None}, "expected a sequence of names as extra_views, found None"),
        ({"dims": {3: 4}}, "expected a mapping from names to sizes as dims, found {3: 4}"),
        ({"dims": 3}, "expected a mapping from names to sizes as dims, found 3"),
        ({"dims": {"batch": "x"}}, "expected size of 'batch' to be a whole number from 0 on, found 'x'"),
    ],
)
def test_a_wrong_argument_is_named(arguments, message):
    with pytest.raises(OptionError, match=message):
        TasoGraphEnv(**{"model": tiny_graph(), "rules": rule_set(), **arguments})


@pytest.mark.parametrize("number", [9999, -1, None, "x", 0.5])
def test_a_candidate_that_there_is_none_of_is_named(number):
    env = tiny_env()
    env.reset()
    total = int(env.reset()[1]["candidates"])
    with pytest.raises(OptionError, match=f"expected the number of one of {total} candidates, found {number!r}"):
        env.candidate_action(number)
    assert env.candidate_action(np.int64(total - 1)) == env.candidate_action(total - 1)


def test_what_is_no_state_and_no_generator_is_named():
    env = tiny_env()
    env.reset()
    with pytest.raises(OptionError, match="expected what get_state returned as snapshot, found None"):
        env.set_state(None)
    with pytest.raises(OptionError, match=r"expected a numpy\.random\.Generator as rng, found 0"):
        env.sample_valid(0)


def test_a_wrong_rule_set_is_named():
    with pytest.raises(RuleError, match="no-such"):
        TasoGraphEnv(model=tiny_graph(), rules="no-such")


def test_gymnasium_makes_it_with_its_wrappers():
    env = gym.make("TasoGraph-v0", model=tiny_graph(), rules=rule_set())
    env.reset(seed=0)
    assert env.get_wrapper_attr("action_masks")().any()
    assert env.step(env.unwrapped.sample_valid(np.random.default_rng(0)))[4]["invalid_action"] == np.False_


@pytest.mark.slow
def test_a_hundred_thousand_actions_of_any_kind_leave_it_whole():
    env = tiny_env()
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    env.action_space.seed(0)
    wrong = illegal_actions(env.layout.xfers, env.layout.locations)
    for number in range(100_000):
        kind = number % 3
        action = env.sample_valid(rng) if kind == 0 else env.action_space.sample()
        observation, reward, terminated, truncated, info = env.step(wrong[number % len(wrong)] if kind == 2 else action)
        assert np.isfinite(reward) and (kind or not info["invalid_action"]) and (kind < 2 or info["invalid_action"])
        if number % 2_000 == 0:
            assert observation in env.observation_space
            check_state(env.state)
        if terminated or truncated:
            env.reset()
