"""Ratios, intervals and the 2 % threshold, on made-up rounds."""

from collections.abc import Callable

import numpy as np
import pytest

from taso_gym.cost.measurement import THREAD_CPU, WALL, Measurement


def rounds(time_ms: float, spread: float = 0.001, sessions: int = 2) -> np.ndarray:
    """Draw rounds around a time."""
    return time_ms * (1 + np.random.default_rng(int(time_ms * 1e6)).normal(0, spread, (sessions, 12)))


@pytest.mark.parametrize("estimator", [THREAD_CPU, WALL])
def test_a_clear_gain(estimator: str) -> None:
    found = Measurement({"old": rounds(1.2), "new": rounds(1.0)}, 1, "cpu", estimator)
    ratio, low, high = found.speedup("new")
    assert low <= ratio <= high and ratio == pytest.approx(1.2, rel=0.01) and high - low < 0.02
    assert found.gain("new") == pytest.approx(1 / 6, rel=0.05)


@pytest.mark.parametrize("estimator", [THREAD_CPU, WALL])
def test_a_ratio_is_that_of_the_speedup(estimator: str) -> None:
    found = Measurement({"old": rounds(1.2), "new": rounds(1.0)}, 1, "cpu", estimator)
    assert found.ratio("new") == found.speedup("new").ratio != found.ratio("old") == 1.0


@pytest.mark.parametrize("shape", [(1, 4), (2, 10), (2, 30)])
@pytest.mark.parametrize("draw", [np.random.Generator.exponential, np.random.Generator.standard_normal])
def test_intervals_of_minima_hold_the_ratio(draw: Callable[..., np.ndarray], shape: tuple[int, int]) -> None:
    """At least 95 of 100 do, but for chance; of bootstraps of normal rounds far fewer would."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(1000):
        old, new = (1 + 0.02 * draw(rng, size=shape) for _ in range(2))
        found = Measurement({"old": 1.2 * old, "new": new}, 2, "cpu", WALL).speedup("new")
        assert found.low <= found.ratio <= found.high
        held += found.low <= 1.2 <= found.high
    assert held >= 935


@pytest.mark.parametrize(("count", "last"), [(1, 1), (3, 3), (4, 4), (9, 5), (20, 5), (60, 6), (1000, 6)])
def test_an_interval_of_minima_is_no_wider_than_chance_makes_it(count: int, last: int) -> None:
    """That so many rounds of one of two models that are alike come first has a chance of 2.5 % at most."""
    old, new = 2.0 * np.arange(1, count + 1), np.arange(1.0, count + 1)
    found = Measurement({"old": old[None], "new": new[None]}, 2, "cpu", WALL).speedup("new")
    assert found == (2.0, 2.0 / last, 2.0 * last)


def test_a_gain_below_two_percent_is_none() -> None:
    assert Measurement({"old": rounds(1.015), "new": rounds(1.0)}, 1, "cpu", THREAD_CPU).gain("new") == 0.0


def test_a_gain_that_one_session_denies_is_none() -> None:
    old = np.stack([np.full(12, 1.2), np.full(12, 0.99)])
    assert Measurement({"old": old, "new": np.ones((2, 12))}, 1, "cpu", THREAD_CPU).gain("new") == 0.0


def test_a_loss_is_no_gain() -> None:
    assert Measurement({"old": rounds(1.0), "new": rounds(1.5)}, 1, "cpu", THREAD_CPU).gain("new") == 0.0


def test_halves_that_differ_are_flagged() -> None:
    drift = np.concatenate([np.full((2, 6), 1.0), np.full((2, 6), 1.05)], axis=1)
    assert Measurement({"old": rounds(1.0), "new": drift}, 2, "cpu", WALL).unstable == ("new",)


def test_a_speedup_is_written_for_people() -> None:
    found = Measurement({"old": np.full((2, 4), 2.0), "new": np.ones((2, 4))}, 1, "cpu", THREAD_CPU)
    assert str(found.speedup("new")) == "2.000x [2.000, 2.000]"


def test_halves_are_of_sessions_or_of_the_rounds_of_one() -> None:
    rounds_ms = np.arange(15.0).reshape(3, 5)
    first, second = Measurement({"a": rounds_ms}, 1, "cpu", THREAD_CPU).split()
    assert first.rounds["a"][:, 0].tolist() == [0, 10] and second.rounds["a"][:, 0].tolist() == [5]
    first, second = Measurement({"a": np.arange(14.0).reshape(7, 2)}, 1, "cpu", THREAD_CPU).split()
    assert first.rounds["a"][:, 0].tolist() == [0, 2, 8, 10] and second.rounds["a"][:, 0].tolist() == [4, 6, 12]
    first, second = Measurement({"a": rounds_ms[:1]}, 1, "cpu", THREAD_CPU).split()
    assert first.rounds["a"].tolist() == [[0, 1]] and second.rounds["a"].tolist() == [[3, 4]]
    assert Measurement({"a": rounds_ms[:1, :1]}, 1, "cpu", THREAD_CPU).split()[1].rounds["a"].tolist() == [[0]]


def test_rounds_of_a_further_session_count_like_those_before() -> None:
    first = Measurement({"old": rounds(1.2), "new": rounds(1.0), "gone": rounds(2.0)}, 1, "cpu", THREAD_CPU)
    second = Measurement({"old": np.full((1, 5), 1.0), "new": np.full((1, 5), 1.0)}, 1, "cpu", THREAD_CPU)
    both = first.followed_by(second)
    assert list(both.rounds) == ["old", "new"] and both.rounds["new"].shape == (1, 29)
    assert both.speedup("new").ratio == pytest.approx(1.2, rel=0.01)  # the median of 24 and 5
    assert both.rounds["old"][0, -5:].tolist() == [1.0] * 5


@pytest.mark.parametrize(("threads", "called"), [(1, "1 thread"), (4, "4 threads")])
def test_conditions_name_the_threads(threads: int, called: str) -> None:
    assert Measurement({"old": rounds(1.0)}, threads, "cpu", WALL).conditions == f"cpu, {called}, minimum of wall time"


@pytest.mark.parametrize("estimator", [THREAD_CPU, WALL])
@pytest.mark.parametrize(("shape", "enough"), [((1, 1), False), ((1, 3), False), ((2, 1), False), ((2, 2), True)])
def test_few_rounds_say_nothing_for_sure(estimator: str, shape: tuple[int, int], enough: bool) -> None:
    found = Measurement({"old": np.full(shape, 1.2), "new": np.ones(shape)}, 1, "cpu", estimator)
    assert found.has_intervals == enough and bool(found.gain("new")) == enough
