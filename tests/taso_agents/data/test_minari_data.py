"""Episodes as a Minari dataset."""

import gymnasium as gym
import numpy as np
import pytest
from agent_batches import collected

from taso_agents.data.collect import greedy_actor
from taso_agents.data.episodes import Dataset
from taso_agents.data.minari_data import write_minari
from taso_agents.environment.real_env import make_env
from taso_gym.errors import CheckpointError

SQUEEZENET = "TasoGraph-SqueezeNet1.1-v0"


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    env: gym.Env = make_env(SQUEEZENET, max_steps=4)
    return collected(env, (greedy_actor(0.3), 8))


def test_minari_gives_back_what_was_played(
    dataset: Dataset, tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    write_minari(dataset, SQUEEZENET, "squeezenet/greedy-v0", max_steps=4)
    loaded = minari.load_dataset("squeezenet/greedy-v0")
    assert loaded.total_episodes == len(dataset.episodes) and loaded.total_steps == dataset.steps
    for found, episode in zip(loaded.iterate_episodes(), dataset.episodes, strict=True):
        np.testing.assert_array_equal(found.actions, episode.actions)
        np.testing.assert_allclose(found.rewards, episode.rewards, rtol=1e-5)
        np.testing.assert_array_equal(found.observations["location_counts"][:, :-1], np.stack(episode.counts))
        changes = dataset.store.graphs[episode.graphs[0]].changes
        np.testing.assert_allclose(found.observations["cost_changes"][0][: len(changes)], changes, rtol=1e-5)


def test_episodes_of_another_environment_are_refused(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("minari")
    episode = dataset.episodes[0]
    monkeypatch.setattr(episode, "rewards", [r + 1 for r in episode.rewards])
    with pytest.raises(CheckpointError, match="expected a reward of"):
        write_minari(dataset, SQUEEZENET, "squeezenet/wrong-v0", max_steps=4)
