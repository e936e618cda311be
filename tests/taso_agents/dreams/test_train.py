"""Dream training from end to end, and its file as an environment."""

from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from agent_batches import collected

import taso_agents
from taso_agents.data.collect import random_actor
from taso_agents.data.episodes import Dataset
from taso_agents.dreams.run import DreamRun, Round
from taso_agents.dreams.settings import DreamTrainSettings
from taso_agents.dreams.train import DreamResult, build_model, judge, train_in_dream
from taso_agents.environment.real_env import make_env, state_of
from taso_agents.world_models.fit import FitSettings, fit
from taso_agents.world_models.graph.model import GraphSettings
from taso_agents.world_models.mdn_rnn import WorldModelSettings
from taso_agents.world_models.token_model import TokenSettings
from taso_gym.env.game import GraphGame
from taso_gym.errors import CheckpointError, OptionError

SQUEEZENET = "TasoGraph-SqueezeNet1.1-v0"
SMALL = DreamTrainSettings(
    rounds=2,
    steps=60,
    dream_steps=512,
    dreams=4,
    episodes=1,
    minibatch=64,
    epochs=1,
    model=WorldModelSettings(latent=8, hidden=32, mixtures=2, embedding=8, encoder=8, rounds=1),
    fit=FitSettings(encoder_epochs=2, epochs=1),
)

gym.register_envs(taso_agents)


@pytest.fixture(scope="module")
def result() -> DreamResult:
    return train_in_dream(SQUEEZENET, SMALL, max_steps=10)


@pytest.fixture(scope="module")
def world_model(result: DreamResult, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("world") / "model.pt"
    result.save(path)
    return str(path)


def test_rounds_count_every_real_step(result: DreamResult) -> None:
    assert [r.real_steps >= 60 * (i + 1) for i, r in enumerate(result.rounds)] == [True, True]
    assert result.rounds[-1].real_steps == result.dataset.steps
    assert [number for number, *_ in result.run.returns] == [0, 0, 1, 1]
    assert result.rounds[-1].best == result.best.improvement_percent


def test_the_best_state_is_the_cheapest_of_all_real_episodes(result: DreamResult) -> None:
    """Those that were gathered, too, here by noisy greed."""
    env, costs = make_env(SQUEEZENET, **result.taso["arguments"]), list[int]()
    for episode in result.dataset.episodes:
        env.reset()
        for action in episode.actions:
            env.step(np.array(action))
            costs.append(state_of(env).cost.time_ps)
    assert result.best_state().cost.time_ps == min(costs) < result.best.best_ps


def test_the_best_state_is_the_controller_s_where_changes_say_less(result: DreamResult) -> None:
    none = replace(result, dataset=Dataset(result.dataset.store))
    assert none.best_state().cost.time_ps == result.best.best_ps


class KilledError(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize("settings", [SMALL, replace(SMALL, model=GraphSettings())], ids=["mdn", "graph"])
def test_a_killed_run_goes_on_to_the_same_result(settings: DreamTrainSettings, tmp_path: Path) -> None:
    """Killed after the first round, as at any time in the second: the file is written between rounds."""
    result = train_in_dream(SQUEEZENET, settings, max_steps=10)

    def die(_round: Round) -> None:
        raise KilledError

    with pytest.raises(KilledError):
        train_in_dream(SQUEEZENET, settings, run_file=tmp_path / "run.pt", on_round=die, max_steps=10)
    rounds: list[Round] = []
    again = train_in_dream(SQUEEZENET, settings, run_file=tmp_path / "run.pt", on_round=rounds.append, max_steps=10)
    assert rounds == result.rounds[1:] and again.rounds == result.rounds
    assert again.run.fits == result.run.fits and again.best == result.best
    for found, expected in ((again.policy, result.policy), (again.model, result.model)):
        pairs = zip(found.state_dict().values(), expected.state_dict().values(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)


def test_a_file_of_another_run_is_refused(tmp_path: Path) -> None:
    one = replace(SMALL, rounds=1)
    train_in_dream(SQUEEZENET, one, run_file=tmp_path / "run.pt", max_steps=10)
    with pytest.raises(CheckpointError, match="expected a run with settings"):
        train_in_dream(SQUEEZENET, replace(one, seed=1), run_file=tmp_path / "run.pt", max_steps=10)


def test_judging_is_data_too(result: DreamResult) -> None:
    """Real steps of judging count, and its episodes are fitted to in the next round."""
    assert result.rounds[-1].real_steps > 2 * 60
    assert result.rounds[0].gap_5 >= 0 and result.rounds[0].gap_whole >= 0


@pytest.mark.parametrize("name", ["TasoDream-v0", "TasoDream-SqueezeNet1.1-v0"])
def test_its_file_is_an_environment(name: str, world_model: str, result: DreamResult) -> None:
    env = gym.make(name, world_model=world_model)
    observation, _ = env.reset(seed=0)
    action, _ = result.policy.predict(observation)
    assert not env.step(action)[4]["invalid_action"]


def test_its_file_is_a_batch_of_environments(world_model: str) -> None:
    dreams = gym.make_vec("TasoDream-v0", num_envs=3, world_model=world_model, branch=2)
    observation, _ = dreams.reset(seed=0)
    assert observation["latent"].shape == (3, 8)
    assert np.ptp(observation["latent"], axis=0).max() == 0  # all begin with the same graph


def test_a_world_model_of_another_network_is_refused(world_model: str) -> None:
    with pytest.raises(CheckpointError, match="expected a world model of TasoGraph-BERT-v0, found one of"):
        gym.make("TasoDream-BERT-v0", world_model=world_model)


def test_a_blind_run_is_the_same_whatever_other_candidates_save(monkeypatch: pytest.MonkeyPatch) -> None:
    """What wasn't taken has no cost change that could be asked for."""
    settings = replace(SMALL, rounds=1, see_costs=False, model=GraphSettings())
    result = train_in_dream(SQUEEZENET, settings, max_steps=10)
    monkeypatch.setattr(GraphGame, "view", lambda game, _name: np.full(game.layout.matches, np.nan, np.float32))
    again = train_in_dream(SQUEEZENET, settings, max_steps=10)
    assert not result.model.settings.see_costs and result.rounds[-1].real_steps >= settings.steps
    assert again.rounds == result.rounds
    assert [e.actions for e in again.dataset.episodes] == [e.actions for e in result.dataset.episodes]


class Stops:
    """A controller that has learned to stop at once."""

    def __init__(self, xfers: int) -> None:
        self.xfers, self.policy = xfers, self

    def predict(self, _observation: object, deterministic: bool = True) -> tuple[np.ndarray, None]:
        return np.array([self.xfers, 0]), None


def test_steps_of_judging_count_where_it_stops_at_once() -> None:
    env = make_env(SQUEEZENET, max_steps=8)
    env.reset()
    settings = replace(SMALL, episodes=4, model=GraphSettings())
    run = DreamRun(build_model(env, settings), collected(env, (random_actor(0.0), 8)))
    fit(run.model, run.dataset)
    run.returns = [(0, 1, 0.0)]
    judge(env, run, Stops(run.model.xfers), settings)
    assert run.rounds[-1].real_steps == run.dataset.steps == 8 + 5
    assert run.rounds[-1].drawn == 0 and np.isnan(run.rounds[-1].gap_whole)


@pytest.mark.parametrize("temperature", [float("nan"), float("inf"), -1.0])
def test_a_temperature_that_is_none_is_refused(temperature: float) -> None:
    with pytest.raises(OptionError, match=r"expected a (finite number as temperature|temperature of 0 or more), found"):
        replace(SMALL, temperature=temperature)


def test_tokens_need_cost_changes() -> None:
    settings = replace(SMALL, see_costs=False, model=TokenSettings())
    with pytest.raises(OptionError, match="can do without cost changes"):
        train_in_dream(SQUEEZENET, settings, max_steps=10)


@pytest.mark.parametrize(
    "name", ["rounds", "steps", "dream_steps", "dreams", "branch", "minibatch", "epochs", "rollout"]
)
def test_sizes_that_are_none_are_refused(name: str) -> None:
    with pytest.raises(OptionError, match=f"expected .*{name}.*, found 0"):
        replace(SMALL, **{name: 0})


def test_a_dream_of_no_temperature_is_refused(world_model: str) -> None:
    with pytest.raises(OptionError, match="expected a temperature of 0 or more, found -1"):
        gym.make("TasoDream-v0", world_model=world_model, temperature=-1)


def test_an_illegal_action_costs_what_it_does_for_real(result: DreamResult, tmp_path: Path) -> None:
    arguments = {**result.taso["arguments"], "invalid_penalty": -5.0}
    replace(result, taso={**result.taso, "arguments": arguments}).save(tmp_path / "model.pt")
    env = gym.make("TasoDream-v0", world_model=str(tmp_path / "model.pt"), disable_env_checker=True)
    env.reset(seed=0)
    _, reward, *_, info = env.step(np.array([0, 10_000]))
    assert reward == -5.0 and info["invalid_action"]
