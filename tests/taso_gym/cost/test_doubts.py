"""What is measured again: what a model's time depends on the most, as far as there is room for it."""

import math
from pathlib import Path

import pytest
from cost_graphs import mlp

from taso_gym.cost import doubts
from taso_gym.cost.doubts import worth_turns
from taso_gym.cost.node_keys import bytes_of
from taso_gym.cost.node_times import NodeTimes
from taso_gym.cost.onnxruntime import OnnxRuntimeCost

pytest.importorskip("onnxruntime")


def turns_of(cache: Path, until: float = math.inf) -> list[str]:
    """Return the keys of what is worth turns of two perceptrons, the larger of which is there three times."""
    model = OnnxRuntimeCost(cache=cache)
    small, large = (next(iter(model.regions(mlp(rows, 256)))) for rows in (8, 64))
    executed = {region: model.executed_in(region) or [] for region in (small, large)}
    times = NodeTimes(model.runtime, cache)
    times.load(key for keys in executed.values() for key in keys)
    turns = worth_turns({small: 1, large: 3}, executed.__getitem__, model.executed_alone, times, 0.0, until)
    return [turn.key for turn in turns]


def test_the_most_doubtful_comes_first(tmp_path: Path) -> None:
    keys = turns_of(tmp_path / "cache")
    assert len(keys) == 2 and "[64" in keys[0] and "[8" in keys[1]


def test_nothing_is_made_when_the_time_is_over(tmp_path: Path) -> None:
    assert turns_of(tmp_path / "cache", until=0.0) == []


def test_what_there_is_no_room_for_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = turns_of(tmp_path / "cache")
    assert bytes_of(keys[0]) > bytes_of(keys[1]) > 0
    monkeypatch.setattr(doubts, "memory_bytes", lambda: bytes_of(keys[1]) / doubts.HELD)
    assert turns_of(tmp_path / "cache") == keys[1:]
