"""Costs that depend on what else a model has: a share of what kernels read is out of the cache (`in_place`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from numbers import Real
from typing import Any, Self

from taso_gym.cost.eviction import cache_bytes
from taso_gym.cost.in_place import USUAL, kernel_times, share_outside, slower_in_place
from taso_gym.cost.measured import MeasuredCost
from taso_gym.cost.region import Region
from taso_gym.cost.small_model import OPSET, draw_inputs
from taso_gym.errors import OptionError
from taso_gym.graph import Graph

KEPT = 1 / 8
"""Part of the cache that keeps what a model needs from one run to the next, whatever else the host does."""


class PlacedCost(MeasuredCost):
    """Base of the cost model that costs kernels as they run within the graph that a search begins with."""

    _outside: float | None = None
    _given_outside: float | None = None

    def _place(self, start: Graph | None, outside: float | None) -> None:
        """Note where kernels run.

        Args:
            start: graph that a search begins with.
            outside: share of the values out of the cache; None for what the start says.

        Raises:
            OptionError: it isn't from 0 to 1.
        """
        if outside is not None and not (isinstance(outside, Real) and 0 <= outside <= 1):
            raise OptionError(f"expected outside from 0 to 1, found {outside!r}")
        self._outside = self._given_outside = outside
        self._learn(start)

    def _learn(self, start: Graph | None) -> None:
        """Note the opset that kernels are of, and whether operators are measured out of the cache, too."""
        self._opset = start.info.opsets.get("", OPSET) if start else OPSET
        cache_size = cache_bytes() if self.runtime.provider == "cpu" else 0
        self._cold = start is not None and 0 < KEPT * cache_size < self.peak_bytes(start)

    def started(self, start: Graph) -> Self:
        """Return the model for a search that begins with a graph; what is measured is shared."""
        if self._starts_with(start):
            return self
        other = self._copy(self._given_outside)  # not with what the start before said
        other._begin(start)
        other._learn(start)
        return other

    @property
    def depends_on_cache(self) -> bool:
        """Whether costs depend on `outside`: the model it was made for needs more memory than the cache keeps."""
        return self._cold

    @property
    def outside(self) -> float:
        """Share of values out of the cache, measured where none was given."""
        if self._outside is None and self._start:
            self._outside = self._share_in_place(self._start) if self._cold else USUAL
        return USUAL if self._outside is None else self._outside

    def with_outside(self, outside: float) -> Self:
        """Return the same model but for `outside`; measurements are shared."""
        return self._copy(outside)

    def _copy(self, outside: float | None) -> Self:
        """Return a copy with another share out of the cache, without finding out what the start says."""
        other = object.__new__(type(self))
        vars(other).update(super().__getstate__(), _outside=outside)
        return other

    def fitted_to(self, graph: Graph) -> Self:
        """Return the same model with the share out of the cache that this graph says, unless one was given."""
        fixed = self._given_outside is not None or not self._cold
        return self if fixed else self.with_outside(self._share_in_place(graph))

    def slower_in_place(self, graph: Graph) -> dict[str, tuple[float, float]]:
        """Return operators that take far longer in a graph than alone, by `taso_gym.cost.in_place`.

        None in one that stays in the cache, which isn't run.
        """
        return slower_in_place(*self._in_place(graph)) if self._cold else {}

    def recall(self, name: str) -> dict[str, Any] | None:
        """Return what the cache of measurements has under a name, of these sizes and this opset."""
        return self._node_times.recall(self._named(name))

    def remember(self, name: str, value: dict[str, Any]) -> None:
        """Put something into the cache of measurements."""
        self._node_times.remember(self._named(name), value)

    def _named(self, name: str) -> str:
        return f"{name} of opset {self._opset}[{self._dims.key}]"

    def _share_in_place(self, graph: Graph) -> float:
        """Return the share that a graph says; the usual one where it can't be run."""
        return share_outside(*self._in_place(graph))

    def _in_place(
        self, graph: Graph
    ) -> tuple[Mapping[str, int], Callable[[str, float], int], Mapping[str, tuple[int, float]]]:
        """Return how often each kernel is executed for a graph, what one costs, and what they take there."""
        found = self._node_times.found(self._named(f"in place {graph.hash:016x}"), partial(self._run, graph))
        regions = list(self.regions(graph))
        self.expect_regions(regions)
        executed = Counter(key for region in regions for key in self.executed_in(region) or ())
        return executed, self._node_times.of, found.get("kernels", {})

    def _run(self, graph: Graph) -> dict[str, Any]:
        if self._progress:
            self._progress("a whole graph")
        return {"kernels": kernel_times(graph, draw_inputs(graph, self._dims), self.runtime)}

    def __getstate__(self) -> dict[str, object]:
        """Find out what the start says before it is left behind."""
        return {**super().__getstate__(), "_outside": self.outside if self._start else self._outside}

    def time_of(self, keys: Iterable[str]) -> int:
        """Return the sum of the times, in picoseconds, of executed nodes that `executed_in` returned."""
        return sum(self._node_times.of(key, self.outside) for key in keys)

    def interval(self, region: Region) -> tuple[int, int] | None:
        """Return two times in picoseconds that a region's is between, by `NodeTimes.interval`; None where that is."""
        low = high = 0
        for key in self.executed_in(region) or ():
            if (ends := self._node_times.interval(key, self.outside)) is None:
                return None
            low, high = low + ends[0], high + ends[1]
        return low, high
