"""Vectors: ours, Gymnasium's, and Stable-Baselines3's."""

import gymnasium as gym
import numpy as np
import pytest
from games import rule_set, same, tiny_env, tiny_graph
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from taso_gym.env import TasoGraphEnv
from taso_gym.errors import OptionError
from taso_gym.vector import TasoGraphVectorEnv, to_sb3

ARGUMENTS = {"model": tiny_graph(), "rules": rule_set(), "max_locations": 20, "max_matches": 64, "max_steps": 12}
MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]


def actions(envs, rng):
    """A legal action for each."""
    return np.stack([env.unwrapped.sample_valid(rng, noop=True) for env in envs])


def unstacked(infos):
    """Infos without object arrays, which compare badly."""
    plain = {k: v for k, v in infos.items() if k not in ("final_obs", "final_info") and not k.startswith("_")}
    return {k: np.array(v.tolist()) for k, v in plain.items()}


@pytest.mark.parametrize("mode", MODES)
def test_it_plays_as_gymnasiums_vector_does(mode):
    ours = TasoGraphVectorEnv(3, autoreset_mode=mode, **ARGUMENTS)
    theirs = SyncVectorEnv([lambda: tiny_env(**ARGUMENTS)] * 3, autoreset_mode=mode)
    assert ours.observation_space == theirs.observation_space and ours.action_space == theirs.action_space
    first, second = ours.reset(seed=4), theirs.reset(seed=4)
    assert same(first[0], second[0]) and same(unstacked(first[1]), unstacked(second[1]))
    assert ours.np_random_seed == theirs.np_random_seed == (4, 5, 6)
    assert [stream.random() for stream in ours.np_random] == [stream.random() for stream in theirs.np_random]
    rng = np.random.default_rng(0)
    for _ in range(50):
        moves = actions(ours.envs, rng)
        first, second = ours.step(moves), theirs.step(moves)
        assert same(first[:4], second[:4]) and same(unstacked(first[4]), unstacked(second[4]))
        assert ("final_obs" in first[4]) == ("final_obs" in second[4])
        for i in np.flatnonzero(first[4].get("_final_obs", np.zeros(3, bool))):
            assert same(first[4]["final_obs"][i], second[4]["final_obs"][i])


def test_arrays_are_fresh_and_in_the_space():
    env = TasoGraphVectorEnv(2, **ARGUMENTS)
    first, _ = env.reset(seed=0)
    second = env.step(actions(env.envs, np.random.default_rng(0)))[0]
    assert first in env.observation_space and second in env.observation_space
    assert not any(np.shares_memory(first[key], second[key]) for key in first)


@pytest.mark.parametrize("how", ["sync", "async", "vector_entry_point"])
def test_gymnasium_makes_it(how):
    env = gym.make_vec("TasoGraph-SqueezeNet1.1-v0", 2, vectorization_mode=how, max_matches=64)
    observation, _ = env.reset(seed=0)
    matches = observation["matches"][:, 0, :2]
    _, _, _, _, infos = env.step(matches)
    assert not infos["invalid_action"].any() and infos["rules_digest"].shape[0] == 2
    masks = env.call("action_masks")
    assert len(masks) == 2 and masks[0].sum() > 0
    env.close()


def test_max_episode_steps_is_max_steps():
    env = TasoGraphVectorEnv(2, max_episode_steps=1, model=tiny_graph(), rules=rule_set())
    env.reset()
    assert env.step(np.array([[0, 0], [0, 0]]))[3].tolist() == [True, True]


def test_each_has_a_random_stream_of_its_own():
    env = TasoGraphVectorEnv(8, models=[tiny_graph(), tiny_graph(blocks=1)], rules=rule_set())
    models = env.reset(seed=0)[1]["model"]
    assert set(models) == {0, 1} and same(models, env.reset(seed=0)[1]["model"])


def test_attributes_of_each():
    env = TasoGraphVectorEnv(2, **ARGUMENTS)
    env.reset()
    env.set_attr("invalid_penalty", [-2.0, -3.0])
    assert env.get_attr("invalid_penalty") == (-2.0, -3.0)
    assert env.step(np.array([[-1, 0], [-1, 0]]))[1].tolist() == [-2, -3]
    assert env.action_masks().shape == (2, env.envs[0].layout.xfers + 1 + 20)


def test_too_few_values_seeds_or_actions_change_nothing():
    env = TasoGraphVectorEnv(2, **ARGUMENTS)
    env.reset()
    with pytest.raises(OptionError, match="expected 2 values of max_steps, one for each environment, found 1"):
        env.set_attr("max_steps", [5])
    with pytest.raises(OptionError, match="expected 2 seeds, one for each environment, found 1"):
        env.reset(seed=[5])
    with pytest.raises(OptionError, match=r"expected 2 seeds, one for each environment, found 1\.5"):
        env.reset(seed=1.5)
    with pytest.raises(OptionError, match="expected 2 actions, one for each environment, found 3"):
        env.step(np.zeros((3, 2), np.int64))
    with pytest.raises(OptionError, match="expected 2 actions, one for each environment, found None"):
        env.step(None)
    with pytest.raises(OptionError, match=r"expected 2 actions, one for each environment, found array\(3\)"):
        env.step(np.array(3))
    assert env.get_attr("max_steps") == (12, 12)


@pytest.mark.parametrize("seed", [np.int64(3), np.array([3, 4])], ids=["one", "each"])
def test_numpy_integers_are_seeds(seed):
    envs = [TasoGraphVectorEnv(2, models=[tiny_graph(), tiny_graph(blocks=1)], rules=rule_set()) for _ in range(2)]
    assert same(envs[0].reset(seed=seed), envs[1].reset(seed=[3, 4]))


WRONG = [{"autoreset_mode": "Disabled"}, {"autoreset_mode": []}, {"num_envs": 0}, {"num_envs": 1.5}]


@pytest.mark.parametrize("arguments", WRONG)
def test_a_wrong_argument_is_named(arguments):
    with pytest.raises(
        OptionError, match=r"expected (autoreset_mode among NextStep, SameStep|num_envs to be a whole number)"
    ):
        TasoGraphVectorEnv(**arguments, **ARGUMENTS)


def test_two_limits_of_steps_are_refused():
    with pytest.raises(OptionError, match="expected max_steps or max_episode_steps, found both: 7, 5"):
        TasoGraphVectorEnv(2, max_episode_steps=5, **{**ARGUMENTS, "max_steps": 7})
    with_id = gym.make_vec("TasoGraph-v0", 2, max_episode_steps=5, model=tiny_graph(), rules=rule_set())
    assert with_id.get_attr("max_steps") == (5, 5)


@pytest.mark.parametrize(
    "how", [TasoGraphVectorEnv, lambda n, **kwargs: SyncVectorEnv([lambda: tiny_env(**kwargs)] * n)]
)
def test_illegal_moves_are_told_as_an_array_of_truth_values(how):
    env = how(2, **ARGUMENTS)
    assert env.reset()[1]["invalid_action"].dtype == np.bool_
    told = env.step(np.array([[-1, 0], [0, 0]]))[4]["invalid_action"]
    assert told.dtype == np.bool_ and told.tolist() == [True, False]


@pytest.fixture
def sb3_env():
    pytest.importorskip("stable_baselines3")
    return to_sb3(TasoGraphVectorEnv(3, autoreset_mode="SameStep", **ARGUMENTS))


def test_sb3_gets_the_last_observation_of_an_episode(sb3_env):
    sb3_env.seed(0)
    sb3_env.reset()
    envs, rng = sb3_env.env.envs, np.random.default_rng(0)
    ended = 0
    for _ in range(30):
        observation, rewards, done, infos = sb3_env.step(actions(envs, rng))
        assert observation["nodes"].shape[0] == 3 and rewards.dtype == np.float32 and len(infos) == 3
        for i in np.flatnonzero(done):
            ended += 1
            assert infos[i]["terminal_observation"] in sb3_env.observation_space
            assert infos[i]["step"] > 0 and isinstance(infos[i]["TimeLimit.truncated"], bool)
            assert envs[i].path == ()
        assert all("terminal_observation" not in infos[i] for i in np.flatnonzero(~done))
    assert ended


def test_sb3_refuses_options_that_differ(sb3_env):
    sb3_env.set_options([{"model": "a"}, {"model": "b"}, {"model": "a"}])
    with pytest.raises(OptionError, match="expected the same options for all environments, found different ones"):
        sb3_env.reset()


def test_sb3_calls_methods_of_some(sb3_env):
    sb3_env.reset()
    assert len(sb3_env.env_method("action_masks")) == 3 and len(sb3_env.env_method("action_masks", indices=[1])) == 1
    sb3_env.set_attr("invalid_penalty", -5.0, indices=[2])
    assert sb3_env.get_attr("invalid_penalty") == [-1.0, -1.0, -5.0]
    assert sb3_env.env_is_wrapped(gym.Wrapper) == [False] * 3


def test_sb3_sets_attributes_that_there_were_none_of(sb3_env):
    sb3_env.set_attr("colour", "red")
    sb3_env.set_attr("colour", "blue", indices=1)
    assert sb3_env.get_attr("colour") == ["red", "blue", "red"]


def test_sb3_reaches_environments_of_other_processes_together_or_not_at_all():
    pytest.importorskip("stable_baselines3")
    makers = [lambda: TasoGraphEnv(**ARGUMENTS)] * 2
    venv = to_sb3(gym.vector.AsyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP, context="fork"))
    venv.reset()
    expected = r"expected all 2 environments of other processes, found indices \[0\]"
    with pytest.raises(OptionError, match=expected):
        venv.env_method("play", (0, 0), indices=[0])
    with pytest.raises(OptionError, match=expected):
        venv.set_attr("colour", "red", indices=0)
    venv.set_attr("colour", "red")
    assert venv.get_attr("colour") == ["red", "red"]
    played = venv.env_method("play", (0, 0), indices=[1, 0])
    assert [int(info["step"]) for *_, info in played] == [1, 1]
    venv.close()


def test_sb3_is_told_which_are_wrapped():
    pytest.importorskip("stable_baselines3")

    def tiny():
        return TasoGraphEnv(**ARGUMENTS)

    makers = [
        lambda: gym.wrappers.RecordEpisodeStatistics(TasoGraphEnv(**ARGUMENTS)),
        lambda: TasoGraphEnv(**ARGUMENTS),
    ]
    venv = to_sb3(gym.vector.SyncVectorEnv(makers, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP))
    assert venv.env_is_wrapped(gym.wrappers.RecordEpisodeStatistics) == [True, False]
    assert venv.env_is_wrapped(gym.wrappers.RecordEpisodeStatistics, indices=1) == [False]
    assert venv.env_is_wrapped(gym.wrappers.TimeLimit) == [False, False]


def test_sb3_learns(sb3_env):
    ppo = pytest.importorskip("sb3_contrib").MaskablePPO
    model = ppo(
        "MultiInputPolicy", sb3_env, n_steps=8, batch_size=12, n_epochs=1, policy_kwargs={"net_arch": [4]}, seed=0
    )
    assert model.learn(24).num_timesteps == 24


def test_sb3_needs_same_step():
    with pytest.raises(OptionError, match="SameStep"):
        to_sb3(TasoGraphVectorEnv(1, **ARGUMENTS))


@pytest.mark.parametrize("of_the_vector", [False, True])
def test_sb3_is_told_of_episodes_that_wrappers_record(of_the_vector):
    pytest.importorskip("stable_baselines3")

    def made():
        env = TasoGraphEnv(**ARGUMENTS)
        return env if of_the_vector else gym.wrappers.RecordEpisodeStatistics(env)

    vector = gym.vector.SyncVectorEnv([made] * 2, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP)
    venv = to_sb3(gym.wrappers.vector.RecordEpisodeStatistics(vector) if of_the_vector else vector)
    venv.reset()
    rng, told = np.random.default_rng(0), []
    for _ in range(20):
        _, _, done, infos = venv.step(actions([e.unwrapped for e in vector.envs], rng))
        assert all(("episode" in info) == ended for info, ended in zip(infos, done, strict=True))
        told += [float(info["episode"]["l"]) for info in infos if "episode" in info]
    assert told and min(told) >= 1
