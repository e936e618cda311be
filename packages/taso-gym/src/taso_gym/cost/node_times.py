"""Times of single nodes that onnxruntime executes: measured once, kept on disk, and measured again in turns.

One node after the other, each at another moment, is what a search can afford; such times scatter by 4 to 30 % on a
shared machine, whose slow phases last from tens of milliseconds to seconds. In turns, a little of each and that several
times, most are also measured in a fast phase, and what they take then counts (`taso_gym.cost.turns`). Some hours have
no fast phase: times that scatter are taken again, some other time, and added to.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, Self

from taso_gym.cost.eviction import LARGE
from taso_gym.cost.executed import Executed
from taso_gym.cost.findings import Findings
from taso_gym.cost.looks import Looks
from taso_gym.cost.node_keys import COLD, operands_of
from taso_gym.cost.runtime import Runtime
from taso_gym.cost.turns import TURNS, Taken, between, quiet, uncertainty
from taso_gym.errors import KernelError, OutOfMemoryError

LONG_PS = 10**11
"""A node that takes so long takes the same out of the cache: what the cache can hold is read in few milliseconds."""
TOGETHER, TOGETHER_PS = 16, 10**11
"""So many nodes take a turn out of the cache together, as long as runs of them take less than that in all."""
CAUTION = 0.9
"""Part of the nodes that cost no more in turns than cautious times say."""


class Turn(NamedTuple):
    """What is measured in a turn: a node, and whether with its memory out of the cache; its key says both."""

    key: str
    node: Executed


class NodeTimes(Findings):
    """Times of nodes by key.

    Attributes:
        path: file of the cache.
    """

    def __init__(self, runtime: Runtime, path: str | Path | None) -> None:
        """Begin with what a cache has; None for the user's."""
        super().__init__(runtime, path)
        self._runtime = runtime
        self._times: dict[str, int] = {}
        self._quantile = 0.5

    def __getstate__(self) -> dict[str, Any]:
        """Leave the times behind when pickled or copied: they are in the cache, and another machine's are others."""
        return {name: value for name, value in self.__dict__.items() if name != "_looks"} | {"_times": {}}

    def of(self, key: str, outside: float) -> int:
        """Return the picoseconds of a node that was measured or loaded.

        Args:
            key: of the node. Where it begins with `COLD` the weights that it reads are out of the cache.
            outside: so much of all else that it reads and writes, too, if that is large (`eviction.LARGE`), from 0 to
                1; if it is small twice as much, but for a half.
        """
        return _mixed(key, outside, self._times)

    def interval(self, key: str, outside: float) -> tuple[int, int] | None:
        """Return two times in picoseconds that `of` is between with 85 % confidence; None unless it had its turns."""
        ends: list[dict[str, int]] = [{}, {}]
        for part in _parts_of([key]):
            if (taken := self._taken(part)) is None:
                return None
            for end, time_ps in zip(ends, between(taken), strict=True):
                end[part] = time_ps
        low, high = (_mixed(key, outside, end) for end in ends)
        return low, high

    def load(self, keys: Iterable[str]) -> bool:
        """Have the times of nodes that the cache knows, and return whether it knows all.

        Raises:
            CostError: it can't be read.
        """
        for key in _parts_of(keys) - self._times.keys():
            if (known := self._known(key)) is None:
                return False
            self._times[key] = known
        return True

    def measure(self, node: Executed, cold: bool) -> str:
        """Return the key of a node, whose time is known then; ``cold``: measured out of the cache, too."""
        if self._measured(node.key, node) >= LONG_PS or not cold:
            return node.key
        self._measured(f"{COLD}{node.key}", node)
        return f"{COLD}{node.key}"

    def measure_together(self, nodes: Iterable[Executed]) -> None:
        """Measure what isn't known of nodes out of the cache, which is emptied once for many; what fails isn't known.

        For those that take `TOGETHER_PS` in all, short ones first: long ones run less often.
        """
        cold = {f"{COLD}{node.key}": node for node in nodes if self._times.get(node.key, LONG_PS) < LONG_PS}
        turns = [Turn(key, node) for key, node in cold.items() if key not in self._times and self._known(key) is None]
        turns.sort(key=lambda turn: self._times[turn.node.key])
        for group in self._groups(turns, len(turns)):
            for key, taken in self._tried(group).items():
                self.remember(_look(key), {"ps": quiet([taken])})

    def _measured(self, key: str, node: Executed) -> int:
        """Return the picoseconds of a node in the cache or out of it, as its key says, which are known then."""
        if key not in self._times:
            known = self._known(key)
            if known is None:
                found = self.remember(_look(key), {"ps": quiet(self._measure([Turn(key, node)]))})
                known = self._expected(key, found)
            self._times[key] = known
        return self._times[key]

    def unsettled(self, keys: Iterable[str]) -> dict[str, float]:
        """Return which of these, in the cache or out of it, are worth turns, and by what part they may be off.

        None on a GPU, which other processes don't use meanwhile.
        """
        if self._runtime.provider != "cpu":
            return {}
        found = {key: uncertainty(self._taken(key)) for key in _parts_of(keys)}
        return {key: part for key, part in found.items() if part}

    def in_turns(
        self, turns: Sequence[Turn], seconds: float, progress: Callable[[int, int], None] | None = None
    ) -> Self:
        """Return the same times, but for these what `TURNS` more times and those of earlier turns say.

        The cache has them from then on. Others become what is expected of them in turns by then (`Looks`).

        Args:
            turns: the most important first: those that there isn't time for stay as they are.
            seconds: for the first turn of each a `TURNS`-th, so that what has one has time for all.
            progress: called with (turns done, turns in all).
        """
        found = dict[str, list[tuple[int, int]]]()
        try:
            self._take(turns, found, seconds, progress)
        finally:  # of what is interrupted, too
            for key, times in found.items():
                if len(times) > TURNS // 2:
                    self.change(_settled(key), partial(_followed_by, times))
        return self._anew(self._quantile)

    def _take(
        self,
        turns: Sequence[Turn],
        found: dict[str, list[tuple[int, int]]],
        seconds: float,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        """Add times of turns to what was found; arguments are those of `in_turns`."""
        began = time.monotonic()
        for count in range(TURNS):
            ends, done = began + (seconds if count else seconds / TURNS), count * len(turns)
            for group in self._groups(turns, TOGETHER):
                if time.monotonic() >= ends:
                    break
                for key, taken in self._tried(group).items():
                    found.setdefault(key, []).append(taken)
                done += len(group)
                if progress:
                    progress(done, TURNS * len(turns))
            turns = [turn for turn in turns if turn.key in found]

    def cautious(self) -> Self:
        """Return the same times, but what was looked at once is taken for more than most of its like turn out to be."""
        return self._anew(CAUTION)

    def _anew(self, quantile: float) -> Self:
        """Return the same times by all that the cache has by now."""
        other = copy(self)
        other._times, other._quantile = {}, quantile
        other.__dict__.pop("_looks", None)
        for key, time_ps in self._times.items():
            known = other._known(key)
            other._times[key] = time_ps if known is None else known
        return other

    def _taken(self, key: str) -> Taken | None:
        """Return the times of a node in its turns, if it had any."""
        settled = self.recall(_settled(key))
        return None if settled is None else _turns(settled)

    def _known(self, key: str) -> int | None:
        if settled := self.recall(_settled(key)):
            return settled["ps"]
        found = self.recall(_look(key))
        return None if found is None else self._expected(key, found)

    def _expected(self, key: str, found: Mapping[str, int]) -> int:
        return self._looks[key.startswith(COLD)].expected(found["ps"], self._quantile)

    @cached_property
    def _looks(self) -> dict[bool, Looks]:
        """What single looks say, in the cache and out of it, by all nodes that the cache has both times of."""
        pairs: dict[bool, list[tuple[int, int]]] = {False: [], True: []}
        for key, settled in self.beginning(_settled("")):
            if look := self.recall(_look(key)):
                pairs[key.startswith(COLD)].append((look["ps"], settled["ps"]))
        return {cold: Looks(found) for cold, found in pairs.items()}

    def _groups(self, turns: Iterable[Turn], most: int) -> Iterator[list[Turn]]:
        """Yield turns as they are measured: those in the cache one by one, so many of the others together at most."""
        group, time_ps = list[Turn](), 0
        for turn in turns:
            if not turn.key.startswith(COLD):
                yield [turn]
                continue
            group.append(turn)
            time_ps += self._times.get(turn.node.key, 0)
            if len(group) == most or time_ps >= TOGETHER_PS:
                yield group
                group, time_ps = [], 0
        if group:
            yield group

    def _tried(self, turns: Sequence[Turn]) -> dict[str, tuple[int, int]]:
        """Return what is measured in some turns; nothing of those that fail for now, as memory is short: they ran."""
        try:
            return {turn.key: taken for turn, taken in zip(turns, self._measure(turns), strict=True)}
        except (KernelError, MemoryError, OutOfMemoryError):
            self._runtime.expect_working()
        return {} if len(turns) < 2 else {key: taken for turn in turns for key, taken in self._tried([turn]).items()}

    def _measure(self, turns: Sequence[Turn]) -> list[tuple[int, int]]:
        """Return times of nodes, and what of each is the copy of what it adds to in place within a network.

        Args:
            turns: all in the cache or all out of it.
        """
        if not turns:
            return []
        cold = turns[0].key.startswith(COLD)
        times = self._runtime.times([(node.model, node.feeds) for _, node in turns], cold)
        adding = [turn.key for turn in turns if turn.node.added_to]
        added = [node.feeds[node.added_to] for _, node in turns if node.added_to]
        copies = dict(zip(adding, self._runtime.times_of_copies(added, cold), strict=True))
        return [(time_ps, copies.get(turn.key, 0)) for turn, time_ps in zip(turns, times, strict=True)]


def _followed_by(times: Taken, settled: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what the cache has of a node after some more turns."""
    taken = [*_turns(settled or {"turns": []}), *times]
    return {"ps": quiet(taken), "turns": taken}


def _turns(settled: Mapping[str, Any]) -> list[tuple[int, int]]:
    return [(whole, copied) for whole, copied in settled["turns"]]


def _mixed(key: str, outside: float, times: Mapping[str, int]) -> int:
    """Return what `NodeTimes.of` does, by the times of a node in the cache and out of it."""
    inside = times[key.removeprefix(COLD)]
    if not key.startswith(COLD) or inside >= LONG_PS:
        return inside
    weights, largest = operands_of(key)
    share = weights + (1 - weights) * (outside if largest >= LARGE else max(2 * outside - 1, 0.0))
    return inside + round(share * (times[key] - inside))


def _look(key: str) -> str:
    """Return what the cache calls a node's time by one look."""
    return f"node {key}"


def _settled(key: str) -> str:
    """Return what the cache calls a node's time that was measured in turns."""
    return f"node in {TURNS} turns {key}"


def _parts_of(keys: Iterable[str]) -> set[str]:
    """Return keys, and of those out of the cache those in it, too."""
    return {part for key in keys for part in (key, key.removeprefix(COLD))}
