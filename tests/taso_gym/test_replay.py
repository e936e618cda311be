"""Replays: bit for bit in another process, refused where something differs."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import onnx
import pytest
from cost_graphs import table_of
from games import RULES, pickled, rule_set, rules_file, tiny_env, tiny_graph
from model_texts import parsed
from typer.testing import CliRunner

from taso_gym.cli import app
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.recorded import RecordedCost
from taso_gym.cost.roofline import RooflineCost
from taso_gym.env import TasoGraphEnv
from taso_gym.errors import OptionError, ReplayError, TasoError
from taso_gym.replay import Replay
from taso_gym.wrappers import CandidateAction


@pytest.fixture
def played(tmp_path):
    """A replay of a game on SqueezeNet with rules from a file, and its environment."""
    env = TasoGraphEnv("SqueezeNet1.1", rules="default", model_kwargs={"image": 64})
    env.reset(seed=7)
    rng = np.random.default_rng(0)
    for _ in range(25):
        env.step(env.sample_valid(rng))
    return Replay.of(env), env


@pytest.fixture
def tiny():
    """A replay of a game on a graph made in Python, and its environment."""
    env = tiny_env()
    env.reset(seed=7)
    rng = np.random.default_rng(0)
    for _ in range(10):
        env.step(env.sample_valid(rng))
    return Replay.of(env), env


def test_a_replay_leads_to_the_same_graph(played):
    replay, env = played
    state = replay.validate()
    assert len(replay.moves) == 25 and replay.source.seed == 7
    assert state.graph == env.state.graph and state.cost == env.state.cost


def test_a_file_is_played_back_in_another_process(played, tmp_path):
    replay, env = played
    replay.save(tmp_path / "game.json")
    load = f"Replay.load({str(tmp_path / 'game.json')!r})"
    code = f"from taso_gym import Replay; print({load}.validate().graph.canonical_digest())"
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (result.stdout.strip(), result.stderr) == (env.state.graph.canonical_digest(), "")


def test_saving_and_loading_changes_nothing(played, tmp_path):
    replay, _ = played
    replay.save(tmp_path / "game.json")
    assert Replay.load(tmp_path / "game.json") == replay
    assert (tmp_path / "game.json").stat().st_size < 20_000


def test_a_model_and_rules_of_ones_own_are_passed(tiny):
    replay, env = tiny
    assert replay.validate(model=tiny_graph(), rules=rule_set()).graph == env.state.graph
    with pytest.raises(ReplayError, match="expected the model, found a replay of model made in Python"):
        replay.validate(rules=rule_set())


def test_rules_are_found_at_another_path(tmp_path):
    env = tiny_env(rules=rules_file(tmp_path))
    env.reset()
    env.step((0, 0))
    (tmp_path / "tiny.rules").rename(tmp_path / "moved.rules")
    assert Replay.of(env).validate(tiny_graph(), tmp_path / "moved.rules").cost == env.state.cost


def test_another_model_is_refused(tiny):
    with pytest.raises(ReplayError, match=r"model: the replay has \w+, found \w+"):
        tiny[0].validate(model=tiny_graph(width=4), rules=rule_set())


def test_other_rules_are_refused(tiny):
    with pytest.raises(ReplayError, match=r"rule set: the replay has \w+, found \w+"):
        tiny[0].validate(model=tiny_graph(), rules=rule_set(RULES + "exp-log: Exp(Log(x)) => x"))


def test_another_cost_model_is_refused(tiny):
    changed = replace(tiny[0], cost_key="roofline:abacus[]")
    with pytest.raises(ReplayError, match="cost model: the replay has roofline:abacus"):
        changed.validate(model=tiny_graph(), rules=rule_set())


def test_a_changed_cost_is_refused(tiny):
    replay, env = tiny
    moves = (*replay.moves[:3], replay.moves[3]._replace(time_ps=1), *replay.moves[4:])
    with pytest.raises(ReplayError, match=r"cost after move 4 \([\w.-]+\): the replay has 1, found"):
        replace(replay, moves=moves).apply(env.episode.start.state)


def test_an_illegal_move_is_refused(tiny):
    replay, env = tiny
    moves = (replay.moves[0], replay.moves[0]._replace(nodes=(99, 98)))
    with pytest.raises(ReplayError, match=r"move 2 .*expected a legal substitution"):
        replace(replay, moves=moves).apply(env.episode.start.state)


def test_a_changed_end_is_refused(tiny):
    with pytest.raises(ReplayError, match="last graph"):
        replace(tiny[0], final_digest="0" * 16).validate(model=tiny_graph(), rules=rule_set())


def with_source(text, name, value=5):
    """Write a replay whose source has another value for a field."""
    data = json.loads(text)
    return json.dumps({**data, "source": {**data["source"], name: value}})


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "{}",
        lambda text: "[" * 100_000,
        lambda text: json.dumps({**json.loads(text), "format": 99}),
        lambda text: json.dumps({**json.loads(text), "moves": [["a"]]}),
        lambda text: json.dumps({**json.loads(text), "moves": [["a", ["b"], 0, 0]]}),
        lambda text: json.dumps({**json.loads(text), "moves": [[5, [1], 0, 0]]}),
        lambda text: json.dumps({**json.loads(text), "moves": [["a", [1], 0, None]]}),
        lambda text: json.dumps({**json.loads(text), "weights": []}),
        partial(with_source, name="limits", value={"max_nodes": "x"}),
        partial(with_source, name="limits", value={"most": 5}),
        partial(with_source, name="cost_options"),
        *(partial(with_source, name=name) for name in ("model", "model_kwargs", "rules", "cost", "dims", "limits")),
    ],
)
def test_a_damaged_file_is_refused(tiny, tmp_path, damage):
    path = tmp_path / "game.json"
    tiny[0].save(path)
    path.write_text(damage(path.read_text()))
    with pytest.raises(ReplayError, match=r"game.json: expected a replay"):
        Replay.load(path)


@pytest.mark.parametrize(
    "fields", [{"model_kwargs": {"image": [64]}}, {"limits": {"max_locations": 0}}, {"numerics": []}]
)
def test_a_start_of_wrong_arguments_is_refused(played, fields):
    replay, _ = played
    with pytest.raises(TasoError, match=r"expected .*found"):
        replace(replay.source, **fields).start()


def test_numpy_integers_are_saved(tmp_path):
    limits = dict.fromkeys(("max_locations", "max_matches", "max_steps", "max_nodes", "max_edges"), np.int64(600))
    env = TasoGraphEnv("SqueezeNet1.1", model_kwargs={"image": 64}, portable=np.bool_(False), **limits)
    env.reset(seed=np.int64(3))
    Replay.of(env).save(tmp_path / "game.json")
    found = Replay.load(tmp_path / "game.json")
    assert found == Replay.of(env) and found.source.seed == 3
    assert found.validate().graph == env.state.graph


def test_options_of_a_cost_model_that_is_given_are_kept(tmp_path):
    table = str(table_of(tmp_path / "t.json.gz", tiny_graph()))
    rules = rule_set("exp-log: Exp(Log(x)) => x")
    env = tiny_env(cost=RecordedCost(table, strict=True), rules=rules)
    env.reset()
    Replay.of(env).save(tmp_path / "game.json")
    state = Replay.load(tmp_path / "game.json").validate(tiny_graph(), rules)
    assert state.cost == env.state.cost and state.cost_model.strict


def test_threads_of_a_cost_model_that_is_given_are_kept(tmp_path):
    pytest.importorskip("onnxruntime")
    cache = tmp_path / "cache.sqlite"
    given = {"threads": 2, "cache": str(cache), "outside": 0.0}
    for model in (OnnxRuntimeCost(**given), pickled(OnnxRuntimeCost(**given))):
        assert tiny_env(cost=model).starts[0].source.cost_options == given


def test_the_seed_is_that_of_the_episode(tiny):
    _, env = tiny
    kept = env.get_state()
    env.reset(seed=8)
    env.set_state(kept)
    assert env.source().seed == Replay.of(env).source.seed == 7


def test_what_has_no_replay_is_named(tiny):
    replay, env = tiny
    with pytest.raises(OptionError, match=r"expected a TasoGraphEnv without wrappers \(env.unwrapped\) as env, found"):
        Replay.of(CandidateAction(env))
    with pytest.raises(OptionError, match="expected a RewriteState as start, found 5"):
        replay.apply(5)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ReplayError, match=r"expected a replay, found none at .*nothing.json"):
        Replay.load(tmp_path / "nothing.json")


def test_the_command_plays_it_back_and_writes_the_result(played, tmp_path, capsys):
    replay, _ = played
    replay.save(tmp_path / "game.json")
    result = CliRunner().invoke(app, ["replay", str(tmp_path / "game.json"), "-o", str(tmp_path / "fast.onnx")])
    assert result.exit_code == 0 and (tmp_path / "fast.onnx").stat().st_size > 10**6
    assert "25 rewrites" in capsys.readouterr().out + result.output


def test_the_command_refuses_another_model(played, tmp_path):
    played[0].save(tmp_path / "game.json")
    result = CliRunner().invoke(app, ["replay", str(tmp_path / "game.json"), "--model", "ResNet18"])
    assert isinstance(result.exception, OptionError | ReplayError)


def test_sizes_of_a_cost_model_that_is_given_are_kept(tmp_path):
    """Its own, those of the environment before these, and a size for what neither says."""
    path = tmp_path / "open.onnx"
    onnx.save(parsed("g (float[N, 4, T] x) => (y) { a = Relu(x)  b = Relu(a)  y = Neg(b) }"), path)
    given = RooflineCost(dims={"T": 8})
    costs = {}
    for dims in (None, {"N": 64}):
        env = TasoGraphEnv(path, cost=given, dims=dims)
        env.reset(seed=0)
        Replay.of(env).save(tmp_path / "game.json")
        assert Replay.load(tmp_path / "game.json").validate().cost == env.state.cost
        costs[env.state.cost_model.dims["N"]] = env.state.cost.time_ps
        assert env.state.cost_model.dims["T"] == 8
    assert costs.keys() == {1, 64} and costs[64] > costs[1]
    assert given.dims == {"T": 8}


def test_numbers_of_numpy_in_what_is_named_are_saved(tmp_path):
    env = TasoGraphEnv("SqueezeNet1.1", model_kwargs={"image": np.int64(64)})
    env.reset(seed=0)
    Replay.of(env).save(tmp_path / "game.json")
    assert Replay.load(tmp_path / "game.json").source.model_kwargs == {"image": 64}
