"""What every kind of world model has to hold to."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from agent_batches import collected

from taso_agents.data.collect import greedy_actor, random_actor
from taso_agents.data.episodes import Dataset
from taso_agents.dreams.env import DreamEnv, DreamSettings, DreamVectorEnv
from taso_agents.dreams.gap import horizons, one_step
from taso_agents.dreams.imagined import imagine
from taso_agents.dreams.latent import LatentObservation
from taso_agents.dreams.settings import DreamTrainSettings
from taso_agents.dreams.starts import Starts, starts_of
from taso_agents.dreams.train import train_in_dream
from taso_agents.environment.real_env import describe, make_env
from taso_agents.world_models import WORLD_MODELS, kind_of, world_model
from taso_agents.world_models.discrete import DiscreteSettings
from taso_agents.world_models.fit import FitSettings, Fitted, Sequences, encode_all, fit, pad_episodes, step_losses
from taso_agents.world_models.graph.model import GraphSettings
from taso_agents.world_models.mdn_rnn import WorldModel, WorldModelSettings, load_world_model
from taso_agents.world_models.token_model import TokenSettings
from taso_gym.env.game import GraphGame
from taso_gym.errors import OptionError
from taso_gym.rules.state import RewriteState

SMALL = {
    "mdn": WorldModelSettings(latent=8, hidden=32, mixtures=2, embedding=8, encoder=8, rounds=1),
    "discrete": DiscreteSettings(groups=4, classes=4, hidden=32, embedding=8, encoder=8, rounds=1),
    "tokens": TokenSettings(tokens=96, width=8, transition=16, encoder=8, rounds=1),
    "graph": GraphSettings(tokens=96),
}
LOSSES = {"encoder": {"reward", "mask", "change", "decode", "stays", "new", "dreamt"}, "memory": {"latent"}}
"""Losses that have to fall in each phase, of those that a kind has."""
HORIZON = 8
SHORT = FitSettings(encoder_epochs=2, epochs=2, encoder_batch=16)


@pytest.fixture(scope="module")
def real() -> gym.Env:
    return make_env("TasoGraph-SqueezeNet1.1-v0", max_steps=HORIZON)


@pytest.fixture(scope="module")
def dataset(real: gym.Env) -> Dataset:
    return collected(real, (greedy_actor(0.3), 40), (random_actor(0.2), 20))


@pytest.fixture(scope="module", params=list(WORLD_MODELS))
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def fitted(real: gym.Env, dataset: Dataset, kind: str) -> tuple[WorldModel, list[Fitted]]:
    torch.manual_seed(0)
    model, epochs = world_model(kind)(real.observation_space, real.action_space, SMALL[kind]), []
    fit(model, dataset, SHORT, epochs.append)
    return model, epochs


@pytest.fixture(scope="module")
def model(real: gym.Env, dataset: Dataset, kind: str) -> WorldModel:
    return fitted(real, dataset, kind)[0]


@pytest.fixture(scope="module")
def recurrent(model: WorldModel) -> WorldModel:
    """Return a model with a memory."""
    if not model.has_memory:
        pytest.skip("its latent says everything")
    return model


@pytest.fixture(scope="module")
def starts(model: WorldModel, dataset: Dataset) -> Starts:
    return starts_of(model, dataset, encode_all(model, dataset), anywhere=True)


def losses_of(model: WorldModel, batch: Sequences, latent: torch.Tensor) -> dict[str, torch.Tensor]:
    prediction, *_ = model(latent[:, :-1], batch.counts[:, :-1], batch.xfer, batch.location)
    return step_losses(model, prediction, batch, latent[:, 1:])


def legal_actions(counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    xfers = [rng.choice(np.flatnonzero(row)) for row in counts]
    return np.array([[x, rng.integers(row[x])] for x, row in zip(xfers, counts, strict=True)])


def test_a_kind_is_found_by_its_settings(kind: str) -> None:
    assert kind_of(SMALL[kind]) is world_model(kind)
    assert world_model(kind).kind == kind


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(OptionError, match="expected a world model of mdn, discrete, tokens, graph, found 'vae'"):
        world_model("vae")


def test_dream_and_reality_have_the_same_spaces(real: gym.Env, model: WorldModel, starts: Starts) -> None:
    seen, dream = LatentObservation(real, model), DreamEnv(model, starts)
    assert seen.observation_space == dream.observation_space and seen.action_space == dream.action_space
    assert seen.observation_space.contains(seen.reset()[0])
    assert dream.observation_space.contains(dream.reset(seed=0)[0])


def test_same_seed_same_fit(real: gym.Env, dataset: Dataset, kind: str, model: WorldModel) -> None:
    again, _ = fitted(real, dataset, kind)
    pairs = zip(again.state_dict().values(), model.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_a_dream_never_touches_the_real_environment(
    model: WorldModel, starts: Starts, real: gym.Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("the dream stepped the real environment")

    for owner, name in ((GraphGame, "step"), (GraphGame, "play"), (GraphGame, "observe"), (RewriteState, "apply")):
        monkeypatch.setattr(owner, name, refuse)
    dreams, rng = DreamVectorEnv(model, starts, 3, DreamSettings(max_steps=HORIZON)), np.random.default_rng(0)
    observation, _ = dreams.reset(seed=0)
    for _ in range(HORIZON):
        observation, *_ = dreams.step(legal_actions(observation["location_counts"][:, :-1], rng))
    with pytest.raises(AssertionError, match="real environment"):
        real.unwrapped.step(np.array([0, 0]))


def test_same_seed_same_dream(model: WorldModel, starts: Starts) -> None:
    def play() -> list[float]:
        dreams, rng = DreamVectorEnv(model, starts, 3, DreamSettings(max_steps=HORIZON)), np.random.default_rng(0)
        observation, _ = dreams.reset(seed=4)
        rewards: list[float] = []
        for _ in range(HORIZON):
            assert dreams.observation_space.contains(observation)
            observation, reward, *_ = dreams.step(legal_actions(observation["location_counts"][:, :-1], rng))
            rewards += reward.tolist()
        return rewards

    assert play() == play()


def test_the_fit_lowers_the_losses(real: gym.Env, dataset: Dataset, kind: str) -> None:
    torch.manual_seed(0)
    model, epochs = world_model(kind)(real.observation_space, real.action_space, SMALL[kind]), []
    fit(model, dataset, FitSettings(encoder_epochs=6, epochs=6, encoder_batch=16), epochs.append)
    for phase in {e.phase for e in epochs}:
        found = [e.losses for e in epochs if e.phase == phase]
        for name in LOSSES[phase] & found[0].keys():
            assert min(losses[name] for losses in found[1:]) < found[0][name], name


def test_padding_reaches_no_loss(recurrent: WorldModel, dataset: Dataset) -> None:
    """An episode's losses are the same beside a longer one, whatever stands in its padding."""
    latents = encode_all(recurrent, dataset)
    episodes = sorted(dataset.episodes, key=lambda e: len(e.actions))
    pair = [episodes[0], episodes[-1]]
    assert len(pair[0].actions) < len(pair[1].actions)
    alone, beside = (pad_episodes(chosen, recurrent.xfers) for chosen in (pair[:1], pair))
    spoilt = beside._replace(reward=beside.reward.masked_fill(~beside.valid, 1e3))
    expected = losses_of(recurrent, alone, latents[alone.graph])
    for name, loss in losses_of(recurrent, spoilt, latents[beside.graph]).items():
        torch.testing.assert_close(
            (loss * spoilt.valid)[0].sum(), (expected[name] * alone.valid)[0].sum(), rtol=1e-4, atol=1e-4
        )


def test_memory_is_empty_at_the_start_of_an_episode(recurrent: WorldModel, dataset: Dataset, starts: Starts) -> None:
    empty = recurrent.initial_memory(1)
    first = (starts.step == 0).nonzero()[:, 0]
    begun = [e for e in dataset.episodes if e.actions[0][0] != recurrent.xfers]
    assert len(first) == len(begun)
    assert (starts.hidden[first] == empty[0]).all() and (starts.cell[first] == empty[1]).all()
    later = (starts.step == 1).nonzero()[:, 0]
    assert (starts.hidden[later] != 0).any(1).all()
    batch = pad_episodes(dataset.episodes[:1], recurrent.xfers)
    given = encode_all(recurrent, dataset)[batch.graph][:, :-1], batch.counts[:, :-1], batch.xfer, batch.location
    assert torch.equal(recurrent(*given)[1], recurrent(*given, empty)[1])


def test_a_dream_that_begins_anew_forgets(model: WorldModel, starts: Starts) -> None:
    first = starts.take((starts.step == 0).nonzero()[:, 0])
    dreams = DreamVectorEnv(model, first, 2, DreamSettings(max_steps=2))
    observation, _ = dreams.reset(seed=0)
    rng = np.random.default_rng(0)
    endings = 0
    for _ in range(2):
        actions = legal_actions(observation["location_counts"][:, :-1], rng)
        observation, _, terminated, truncated, _ = dreams.step(actions)
        ended = terminated | truncated
        assert not observation["hidden"][ended].any()
        endings += ended.sum()
    assert endings


def test_a_batch_dreams_as_its_members_alone(model: WorldModel, starts: Starts) -> None:
    rows = torch.arange(0, len(starts.step), 7)
    some, rng = starts.take(rows), np.random.default_rng(0)
    actions = torch.from_numpy(legal_actions(some.counts.numpy(), rng))
    together = imagine(model, some.latent, some.counts, (some.hidden, some.cell), actions, 0.0)
    for i in range(len(rows)):
        one = some.take(torch.tensor([i]))
        alone = imagine(model, one.latent, one.counts, (one.hidden, one.cell), actions[i : i + 1], 0.0)
        torch.testing.assert_close(alone.reward, together.reward[i : i + 1], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(alone.latent, together.latent[i : i + 1], rtol=1e-4, atol=1e-5)
        assert torch.equal(alone.counts, together.counts[i : i + 1])


def test_a_sequence_is_its_steps(model: WorldModel, dataset: Dataset) -> None:
    batch = pad_episodes(dataset.episodes[:2], model.xfers)
    given = encode_all(model, dataset)[batch.graph][:, :-1], batch.counts[:, :-1], batch.xfer, batch.location
    whole = model(*given)[0]
    memory = model.initial_memory(2)
    for t in range(batch.xfer.shape[1]):
        step, _, memory = model(*(part[:, t : t + 1] for part in given), memory)
        torch.testing.assert_close(step.reward[:, 0], whole.reward[:, t], rtol=1e-4, atol=1e-5)


def test_saved_and_loaded_says_the_same(
    tmp_path: Path, real: gym.Env, model: WorldModel, kind: str, dataset: Dataset
) -> None:
    model.save(tmp_path / "w.pt", describe("SqueezeNet", real, {}, {}))
    loaded, _ = load_world_model(tmp_path / "w.pt")
    assert loaded.kind == kind and loaded.settings == model.settings
    assert torch.equal(encode_all(loaded, dataset), encode_all(model, dataset))


def test_the_gap_is_reported(model: WorldModel, dataset: Dataset) -> None:
    found = one_step(model, dataset)
    assert 0 <= found.sign_accuracy <= 1 and 0 <= found.retrieval <= 1
    assert all(0 <= h.f1 <= 1 and np.isfinite(h.reward_error) for h in horizons(model, dataset, (1, 3)))


def test_a_controller_is_trained_in_its_dream(kind: str) -> None:
    settings = DreamTrainSettings(
        rounds=1, steps=30, dream_steps=256, dreams=4, episodes=1, minibatch=64, epochs=1, model=SMALL[kind], fit=SHORT
    )
    result = train_in_dream("TasoGraph-SqueezeNet1.1-v0", settings, max_steps=HORIZON)
    assert result.model.kind == kind and result.rounds[0].real_steps >= 30
