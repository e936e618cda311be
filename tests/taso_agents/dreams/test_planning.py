"""Plans over true and dreamt branches."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from agent_batches import collected
from games import tiny_env

from taso_agents.data.collect import play_record, random_actor
from taso_agents.data.episodes import Dataset
from taso_agents.dreams.planning import (
    BeamSettings,
    LearnedSimulator,
    Outcome,
    Planner,
    TrueSimulator,
    dreaming_planner,
    plan,
    true_planner,
)
from taso_agents.environment.real_env import make_env, state_of
from taso_agents.world_models.discrete import DiscreteSettings, DiscreteWorldModel
from taso_agents.world_models.fit import FitSettings, fit

NARROW = BeamSettings(width=2, breadth=8, depth=3, commit=2)


class Numbers:
    """A game for the planner: from n to 2n (location 0) or n + 1 (location 1), rewarded by how the table says."""

    def __init__(self, rewards: dict[int, float], left: float = np.inf) -> None:
        self.rewards, self.left, self.asked = rewards, left, 0

    def actions(self, _state: int) -> list[tuple[int, int]]:
        return [(0, 0), (0, 1)]

    def step(self, states: list[int], actions: list[tuple[int, int]]) -> list[Outcome]:
        self.asked += len(states)
        self.left -= len(states)
        after = [2 * n if location == 0 else n + 1 for n, (_, location) in zip(states, actions, strict=True)]
        return [Outcome(n, self.rewards.get(n, 0.0), n) for n in after]


@pytest.fixture(scope="module")
def env() -> gym.Env:
    env = make_env("TasoGraph-SqueezeNet1.1-v0", max_steps=10)
    env.reset()
    return env


@pytest.fixture(scope="module")
def dataset(env: gym.Env) -> Dataset:
    return collected(env, (random_actor(0.0), 40))


@pytest.fixture(scope="module")
def model(env: gym.Env, dataset: Dataset) -> DiscreteWorldModel:
    torch.manual_seed(0)
    settings = DiscreteSettings(groups=4, classes=4, hidden=32, embedding=8, encoder=8, rounds=1)
    model = DiscreteWorldModel(env.observation_space, env.action_space, settings)
    fit(model, dataset, FitSettings(encoder_epochs=2, epochs=1, encoder_batch=16))
    return model


def test_the_best_branch_is_found_behind_a_loss() -> None:
    """3 → 4 costs 1, 4 → 8 gains 5; 3 → 6 gains 1 at once."""
    simulator = Numbers({4: -1.0, 8: 5.0, 6: 1.0})
    found = plan(simulator, 3, BeamSettings(width=2, depth=2), np.random.default_rng(0))
    assert found == ([(0, 1), (0, 0)], 4.0)


def test_a_beam_of_one_is_greedy() -> None:
    simulator = Numbers({4: -1.0, 8: 5.0, 6: 1.0})
    assert plan(simulator, 3, BeamSettings(width=1, depth=2), np.random.default_rng(0)).gain == 1.0


def test_equal_states_are_gone_on_from_once() -> None:
    """From 1 both actions lead to 2."""
    simulator = Numbers({})
    plan(simulator, 1, BeamSettings(width=4, depth=2), np.random.default_rng(0))
    assert simulator.asked == 4


def test_no_more_steps_are_asked_for_than_are_left() -> None:
    simulator = Numbers({2: 1.0}, left=3)
    plan(simulator, 1, BeamSettings(width=4, depth=5), np.random.default_rng(0))
    assert simulator.asked == 3 and simulator.left == 0


def test_where_nothing_saves_there_is_no_plan() -> None:
    simulator = Numbers(dict.fromkeys(range(100), -1.0))
    assert plan(simulator, 1, BeamSettings(depth=3), np.random.default_rng(0)) == ([], 0.0)


def test_the_true_simulator_says_what_the_environment_does(env: gym.Env) -> None:
    env.reset()
    state, seen = state_of(env), []
    simulator = TrueSimulator(state.cost.time_ps, 5, seen.append)
    action = simulator.actions(state)[3]
    (outcome,) = simulator.step([state], [action])
    _, reward, *_ = env.step(np.array(action))
    assert outcome.reward == pytest.approx(reward, abs=1e-4) and outcome.key == state_of(env).hash
    assert seen == [outcome.state] and simulator.left == 4


@pytest.mark.parametrize("most", [5, 7])
def test_no_action_beyond_the_candidates_of_an_environment_is_true(most: int) -> None:
    env = tiny_env(max_matches=most)
    observation, _ = env.reset()
    actions = TrueSimulator(1, most=most).actions(env.state)
    xfers, locations = np.nonzero(observation["location_masks"][:-1])
    assert len(actions) == most and actions == list(zip(xfers.tolist(), locations.tolist(), strict=True))


def test_a_true_beam_of_one_with_all_actions_is_steepest_descent(env: gym.Env) -> None:
    env.reset()
    start = state = state_of(env)
    for _ in range(3):
        state = state.apply(min((m for found in state.matches for m in found), key=lambda m: state.delta(m).time_ps))
    found = plan(TrueSimulator(start.cost.time_ps), start, BeamSettings(1, 10_000, 3), np.random.default_rng(0))
    assert found.gain == pytest.approx(100 * (start.cost.time_ps - state.cost.time_ps) / start.cost.time_ps)


def test_a_batch_is_dreamt_as_its_members(env: gym.Env, model: DiscreteWorldModel) -> None:
    simulator, planner = LearnedSimulator(model), Planner(LearnedSimulator(model), NARROW, model)
    observation, _ = env.reset()
    start = planner._present(env, observation, begins=True)
    actions = simulator.actions(start)[:5]
    together = simulator.step([start] * 5, actions)
    for action, outcome in zip(actions, together, strict=True):
        (alone,) = simulator.step([start], [action])
        assert alone.key == outcome.key and alone.reward == pytest.approx(outcome.reward, abs=1e-4)


def test_the_actions_of_a_real_state_are_the_real_ones(env: gym.Env, model: DiscreteWorldModel) -> None:
    observation, _ = env.reset()
    start = Planner(LearnedSimulator(model), NARROW, model)._present(env, observation, begins=True)
    assert LearnedSimulator(model).actions(start) == TrueSimulator(1).actions(state_of(env))


@pytest.mark.parametrize("learned", [False, True])
def test_same_seed_same_episode_and_no_illegal_action(
    env: gym.Env, model: DiscreteWorldModel, dataset: Dataset, learned: bool
) -> None:
    def play() -> Any:
        env.reset()
        exact = true_planner(TrueSimulator(state_of(env).cost.time_ps), NARROW)
        actor = dreaming_planner(model, NARROW) if learned else exact
        return play_record(env, actor, np.random.default_rng(3), dataset.store)  # asserts that all is legal

    first, again = play(), play()
    assert first.actions == again.actions and 1 <= len(first.actions) <= 10
    assert learned or sum(first.rewards) > 0


def test_a_plan_looks_no_further_than_the_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a rewrite that pays by the next one only is the last one."""
    env, asked = make_env("TasoGraph-SqueezeNet1.1-v0", max_steps=4), list[int]()

    def noted(simulator: Any, state: Any, settings: BeamSettings, rng: np.random.Generator) -> Any:
        asked.append(settings.depth)
        return plan(simulator, state, settings, rng)

    monkeypatch.setattr("taso_agents.dreams.planning.plan", noted)
    observation, _ = env.reset()
    actor = true_planner(TrueSimulator(state_of(env).cost.time_ps), NARROW._replace(commit=1))
    over = False
    while not over:
        observation, _, terminated, truncated, _ = env.step(actor(env, observation, np.random.default_rng(0)))
        over = terminated or truncated
    assert asked == [3, 3, 2, 1]


def test_dreaming_takes_no_true_step(env: gym.Env, model: DiscreteWorldModel, monkeypatch: pytest.MonkeyPatch) -> None:
    from taso_gym.rules.state import RewriteState

    observation, _ = env.reset()
    planner = dreaming_planner(model, NARROW)

    def refuse(*_args: object) -> None:
        raise AssertionError("a true step")

    monkeypatch.setattr(RewriteState, "apply", refuse)
    planner(env, observation, np.random.default_rng(0))
    with pytest.raises(AssertionError, match="a true step"):
        true_planner(TrueSimulator(1), NARROW)(env, observation, np.random.default_rng(0))
