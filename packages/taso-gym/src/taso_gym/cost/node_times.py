"""Times of single nodes that onnxruntime executes: measured once, kept on disk, and measured again in turns.

One node after the other, each at another moment, is what a search can afford; such times scatter by 4 to 30 % on a
shared machine, whose slow phases last from tens of milliseconds to seconds. In turns, a little of each and that several
times, most are also measured in a fast phase, and what they take then counts (`taso_gym.cost.turns`). Some hours have
no fast phase: times that scatter are taken again, some other time, and added to.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

from taso_gym.cost.cache import Cache
from taso_gym.cost.eviction import LARGE
from taso_gym.cost.executed import Executed
from taso_gym.cost.looks import Looks
from taso_gym.cost.node_keys import COLD, operands_of
from taso_gym.cost.runtime import Runtime
from taso_gym.cost.turns import TURNS, Taken, between, quiet, uncertainty
from taso_gym.errors import CostError, KernelError, OutOfMemoryError

METHOD = 13
"""How costs are measured; what an earlier version of the package put into a cache isn't taken for the same."""
LONG_PS = 10**11
"""A node that takes so long takes the same out of the cache: what the cache can hold is read in few milliseconds."""
CAUTION = 0.9
"""Part of the nodes that cost no more in turns than cautious times say."""


class Turn(NamedTuple):
    """What is measured in a turn: a node, and whether with its memory out of the cache; its key says both."""

    key: str
    node: Executed


class NodeTimes:
    """Times of nodes by key.

    Attributes:
        path: file of the cache.
    """

    def __init__(self, runtime: Runtime, path: str | Path | None) -> None:
        """Begin with what a cache has; None for the user's."""
        self._runtime, self._cache = runtime, Cache(path)
        self._times: dict[str, int] = {}
        self._quantile = 0.5
        self.path = self._cache.path

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

    def _measured(self, key: str, node: Executed) -> int:
        """Return the picoseconds of a node in the cache or out of it, as its key says, which are known then."""
        if key not in self._times:
            known = self._known(key)
            if known is None:
                found = self.remember(_look(key), {"ps": quiet([self._measure(Turn(key, node))])})
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
        found, began = dict[str, list[tuple[int, int]]](), time.monotonic()
        for count in range(TURNS):
            ends = began + (seconds if count else seconds / TURNS)
            for done, turn in enumerate(turns, count * len(turns) + 1):
                if time.monotonic() >= ends:
                    break
                try:
                    found.setdefault(turn.key, []).append(self._measure(turn))
                except (KernelError, MemoryError, OutOfMemoryError):  # it did run before: memory is short for now
                    self._runtime.expect_working()
                if progress:
                    progress(done, TURNS * len(turns))
            turns = [turn for turn in turns if turn.key in found]
        for key, times in found.items():
            if len(times) > TURNS // 2:
                taken = [*(self._taken(key) or ()), *times]
                self._cache.replace(self._key(_settled(key)), json.dumps({"ps": quiet(taken), "turns": taken}))
        return self._anew(self._quantile)

    def cautious(self) -> Self:
        """Return the same times, but what was looked at once is taken for more than most of its like turn out to be."""
        return self._anew(CAUTION)

    def recall(self, name: str) -> dict[str, Any] | None:
        """Return what the cache has under a name.

        Raises:
            CostError: it can't be read.
        """
        text = self._cache.get(self._key(name))
        return None if text is None else self._parsed(text)

    def _parsed(self, text: str) -> dict[str, Any]:
        try:
            return json.loads(text)
        except ValueError as error:
            raise CostError(
                f"expected a measurement as JSON, found {text[:40]!r} in {self.path}: delete that file"
            ) from error

    def remember(self, name: str, value: dict[str, Any]) -> dict[str, Any]:
        """Put something into the cache, and return what it has: another process may have been first.

        Raises:
            CostError: it can't be written.
        """
        return json.loads(self._cache.put(self._key(name), json.dumps(value)))

    def found(self, name: str, measure: Callable[[], dict[str, Any]], anew: bool = False) -> dict[str, Any]:
        """Return what the cache has under a name, measured now if it has nothing: {"failed": why} of what doesn't run.

        A kernel that fails is remembered, too; where memory is short it fails for now only.

        Args:
            name: what it is called.
            measure: measures it.
            anew: measure it whatever the cache has, and remember that instead.

        Raises:
            CostError: the cache can't be used, or the provider doesn't work.
        """
        known = None if anew else self.recall(name)
        if known is not None:
            return known
        try:
            value = measure()
        except KernelError as error:
            self._runtime.expect_working()  # else what is remembered would be the device's fault
            value = {"failed": str(error)}
        except (MemoryError, OutOfMemoryError) as error:
            return {"failed": str(error) or "out of memory"}
        if anew:
            self._cache.replace(self._key(name), json.dumps(value))
            return value
        return self.remember(name, value)

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
        return None if settled is None else [(whole, copied) for whole, copied in settled["turns"]]

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
        for key, text in self._cache.beginning(self._key(_settled(""))):
            if look := self.recall(_look(key)):
                pairs[key.startswith(COLD)].append((look["ps"], self._parsed(text)["ps"]))
        return {cold: Looks(found) for cold, found in pairs.items()}

    def _measure(self, turn: Turn) -> tuple[int, int]:
        """Return the time of a node, and what of it is the copy of what it adds to in place within a network."""
        node, cold = turn.node, turn.key.startswith(COLD)
        time_ps = self._runtime.time(node.model, node.feeds, cold)
        return time_ps, self._runtime.time_of_copy(node.feeds[node.added_to], cold) if node.added_to else 0

    def _key(self, name: str) -> str:
        return f"{self._runtime.key}|method {METHOD}|{name}"


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
