"""Races: who runs in which heat, who wins, and who is told to be faster."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cost_graphs import mlp

from taso_gym.cost.measure import seconds_of
from taso_gym.cost.measurement import THREAD_CPU, Measurement
from taso_gym.graph import Graph
from taso_gym.search import race as race_module
from taso_gym.search.race import ENOUGH, HEATS, MOST, SLOW_MS, Race, heats, race, race_seconds

GRAPH = mlp()
HOLDER = "holder"


class Track:
    """Times graphs by their names; keeps who ran in each heat, and for how many rounds."""

    def __init__(self, **times: float) -> None:
        self.times, self.heats = times, list[tuple[list[str], int]]()

    def __call__(self, graphs: dict[str, Graph], rounds: int, seed: int) -> Measurement:
        self.heats.append((list(graphs), rounds))
        noise = np.random.default_rng(seed).normal(1, 1e-4, (len(graphs), 1, rounds))
        return Measurement(
            {name: self.times.get(name, 1.0) * n for name, n in zip(graphs, noise, strict=True)}, 1, "cpu", THREAD_CPU
        )

    def race(self, once: tuple[str, ...] = (), until: float = math.inf) -> Race:
        others = {name: GRAPH for name in self.times if name not in (HOLDER, *once)}
        return race((HOLDER, GRAPH), others, self, dict.fromkeys(once, GRAPH), SLOW_MS, until)


def test_the_fastest_run_in_further_heats_and_the_fastest_of_them_wins() -> None:
    track = Track(a=0.99, b=0.95, c=1.1, d=0.9, e=0.97, f=0.98, g=0.96)
    found = track.race()
    assert [heat for heat, _ in track.heats] == [
        [HOLDER, "a", "b", "c", "d", "e", "f", "g"],
        [HOLDER, "d", "b", "g", "e"],
        [HOLDER, "d", "b"],
    ]
    assert [rounds for _, rounds in track.heats] == [rounds for rounds, _ in HEATS]
    assert found.winner == "d" and found.faster == ["b", "d", "e", "g"]
    assert found.speedups["d"].ratio == pytest.approx(1 / 0.9, rel=1e-3) and set(found.speedups) == set("abcdefg")


def test_who_loses_a_heat_does_not_win_and_the_next_one_does() -> None:
    class Lucky(Track):
        def __call__(self, graphs: dict[str, Graph], rounds: int, seed: int) -> Measurement:
            self.times["lucky"] = (0.5, 1.01, 0.5)[seed]
            return super().__call__(graphs, rounds, seed)

    found = Lucky(lucky=0.5, steady=0.9).race()
    assert found.speedups["lucky"].low > 1 and found.winner == "steady"


@pytest.mark.parametrize(("until", "heats"), [(math.inf, len(HEATS)), (0.0, ENOUGH)])
def test_who_lost_a_heat_takes_no_place_of_who_can_win(until: float, heats: int) -> None:
    class Noisy(Track):
        """Two lose the first heat, though by all its rounds they seem to be faster, and win the others by far."""

        def __call__(self, graphs: dict[str, Graph], rounds: int, seed: int) -> Measurement:
            found = super().__call__(graphs, rounds, seed)
            if seed == 0:
                found.rounds.update({n: np.where(np.arange(rounds) % 3 == 0, 0.9, 1.02)[None] for n in ("a", "b")})
            return found

    track = Noisy(a=0.5, b=0.5, steady=0.9)
    found = track.race(until=until)
    assert found.winner == "steady" and len(track.heats) == heats
    assert all("steady" in names for names, _ in track.heats)


def test_where_all_lost_a_heat_there_is_no_third_one() -> None:
    class Lucky(Track):
        def __call__(self, graphs: dict[str, Graph], rounds: int, seed: int) -> Measurement:
            self.times["lucky"] = (0.5, 1.01, 0.5)[seed]
            return super().__call__(graphs, rounds, seed)

    track = Lucky(lucky=0.5)
    assert track.race().winner is None and len(track.heats) == ENOUGH


@pytest.mark.parametrize(
    ("times", "heats"), [({"a": 0.9}, ENOUGH), ({"a": 0.97}, len(HEATS)), ({"a": 0.9, "b": 0.8}, len(HEATS))]
)
def test_who_is_clearly_faster_alone_does_not_run_again(times: dict[str, float], heats: int) -> None:
    track = Track(**times)
    assert track.race().winner == min(times, key=lambda name: times[name]) and len(track.heats) == heats


def test_who_is_slower_runs_once_and_nobody_wins() -> None:
    track = Track(a=1.05, b=1.2)
    assert track.race()[1:3] == ([], None) and len(track.heats) == 1


def test_more_than_a_heat_holds_do_not_run() -> None:
    track = Track(**{f"n{i}": 0.9 for i in range(HEATS[0][1] + 2)})
    assert len(track.race().speedups) == HEATS[0][1]


def test_who_is_measured_once_cannot_win() -> None:
    track = Track(start=0.5, a=0.98)
    found = track.race(once=("start",))
    assert found.winner == "a" and "start" not in found.speedups
    assert ["start" in heat for heat, _ in track.heats] == [True, False, False]


def test_how_much_longer_than_expected_it_took_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 100.0, 100.0, 1000.0, 1000.0])
    monkeypatch.setattr(race_module.time, "monotonic", lambda: next(clock))
    track = Track(a=0.9)
    expected = 2 * seconds_of(SLOW_MS, 1, HEATS[1][0])
    found = track.race(until=1000.0 + 2 * seconds_of(SLOW_MS, 1, HEATS[2][0]))  # enough but for the slowness
    assert len(track.heats) == 2 and found.slowness == pytest.approx(900 / expected)


def test_where_time_is_short_the_last_heat_is_left_out() -> None:
    track = Track(a=0.95, b=0.9)
    assert track.race(until=0.0).winner == "b" and len(track.heats) == ENOUGH < len(HEATS)


def test_a_race_of_more_and_slower_graphs_takes_longer() -> None:
    assert race_seconds(10, 1) < race_seconds(10, 5) < race_seconds(100, 5)
    assert race_seconds(10, HEATS[0][1]) == race_seconds(10, HEATS[0][1] + 5)


def test_fast_graphs_run_in_more_rounds_and_slow_ones_in_fewer() -> None:
    assert heats(SLOW_MS) == heats(1000.0) == list(HEATS)
    assert heats(2000.0) == [(3, 8), (3, 4), (6, 2)]
    assert heats(1e9) == [(3, 8), (3, 4), (3, 2)]
    assert heats(SLOW_MS / 2) == [(2 * rounds, most) for rounds, most in HEATS]
    assert heats(0.1) == [(MOST * rounds, most) for rounds, most in HEATS]
