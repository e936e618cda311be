"""Playing policies."""

from itertools import pairwise

import gymnasium as gym
import pytest
import torch

from taso_agents.environment.real_env import play, state_of
from taso_agents.policies.pointer import CandidatePolicy
from taso_agents.policies.policy_file import build_policy
from taso_agents.training.evaluate import evaluate, play_policy


@pytest.fixture(scope="module")
def policy(squeezenet: gym.Env) -> CandidatePolicy:
    torch.manual_seed(0)
    return build_policy("pointer", squeezenet.observation_space, squeezenet.action_space, {"hidden": 8, "rounds": 1})


def test_an_untrained_policy_that_sees_costs_is_greedy(squeezenet: gym.Env, policy: CandidatePolicy) -> None:
    episode = play_policy(policy, squeezenet)
    assert episode.improvement_percent > 1
    costs = [episode.start_ps]
    squeezenet.reset()
    for action in episode.actions[: episode.best_length]:
        squeezenet.step(action)
        costs.append(state_of(squeezenet).cost.time_ps)
    assert all(after <= before for before, after in pairwise(costs))


def test_the_best_graph_is_reached_after_its_length(squeezenet: gym.Env, policy: CandidatePolicy) -> None:
    episode = play_policy(policy, squeezenet, deterministic=False, seed=3)
    play(squeezenet, episode.actions[: episode.best_length])
    assert state_of(squeezenet).cost.time_ps == episode.best_ps <= min(episode.start_ps, episode.final_ps)


def test_seeds_fix_the_draws_and_leave_torch_s_stream_alone(squeezenet: gym.Env, policy: CandidatePolicy) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = play_policy(policy, squeezenet, deterministic=False, seed=1)
    assert play_policy(policy, squeezenet, deterministic=False, seed=1) == first
    assert play_policy(policy, squeezenet, deterministic=False, seed=2) != first
    assert torch.equal(torch.get_rng_state(), before)


def test_evaluation_counts_what_it_weighs(squeezenet: gym.Env, policy: CandidatePolicy) -> None:
    result = evaluate([policy, policy], squeezenet, episodes=2)
    episode = play_policy(policy, squeezenet)
    assert result.weighed[0] == episode.weighed > episode.steps
    assert result.deterministic.value == pytest.approx(episode.improvement_percent)
    assert result.best_of.value >= result.sampled.value
