"""A race of graphs: measured side by side in heats, after each of which the slower ones are out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from taso_gym.cost.measure import seconds_of
from taso_gym.cost.measurement import Measurement, Speedup
from taso_gym.graph import Graph

HEATS = ((3, 8), (6, 4), (12, 2))
"""Rounds of the fresh session of each heat, and how many graphs run in it at most: the fastest until then, those first
that can still win."""
ENOUGH = 2
"""Heats that a race has at least; further ones only where there is time."""
CLEAR = 1.05
"""The only one that is left doesn't run again where it surely is so many times faster than the holder."""
SLOW_MS, MOST = 50.0, 3.0
"""Graphs that take less time run in more rounds, up to so many times as many."""
LONG_MS, FEWEST = 1000.0, 3
"""Graphs that take more time run in fewer, down to so many: they vary less from run to run."""


class Race(NamedTuple):
    """How a race ended.

    Attributes:
        speedups: how many times faster than the holder each graph is, by all heats that it was in.
        faster: the graphs that are faster than the holder and were in more than one heat.
        winner: the fastest that surely is faster than the holder, by all heats and in each; or None.
        slowness: how many times as long the last heat took as it was expected to: graphs may take long to load.
    """

    speedups: dict[str, Speedup]
    faster: list[str]
    winner: str | None
    slowness: float


def race(
    holder: tuple[str, Graph],
    others: Mapping[str, Graph],
    measured: Callable[[dict[str, Graph], int, int], Measurement],
    once: Mapping[str, Graph],
    run_ms: float,
    until: float = math.inf,
) -> Race:
    """Let graphs run against one that holds the title.

    Args:
        holder: its name and graph; it runs in every heat.
        others: name -> graph.
        measured: measures graphs side by side, given these, rounds, and the seed of their order.
        once: graphs that are measured in the first heat only and can't win.
        run_ms: about how many milliseconds a graph takes.
        until: the time, as `time.monotonic` has it, when the last heat should be over.
    """
    running, speedups, again, lost = list(others), dict[str, Speedup](), set[str](), set[str]()
    found: Measurement | None = None
    slowness = 1.0
    for seed, (rounds, most) in enumerate(heats(run_ms)):
        began, expected = time.monotonic(), _heat_seconds(run_ms, min(len(running), most), rounds)
        if seed >= ENOUGH and (began + slowness * expected > until or _is_settled(running, lost, speedups)):
            break
        running = running[:most]
        heat = dict([holder]) | {name: others[name] for name in running} | ({} if found else dict(once))
        latest = measured(heat, rounds, seed)
        slowness = (time.monotonic() - began) / expected
        found = found.followed_by(latest) if found else latest
        speedups |= {name: found.speedup(name) for name in running}
        again.update(running if seed else ())
        lost.update(name for name in running if latest.ratio(name) <= 1)
        ranked = sorted(running, key=lambda name: (name in lost, -speedups[name].ratio))
        running = [name for name in ranked if speedups[name].high > 1]
        if not running:
            break
    winner = next((name for name in running if speedups[name].low > 1 and name not in lost), None)
    faster = [name for name in others if name in again and speedups[name].ratio > 1]
    return Race(speedups, faster, winner, slowness)


def _is_settled(running: list[str], lost: set[str], speedups: Mapping[str, Speedup]) -> bool:
    """Return whether another heat is of no use: all that could run lost one, or the only one is clearly faster."""
    return lost.issuperset(running) or (len(running) == 1 and speedups[running[0]].low > CLEAR)


def heats(run_ms: float) -> list[tuple[int, int]]:
    """Return rounds and greatest number of graphs of each heat, given a graph's milliseconds."""
    run_ms = max(run_ms, 1e-3)
    more = min(max(SLOW_MS / run_ms, 1.0), MOST) * min(LONG_MS / run_ms, 1.0)
    return [(max(round(rounds * more), FEWEST), most) for rounds, most in HEATS]


def race_seconds(run_ms: float, count: int, number: int = ENOUGH) -> float:
    """Return about how long a race of so many graphs with the holder takes, each run ``run_ms`` milliseconds.

    Of so many heats, where none turns out to be slower and is out.
    """
    return sum(_heat_seconds(run_ms, min(count, most), rounds) for rounds, most in heats(run_ms)[:number])


def _heat_seconds(run_ms: float, count: int, rounds: int) -> float:
    return (1 + count) * seconds_of(run_ms, 1, rounds)
