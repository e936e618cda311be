"""Times of regions as sums over the nodes that onnxruntime executes for them, measured together where they can be."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from taso_gym.cost.executed import Executed, executed_in
from taso_gym.cost.node_keys import COLD, bytes_of
from taso_gym.cost.node_times import NodeTimes
from taso_gym.cost.region import Region
from taso_gym.cost.regional import RegionalCost, anchored, describe
from taso_gym.cost.roofline import bound_ps
from taso_gym.cost.runtime import Runtime
from taso_gym.cost.small_model import OPSET, SmallModel
from taso_gym.cost.work import region_work
from taso_gym.errors import KernelError, OutOfMemoryError
from taso_gym.signature import Signature

TOGETHER, TOGETHER_BYTES = 24, 1 << 28
"""So many nodes are measured together, or fewer that read and write so many bytes."""


class MeasuredCost(RegionalCost):
    """Base of the cost model that measures regions, and what it measures with.

    Attributes:
        runtime: what is measured on.
    """

    runtime: Runtime
    _node_times: NodeTimes
    _progress: Callable[[str], None] | None = None
    _opset = OPSET
    _cold = False

    def __init__(self, *args: Any, **options: Any) -> None:
        """Take what `RegionalCost` does, and expect nothing."""
        super().__init__(*args, **options)
        self._expected: dict[Region, list[Executed]] = {}

    def __getstate__(self) -> dict[str, object]:
        """Leave behind what is expected."""
        return {**super().__getstate__(), "_expected": {}}

    def least_ps(self, sig: Signature, context: Hashable = None) -> int:
        """Return the picoseconds of a node whose region was measured, of another a bound that hardly any undercuts."""
        region = anchored(sig, context)
        if region is None or (sig, context) in self._nodes or self._node_times.recall(self._name_of(region)):
            return self.node(sig, context).time_ps
        return bound_ps(self.bound_device, region_work(region, self._dims))

    def expect(self, nodes: Iterable[tuple[Signature, Hashable]]) -> None:
        """Prepare to be asked for the costs of nodes, by `expect_regions`."""
        regions = (anchored(sig, context) for sig, context in nodes if (sig, context) not in self._nodes)
        self.expect_regions(region for region in regions if region)

    def expect_regions(self, regions: Iterable[Region]) -> None:
        """Measure what is executed for regions; out of the cache together, when one is asked for.

        Emptying the cache for each by itself takes most of a search that begins with no times.

        Raises:
            CostError: the cache can't be used, or the provider doesn't work.
        """
        for region in regions:
            if not self._cold:
                self.executed_in(region)
                continue
            if region in self._expected or self._node_times.recall(self._name_of(region)):
                continue
            with suppress(KernelError, MemoryError, OutOfMemoryError):  # it is found again when it is asked for
                self._expected[region] = executed = self._started_on(region)
                for node in executed:
                    self._node_times.measure(node, cold=False)
            together = [node for executed in self._expected.values() for node in executed]
            if len(together) >= TOGETHER or sum(bytes_of(node.key) for node in together) > TOGETHER_BYTES:
                self._measure_expected()

    def _measure_expected(self) -> None:
        """Measure all that is expected."""
        expected, self._expected = self._expected, {}
        self._node_times.measure_together(node for executed in expected.values() for node in executed)
        for region, executed in expected.items():
            self._node_times.found(self._name_of(region), partial(self._measure, executed))

    def executed_in(self, region: Region) -> list[str] | None:
        """Return the keys of the nodes that onnxruntime executes for a region, all measured; None where it fails.

        Raises:
            CostError: the cache can't be used, the provider doesn't work, or there is no room for temporary files.
        """
        if region in self._expected:
            self._measure_expected()
        name = self._name_of(region)

        def measure() -> dict[str, Any]:
            return self._measure(self._started_on(region))

        known = self._node_times.found(name, measure)
        if not self._node_times.load(known.get("executed", ())):  # a cache that had them may have been set aside
            known = self._node_times.found(name, measure, anew=True)
        return known.get("executed")

    def executed_alone(self, region: Region) -> list[Executed]:
        """Return the nodes that onnxruntime executes for a region, which aren't measured.

        Raises:
            CostError: onnxruntime doesn't take or run it.
        """
        return executed_in(SmallModel(region, self._dims, self._opset), self.runtime)

    def _name_of(self, region: Region) -> str:
        return f"region of opset {self._opset} {COLD if self._cold else ''}{describe(region, self._dims)}"

    def _started_on(self, region: Region) -> list[Executed]:
        if self._progress:
            self._progress(str(region.nodes[0].sig))
        return self.executed_alone(region)

    def _measure(self, executed: Iterable[Executed]) -> dict[str, Any]:
        return {"executed": [self._measure_node(node) for node in executed]}

    def _measure_node(self, node: Executed) -> str:
        return self._node_times.measure(node, self._cold)
