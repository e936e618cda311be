"""A policy as a search."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch

from taso_agents import checkpoint
from taso_agents.environment.real_env import sizes_of, state_of
from taso_agents.policies.policy_file import build_policy, load_policy, save_policy
from taso_agents.policies.policy_search import PolicySearch
from taso_agents.training.evaluate import play_policy
from taso_gym.errors import CheckpointError
from taso_gym.search import Budget, run


@pytest.fixture(scope="module")
def policy_file(tmp_path_factory: pytest.TempPathFactory, squeezenet: gym.Env) -> Path:
    torch.manual_seed(0)
    squeezenet.reset()
    spaces = squeezenet.observation_space, squeezenet.action_space
    policy = build_policy("pointer", *spaces, {"hidden": 8, "rounds": 1})
    path = tmp_path_factory.mktemp("policies") / "policy.pt"
    taso = {"rules": state_of(squeezenet).rules.digest, "sizes": {**sizes_of(squeezenet), "max_steps": 40}}
    save_policy(path, policy, taso)
    return path


def test_it_is_found_by_name(squeezenet: gym.Env, policy_file: Path) -> None:
    squeezenet.reset()
    found = run(state_of(squeezenet), f"policy:{policy_file}", Budget(steps=100_000), episodes=3)
    assert found.exhausted and found.state.cost.time_ps < state_of(squeezenet).cost.time_ps
    assert len(found.path) <= 40


def test_it_may_weigh_as_many_candidates_as_greedy_for_the_same(squeezenet: gym.Env, policy_file: Path) -> None:
    """Untrained it takes the best candidate each time, as greedy search does."""
    squeezenet.reset()
    greedy = run(state_of(squeezenet), "greedy")
    found = run(state_of(squeezenet), f"policy:{policy_file}", Budget(steps=greedy.explored))
    assert found.state.cost.time_ps == pytest.approx(greedy.state.cost.time_ps, rel=0.01)


def test_it_plays_as_in_the_environment(squeezenet: gym.Env, policy_file: Path) -> None:
    """It is shown the same, rows in use of those there are included, and so takes the same actions."""
    squeezenet.reset()
    start = state_of(squeezenet)
    policy = load_policy(policy_file, squeezenet.observation_space, squeezenet.action_space, start.rules.digest)
    search = PolicySearch(start, np.random.default_rng(0), str(policy_file))
    observation, _ = squeezenet.reset()
    shown = search.observer(start).observe(0.0)
    assert set(shown) == set(observation)
    for key, found in shown.items():
        np.testing.assert_array_equal(found, observation[key])
    episode = play_policy(policy, squeezenet)
    found = run(start, f"policy:{policy_file}", Budget(steps=100_000), episodes=1)
    assert found.state.cost.time_ps == episode.best_ps


def test_interrupted_and_resumed_is_the_same(tmp_path: Path, squeezenet: gym.Env, policy_file: Path) -> None:
    squeezenet.reset()
    start, name = state_of(squeezenet), f"policy:{policy_file}"
    whole = run(start, name, Budget(steps=4000), seed=1, episodes=4)
    run(start, name, Budget(steps=2500), seed=1, episodes=4, checkpoint=tmp_path / "search.json")
    resumed = run(start, name, Budget(steps=4000), seed=1, episodes=4, checkpoint=tmp_path / "search.json")
    assert (resumed.path, resumed.explored) == (whole.path, whole.explored)


def test_another_rule_set_is_refused(tmp_path: Path, squeezenet: gym.Env, policy_file: Path) -> None:
    squeezenet.reset()
    data = checkpoint.load(policy_file, "policy")
    other = {**data["taso"], "rules": "another"}
    checkpoint.save(tmp_path / "p.pt", **{**{k: v for k, v in data.items() if k != "format"}, "taso": other})
    with pytest.raises(CheckpointError, match="found one for another"):
        run(state_of(squeezenet), f"policy:{tmp_path / 'p.pt'}")
