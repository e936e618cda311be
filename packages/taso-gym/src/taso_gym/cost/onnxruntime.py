"""The measured cost model: each node as onnxruntime executes it, after its own fusions and layout changes.

A node's context is the group that onnxruntime runs it in and the layouts around that (`taso_gym.cost.region`). Each
such region is built as a small model, optimised by onnxruntime itself, taken apart into the nodes that it executes,
and each of those is measured by itself, once: equal nodes of other regions and models share the figure. Everything is
kept in a cache on disk (`taso_gym.cost.cache`).

An operator whose kernel fails is recorded as failed, and no rewrite to it pays (`RegionalCost.unknown_time`). Neither
does one to what needs more memory than there is, but that isn't recorded: there may be more the next time.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

from taso_gym.cost.devices import fastest
from taso_gym.cost.doubts import worth_turns
from taso_gym.cost.executed import Executed, block_channels, executed_nodes, smallest_view
from taso_gym.cost.layout import Layouts
from taso_gym.cost.node_times import NodeTimes, Turn
from taso_gym.cost.opaque_model import time_alone
from taso_gym.cost.placed import PlacedCost
from taso_gym.cost.region import Region
from taso_gym.cost.runtime import Runtime
from taso_gym.cost.small_model import draw_inputs
from taso_gym.cost.work import Work
from taso_gym.graph import Graph
from taso_gym.onnx_io import to_model
from taso_gym.signature import Signature


class OnnxRuntimeCost(PlacedCost):
    """Measured costs; deterministic only as far as its cache is filled."""

    deterministic = False

    def __init__(
        self,
        argument: str = "",
        dims: Mapping[str, int] | None = None,
        *,
        threads: int = 1,
        cache: str | Path | None = None,
        progress: Callable[[str], None] | None = None,
        start: Graph | None = None,
        outside: float | None = None,
    ) -> None:
        """Make the model of a provider on this machine.

        Args:
            argument: "cpu" or "cuda"; empty for "cpu".
            dims: values of dimension symbols.
            threads: intra-op threads that are costed.
            cache: file of the measurements; None for the user's.
            progress: called with a description of each region before it is measured.
            start: graph that a search begins with: kernels are those of its opset, and where it needs more memory than
                the cache of the CPU keeps, operators are measured with what they read in the cache and out of it.
            outside: share of the values that operators read and write, besides weights, that is out of the cache where
                the weights are, from 0 to 1 (`NodeTimes.of`); None for what the start says (`taso_gym.cost.in_place`).

        Raises:
            MissingPackageError: onnxruntime isn't installed.
            OptionError: an unknown provider, no number of threads from 1 on, or no share.
            CostError: the provider isn't there.
        """
        self._provider = argument or "cpu"
        self.runtime = Runtime(self._provider, threads)
        self.bound_device = fastest(self._provider, self.runtime.threads)
        given = {"threads": self.runtime.threads, "cache": None if cache is None else str(cache), "outside": outside}
        super().__init__(f"onnxruntime:{self._provider}", dims, start, **given)
        self._node_times, self._progress = NodeTimes(self.runtime, cache), progress
        self._place(start, outside)

    @property
    def key(self) -> str:
        """Device, provider, version, threads, opset, the share out of the cache if one was given, bound dimensions."""
        outside = "" if self._given_outside is None else f", {self._given_outside:g} out of the cache"
        return f"{self.runtime.key}, opset {self._opset}{outside}[{self._dims.key}]"

    def region_time(self, region: Region, load: Work) -> tuple[int, int]:
        """Return the sum over the nodes that onnxruntime executes for a region, and how many these are."""
        nodes = self.executed_in(region)
        return self.unknown_time(region, load) if nodes is None else (self.time_of(nodes), len(nodes))

    @property
    def view_ps(self) -> int:
        """Picoseconds that running a node takes on a CPU which moves nothing."""
        return self.time_of([self._measure_node(smallest_view(self.runtime))]) if self._provider == "cpu" else 0

    def opaque_time(self, sig: Signature, load: Work) -> tuple[int, int]:
        """Return the time of an opaque operator as it stands in its file; by its bytes where it doesn't run alone.

        Without its neighbours, on values that are drawn: an operator that needs certain values may refuse them.
        """
        known = self._opaque(sig)
        return (known["ps"], 1) if "ps" in known else super().opaque_time(sig, load)

    def runs_alone(self, sig: Signature) -> bool:
        """Whether the time of an opaque operator was measured."""
        return "ps" in self._opaque(sig)

    def _opaque(self, sig: Signature) -> dict[str, Any]:
        bound = ", ".join(map(str, self._dims.bind([*sig.inputs, *sig.outputs])))
        name = f"opaque {sig.hash:016x} {sig.op.key}({bound})"
        return self._node_times.found(name, partial(self._measure_opaque, sig))

    def _measure_opaque(self, sig: Signature) -> dict[str, Any]:
        if self._progress:
            self._progress(str(sig))
        return {"ps": time_alone(sig, self._dims, self.runtime)}

    def executed(self, graph: Graph) -> list[tuple[str, float]]:
        """Return (node, milliseconds) of all that onnxruntime executes for a whole graph, but for views.

        Raises:
            CostError: onnxruntime doesn't take or run the graph.
        """
        return [(key, self.time_of([key]) / 1e9) for key in map(self._measure_node, self.executed_whole(graph))]

    def executed_whole(self, graph: Graph) -> list[Executed]:
        """Return the nodes that onnxruntime executes for a whole graph, on values that are drawn; none is measured.

        Raises:
            CostError: onnxruntime doesn't take or run the graph.
        """
        return executed_nodes(to_model(graph).SerializeToString(), draw_inputs(graph, self._dims), self.runtime)

    def in_turns(
        self, graphs: Iterable[Graph], seconds: float = math.inf, progress: Callable[[int, int], None] | None = None
    ) -> Self:
        """Return the same model, but what graphs execute is measured again, in turns (`taso_gym.cost.node_times`).

        What was measured in turns before is measured again only if these times scatter.

        Args:
            graphs: one at least.
            seconds: no measurement begins after so many, but of what wasn't measured at all, half of them to prepare
                what is measured: nodes whose time matters little, or is known well, may stay as they are, and so may
                those for whose operands there is no room in memory beside the others'.
            progress: called with (measurements done, measurements in all).

        Raises:
            CostError: a graph can't be costed.
        """
        return self.regions_in_turns(Counter(r for graph in graphs for r in self.regions(graph)), seconds, progress)

    def regions_in_turns(
        self,
        regions: Mapping[Region, int],
        seconds: float = math.inf,
        progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """Return the same as `in_turns` of graphs that have each region so many times."""
        began, times, views = time.monotonic(), self._node_times, list[Turn]()
        if self._provider == "cpu":
            view = smallest_view(self.runtime)
            views = [Turn(key, view) for key in times.unsettled([self._measure_node(view)])]
        self.expect_regions(regions)
        turns = worth_turns(
            regions, lambda r: self.executed_in(r) or (), self.executed_alone, times, self.outside, began + seconds / 2
        )
        other = copy(self)
        other._node_times = times.in_turns([*views, *turns], began + seconds - time.monotonic(), progress)
        return other

    def cautious(self) -> Self:
        """Return the same model, but what was measured once only costs more than it probably does."""
        other = copy(self)
        other._node_times = self._node_times.cautious()
        return other

    @property
    def layouts(self) -> Layouts:
        """The layouts of the provider: how many channels a block has on this CPU; none on a GPU."""
        return self._layouts

    @cached_property
    def _layouts(self) -> Layouts:
        if self._provider != "cpu":
            return Layouts(0)
        times = self._node_times
        known = times.recall("block") or times.remember("block", {"channels": block_channels(self.runtime)})
        return Layouts(known["channels"])

    def __getstate__(self) -> dict[str, object]:
        """Leave behind what another machine says otherwise."""
        return {name: value for name, value in super().__getstate__().items() if name != "_layouts"}
