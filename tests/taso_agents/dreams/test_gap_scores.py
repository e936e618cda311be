"""Scores in dreams and in reality."""

from pathlib import Path

import numpy as np
import pytest

from taso_agents.dreams.gap_scores import CHANCES, Score, correlation, mixed, scores, table_of_scores
from taso_agents.dreams.settings import DreamTrainSettings
from taso_agents.dreams.train import train_in_dream
from taso_agents.world_models.graph.model import GraphSettings

SQUEEZENET = "TasoGraph-SqueezeNet1.1-v0"


class Never:
    """A policy that takes NO-OP of three substitutions."""

    def predict(self, observation: dict[str, np.ndarray]) -> tuple[np.ndarray, None]:
        return np.tile([3, 0], (len(observation["location_counts"]), 1)), None


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_chance_takes_every_legal_action_or_none(chance: float) -> None:
    counts = np.tile([2, 0, 3, 1], (4000, 1))
    actions = mixed(Never(), chance, np.random.default_rng(0))({"location_counts": counts})
    found = {tuple(action) for action in actions.tolist()}
    assert found == ({(3, 0)} if chance == 0 else {(0, 0), (0, 1), (2, 0), (2, 1), (2, 2)})


def test_where_nothing_is_legal_chance_leaves_it_to_the_policy() -> None:
    counts = np.array([[0, 0, 0, 1]])
    act = mixed(Never(), 1.0, np.random.default_rng(0))
    assert act({"location_counts": counts}).tolist() == [[3, 0]]


def test_correlation_is_that_of_the_pairs() -> None:
    assert correlation([Score(0, 1, 2), Score(0, 2, 4), Score(0, 3, 6)]) == pytest.approx(1)
    assert np.isnan(correlation([Score(0, 1, 2)] * 3))


def test_policies_are_played_in_dreams_and_for_real(tmp_path: Path) -> None:
    settings = DreamTrainSettings(
        rounds=1,
        steps=90,
        dream_steps=64,
        dreams=4,
        rollout=16,
        episodes=1,
        temperature=0.5,
        model=GraphSettings(tokens=96),
    )
    train_in_dream(SQUEEZENET, settings, max_steps=6).save(tmp_path / "dream.pt")
    found = scores(str(tmp_path / "dream.pt"), 2)
    assert [score.chance for score in found] == list(CHANCES)
    assert found[0].real > found[-1].real and abs(found[0].dream - found[0].real) < 2
    assert "dreamt at τ = 0.5" in str(table_of_scores([found]).title)
    assert "correlation over 5" in str(table_of_scores([found]).title)
