"""The contract of every registered id."""

import json
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
from games import IDS, pickled, same, tiny_graph, walk
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

import taso_gym
from taso_gym.builder import GraphBuilder
from taso_gym.errors import OptionError
from taso_gym.models import NETWORKS
from taso_gym.observation import size_bytes
from taso_gym.registration import generated_ids, recorded_ids
from taso_gym.tensor import TensorType

NAMED = sorted(i for i in gym.registry if i.startswith("TasoGraph") and i != "TasoGraph-v0")
QUICK = [
    "TasoGraph-SqueezeNet1.1-v0",
    "TasoGraph-BERT-v0",
    "TasoGraph-GeneratedTrain-v0",
    "TasoGraphRecorded-SqueezeNet1.1-v0",
]
SLOW = [pytest.param(i, marks=() if i in QUICK else pytest.mark.slow) for i in NAMED]
SLOWER = [pytest.param(i, marks=() if i == QUICK[0] else pytest.mark.slow) for i in NAMED]


def make(env_id, **arguments):
    """Make an environment; ``TasoGraph-v0`` of a tiny graph."""
    return gym.make(env_id, **({"model": tiny_graph()} if env_id == "TasoGraph-v0" else {}), **arguments)


def test_every_network_has_an_id():
    assert sorted([*(f"TasoGraph-{name}-v0" for name in NETWORKS), *recorded_ids(), *generated_ids()]) == NAMED
    assert set(IDS) <= set(NAMED)


def test_the_package_is_named_in_the_id():
    assert gym.make("taso_gym:TasoGraph-SqueezeNet1.1-v0").spec.id == "TasoGraph-SqueezeNet1.1-v0"


@pytest.mark.parametrize("env_id", [*SLOW, "TasoGraph-v0"])
def test_gymnasium_checks_it(env_id):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(env_id).unwrapped)


@pytest.mark.parametrize("env_id", [*SLOW, "TasoGraph-v0"])
@pytest.mark.filterwarnings("ignore:.*unconventional shape")
def test_stable_baselines_checks_it(env_id):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(make(env_id).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("env_id", SLOW)
def test_one_seed_plays_one_trajectory(env_id):
    first, second = make(env_id), make(env_id)
    assert same(first.reset(seed=1), second.reset(seed=1))
    assert same(walk(first, 200), walk(second, 200))


@pytest.mark.parametrize("env_id", SLOWER)
def test_a_pickled_game_goes_on_alike(env_id):
    env = make(env_id)
    env.reset(seed=1)
    walk(env, 5)
    assert same(walk(pickled(env), 20), walk(env, 20))


@pytest.mark.parametrize("env_id", SLOWER)
@pytest.mark.parametrize("mode", ["sync", "async", "vector_entry_point"])
def test_vectors_of_every_mode_play_it(env_id, mode):
    vector, one = gym.make_vec(env_id, num_envs=2, vectorization_mode=mode), make(env_id)
    seen, alone = vector.reset(seed=[3, 4])[0], one.reset(seed=3)[0]
    assert same({key: array[0] for key, array in seen.items()}, alone)
    action = one.unwrapped.sample_valid(np.random.default_rng(0))
    seen, rewards, *_ = vector.step(np.array([action, [len(alone["xfer_mask"]) - 1, 0]]))
    alone, reward, *_ = one.step(action)
    assert same({key: array[0] for key, array in seen.items()}, alone) and rewards[0] == reward
    vector.close()


@pytest.mark.parametrize("env_id", NAMED)
def test_its_spec_is_json(env_id):
    spec = gym.spec(env_id)
    assert EnvSpec.from_json(spec.to_json()).kwargs == spec.kwargs == json.loads(json.dumps(spec.kwargs))


def test_bert_takes_a_mebibyte_and_a_quarter_with_counts():
    assert size_bytes(make("TasoGraph-BERT-v0").observation_space) <= 2**20
    assert size_bytes(make("TasoGraph-BERT-v0", location_counts=True).observation_space) <= 2**18


def test_ids_are_made_by_network_file_or_graph(tmp_path):
    assert taso_gym.make("SqueezeNet1.1", max_matches=8).spec.id == "TasoGraph-SqueezeNet1.1-v0"
    builder = GraphBuilder({"": 20})
    x = builder.input("x", TensorType("float", (2, 3)))
    builder.output("y", builder.add("Relu", builder.add("Relu", x)))
    taso_gym.save(builder.build(), tmp_path / "tiny.onnx")
    env = taso_gym.make(str(tmp_path / "tiny.onnx"))
    assert env.spec.id == "TasoGraph-v0" and env.reset()[0]["node_mask"].sum() == 3
    assert taso_gym.make(tiny_graph()).spec.id == "TasoGraph-v0"
    with pytest.raises(OptionError, match=r"expected no model_kwargs for the file .*tiny.onnx, found batch"):
        taso_gym.make(str(tmp_path / "tiny.onnx"), model_kwargs={"batch": 2})


@pytest.mark.parametrize("model", [[1], 5, None])
def test_what_is_no_model_is_named(model):
    with pytest.raises(OptionError, match=r"expected a name, path or Graph as model, found"):
        taso_gym.make(model)


def test_public_names_are_there():
    code = "import taso_gym; print([n for n in taso_gym.__all__ if getattr(taso_gym, n) is None])"
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("[]\n", "")
    assert set(taso_gym.__all__) <= set(dir(taso_gym))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = taso_gym.nothing


def test_importing_is_quick_and_loads_no_runtime():
    code = "import taso_gym, sys; print(*sorted({'torch', 'onnxruntime', 'cupy', 'matplotlib'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""
