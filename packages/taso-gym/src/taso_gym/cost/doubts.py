"""Which of the nodes that a model executes are worth turns: those by which its time may be off the most."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from taso_gym.cost.executed import Executed
from taso_gym.cost.machine import memory_bytes
from taso_gym.cost.node_keys import COLD, bytes_of
from taso_gym.cost.node_times import NodeTimes, Turn
from taso_gym.cost.region import Region
from taso_gym.errors import KernelError, OutOfMemoryError

HELD = 0.25
"""Part of the memory that operands of all nodes that take turns may fill."""


def worth_turns(
    regions: Mapping[Region, int],
    executed_in: Callable[[Region], Iterable[str]],
    alone: Callable[[Region], list[Executed]],
    times: NodeTimes,
    outside: float,
    until: float,
) -> list[Turn]:
    """Return what to measure in turns, the most doubtful first.

    Args:
        regions: those of a model, and how often each is in it.
        executed_in: returns the keys of the nodes of a region, which were measured once.
        alone: makes these nodes.
        times: of the nodes.
        outside: share out of the cache that they are judged by.
        until: the time, as `time.monotonic` has it, after which no further nodes are made.
    """
    keys = {region: list(executed_in(region)) for region in regions}
    shares: Counter[str] = Counter()
    for region, count in regions.items():
        for key in keys[region]:
            shares[key.removeprefix(COLD)] += count * times.of(key, outside)
    unsettled = {region: times.unsettled(keys[region]) for region in keys}
    doubts = {key: part * shares[key.removeprefix(COLD)] for found in unsettled.values() for key, part in found.items()}
    turns, room = dict[str, Turn](), HELD * memory_bytes()
    for region in sorted(keys, key=lambda region: -max(map(doubts.__getitem__, unsettled[region]), default=0)):
        missing = unsettled[region].keys() - turns.keys()
        needed = sum(map(bytes_of, {key.removeprefix(COLD) for key in missing}))
        if missing and needed <= room and time.monotonic() < until:
            with suppress(KernelError, MemoryError, OutOfMemoryError):  # it did run before: memory is short for now
                nodes = {node.key: node for node in alone(region)}
                named = ((key, nodes.get(key.removeprefix(COLD))) for key in missing)
                turns |= {key: Turn(key, node) for key, node in named if node}  # a cache may have other names
                room -= needed
    return sorted(turns.values(), key=lambda turn: -doubts[turn.key])
