"""Dreams: the same spaces as the real environment seen through the world model, and nothing of the real one inside."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from agent_batches import collected
from gymnasium.utils.env_checker import check_env
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO

from taso_agents.data.collect import collect, empty_dataset, greedy_actor
from taso_agents.data.episodes import Dataset
from taso_agents.dreams.actors import controller_actor
from taso_agents.dreams.env import DreamEnv, DreamSettings, DreamVectorEnv
from taso_agents.dreams.latent import LatentObservation
from taso_agents.dreams.starts import Starts, starts_of
from taso_agents.environment.real_env import make_env
from taso_agents.policies.latent_policy import LatentPolicy
from taso_agents.world_models.fit import FitSettings, encode_all, fit
from taso_agents.world_models.mdn_rnn import WorldModel, WorldModelSettings
from taso_gym.errors import OptionError
from taso_gym.vector import to_sb3

SIZES = WorldModelSettings(latent=8, hidden=32, mixtures=3, embedding=16, encoder=16, rounds=1)
HORIZON = 10


@pytest.fixture(scope="module")
def real() -> gym.Env:
    return make_env("TasoGraph-SqueezeNet1.1-v0", max_steps=HORIZON)


@pytest.fixture(scope="module")
def dataset(real: gym.Env) -> Dataset:
    return collected(real, (greedy_actor(0.3), 100))


@pytest.fixture(scope="module")
def model(real: gym.Env, dataset: Dataset) -> WorldModel:
    torch.manual_seed(0)
    model = WorldModel(real.observation_space, real.action_space, SIZES)
    fit(model, dataset, FitSettings(encoder_epochs=4, epochs=2))
    return model


@pytest.fixture(scope="module")
def starts(model: WorldModel, dataset: Dataset) -> Starts:
    return starts_of(model, dataset, encode_all(model, dataset), anywhere=False)


@pytest.fixture
def dreams(model: WorldModel, starts: Starts) -> DreamVectorEnv:
    return DreamVectorEnv(model, starts, 4, DreamSettings(max_steps=HORIZON))


def legal_actions(observation: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Draw a legal action other than NO-OP for each dream."""
    counts = observation["location_counts"][:, :-1]
    xfers = [rng.choice(np.flatnonzero(row)) for row in counts]
    return np.array([[x, rng.integers(row[x])] for x, row in zip(xfers, counts, strict=True)])


def test_spaces_are_those_of_the_real_environment(real: gym.Env, model: WorldModel, starts: Starts) -> None:
    seen, dream = LatentObservation(real, model), DreamEnv(model, starts)
    assert seen.observation_space == dream.observation_space
    assert seen.action_space == dream.action_space
    assert seen.observation_space.contains(seen.reset()[0])


def test_a_dream_begins_as_reality_does(real: gym.Env, model: WorldModel, starts: Starts) -> None:
    seen, _ = LatentObservation(real, model).reset()
    dream, _ = DreamEnv(model, starts).reset(seed=0)
    for key, array in dream.items():
        np.testing.assert_allclose(array, seen[key], atol=1e-5)


def test_memory_in_reality_is_that_of_the_starts(real: gym.Env, model: WorldModel, dataset: Dataset) -> None:
    """Following an episode step by step gives the memory that dreams from its middle begin with."""
    starts = starts_of(model, Dataset(dataset.store, dataset.episodes[:1]), encode_all(model, dataset), anywhere=True)
    env = LatentObservation(real, model)
    seen, _ = env.reset()
    for t, action in enumerate(dataset.episodes[0].actions[:5]):
        np.testing.assert_allclose(seen["hidden"], starts.hidden[t].numpy(), atol=1e-5)
        np.testing.assert_allclose(seen["latent"], starts.latent[t].numpy(), atol=1e-5)
        seen, *_ = env.step(np.array(action))


def test_one_dream_passes_gymnasium_s_check(model: WorldModel, starts: Starts) -> None:
    check_env(DreamEnv(model, starts, DreamSettings(max_steps=HORIZON)), skip_render_check=True)


def test_observations_stay_in_the_space(dreams: DreamVectorEnv) -> None:
    rng = np.random.default_rng(0)
    observation, _ = dreams.reset(seed=0)
    for _ in range(2 * HORIZON):
        assert dreams.observation_space.contains(observation)
        observation, *_ = dreams.step(legal_actions(observation, rng))


def rewards_of(dreams: DreamVectorEnv, seed: object) -> list[float]:
    """Play legal actions, the same ones in equal dreams."""
    rng = np.random.default_rng(0)
    observation, _ = dreams.reset(seed=seed)  # pyright: ignore[reportArgumentType]
    rewards: list[float] = []
    for _ in range(HORIZON + 3):
        observation, reward, *_ = dreams.step(legal_actions(observation, rng))
        rewards += reward.tolist()
    return rewards


def test_same_seed_same_dream(dreams: DreamVectorEnv) -> None:
    assert rewards_of(dreams, 7) == rewards_of(dreams, 7)


def test_seeds_of_dreams_are_those_of_a_vector(dreams: DreamVectorEnv) -> None:
    assert rewards_of(dreams, 3) == rewards_of(dreams, np.int64(3)) == rewards_of(dreams, (3, 4, 5, 6))
    assert rewards_of(dreams, [1, 2, 3, 99]) == rewards_of(dreams, [1, 2, 3, 99]) != rewards_of(dreams, [1, 2, 3, 98])
    for wrong in ([1], [1, 2, 3, None], [1, 2, 3, "x"], -1):
        with pytest.raises(OptionError, match="seed"):
            dreams.reset(seed=wrong)  # pyright: ignore[reportArgumentType]


def test_what_a_vector_is_asked_for_is_one_of_all_dreams(dreams: DreamVectorEnv) -> None:
    assert dreams.get_attr("settings") == dreams.call("settings") == (dreams.settings,) * 4
    assert dreams.get_attr("model") == (dreams.model,) * 4  # which could be called
    assert to_sb3(dreams).env_method("get_attr", "num_envs") == [(4,) * 4] * 4


def test_noop_ends_a_dream_without_reward(dreams: DreamVectorEnv) -> None:
    dreams.reset(seed=0)
    noop = np.array([[dreams.model.xfers, 0]] * 4)
    _, reward, terminated, truncated, info = dreams.step(noop)
    assert terminated.all() and not truncated.any() and not reward.any() and not info["invalid_action"].any()


@pytest.mark.parametrize("action", [(0, 199), (-1, 0), (10_000, 0), (5, -3)])
def test_an_illegal_action_changes_nothing(dreams: DreamVectorEnv, action: tuple[int, int]) -> None:
    before, _ = dreams.reset(seed=0)
    after, reward, terminated, _, info = dreams.step(np.array([action] * 4))
    assert info["invalid_action"].all() and not terminated.any()
    assert reward.tolist() == [-1.0] * 4
    for key, array in after.items():
        np.testing.assert_array_equal(array, before[key])


def test_what_the_mask_does_not_show_is_illegal(dreams: DreamVectorEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    """A world model may show fewer locations than it counts."""
    monkeypatch.setattr(type(dreams.model), "shown", lambda _, counts: counts.clamp(max=1))
    before, _ = dreams.reset(seed=0)
    many = (dreams._now.counts > 1).long().argmax(1).numpy()
    assert (before["location_counts"][np.arange(4), many] == 1).all()
    *_, info = dreams.step(np.stack([many, np.ones(4, np.int64)], 1))
    assert info["invalid_action"].all()


def test_a_dream_has_no_options(dreams: DreamVectorEnv, model: WorldModel, starts: Starts) -> None:
    for env in (dreams, DreamEnv(model, starts)):
        with pytest.raises(OptionError, match="expected no options for a dream, found 'model'"):
            env.reset(options={"model": "BERT"})


def test_dreams_end_at_the_limit_or_the_branch(model: WorldModel, dataset: Dataset) -> None:
    anywhere = starts_of(model, dataset, encode_all(model, dataset), anywhere=True)
    assert len(anywhere.step) > len(dataset.episodes)
    dreams = DreamVectorEnv(model, anywhere, 16, DreamSettings(max_steps=HORIZON, branch=3))
    rng = np.random.default_rng(0)
    observation, _ = dreams.reset(seed=0)
    for age in range(1, 4):
        limits = dreams._now.step + age
        observation, _, terminated, truncated, _ = dreams.step(legal_actions(observation, rng))
        expected = ((limits >= HORIZON).numpy() | (age == 3)) & ~terminated
        assert (truncated == expected).all() or age > 1  # later some dreams have begun anew
    assert (terminated | truncated).any()


def test_it_never_touches_the_real_environment(
    dreams: DreamVectorEnv, monkeypatch: pytest.MonkeyPatch, real: gym.Env
) -> None:
    from taso_gym.env.game import GraphGame
    from taso_gym.rules.state import RewriteState

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("the dream stepped the real environment")

    for owner, name in ((GraphGame, "step"), (GraphGame, "play"), (GraphGame, "observe"), (RewriteState, "apply")):
        monkeypatch.setattr(owner, name, refuse)
    rng = np.random.default_rng(0)
    observation, _ = dreams.reset(seed=0)
    for _ in range(HORIZON):
        observation, *_ = dreams.step(legal_actions(observation, rng))
    with pytest.raises(AssertionError, match="real environment"):
        real.unwrapped.step(np.array([0, 0]))


@pytest.mark.parametrize("algorithm", [PPO, MaskablePPO])
def test_one_policy_plays_both(algorithm: type, dreams: DreamVectorEnv, real: gym.Env, model: WorldModel) -> None:
    venv = to_sb3(dreams)
    trained = algorithm(LatentPolicy, venv, n_steps=16, batch_size=32, n_epochs=1, seed=0)
    trained.learn(64, **({"use_masking": False} if algorithm is MaskablePPO else {}))
    env = LatentObservation(real, model)
    observation, _ = env.reset()
    ended = False
    while not ended:
        action, _ = trained.predict(observation)
        observation, _, terminated, truncated, info = env.step(action)
        assert not info["invalid_action"]
        ended = terminated or truncated


def test_a_controller_collects_legal_episodes(dreams: DreamVectorEnv, real: gym.Env, model: WorldModel) -> None:
    policy = PPO(LatentPolicy, to_sb3(dreams), n_steps=16, batch_size=32, seed=0).policy
    found = empty_dataset(real)
    collect(real, controller_actor(policy, model), 25, np.random.default_rng(0), found)
    assert found.steps >= 25
