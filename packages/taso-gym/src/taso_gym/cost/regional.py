"""What the models have in common that cost a node by the region that onnxruntime runs it in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import Any, Self

from taso_gym.cost.base import FREE, SummedCost
from taso_gym.cost.devices import Device, fastest
from taso_gym.cost.dims import Dims
from taso_gym.cost.layout import Layouts
from taso_gym.cost.region import FUSED, Region, lone, region_of
from taso_gym.cost.roofline import bound_ps
from taso_gym.cost.window import Remembered
from taso_gym.cost.work import Work
from taso_gym.cost_model import Cost
from taso_gym.graph import Graph
from taso_gym.ops import OPERATORS
from taso_gym.signature import OpaqueOperator, Signature, signature

NEVER_PS = 10**15
"""Cost of what must never pay where the start isn't known: 1000 seconds, more than whatever it could replace."""


class Granted(Region):
    """The region of an operator of the start, as it is there: costed by its bound where nobody timed it."""

    def fits(self, region: Region | str | None, sig: Signature) -> bool:
        """Whether it is the region of a node with a signature."""
        if isinstance(region, str):
            return False
        other = region or lone(sig)
        return (self.nodes, self.inputs, self.outputs) == (other.nodes, other.inputs, other.outputs)


class StartedCost(SummedCost):
    """Base of the models that may not know a time, which cost that by `unknown_time`.

    Attributes:
        bound_device: what hardly any kernel is faster than: its roofline bound stands for a time that isn't known.
    """

    bound_device: Device = fastest("cpu")

    def __init__(self, name: str, dims: Mapping[str, int] | None, start: Graph | None = None, **options: Any) -> None:
        """Bind symbols as `SummedCost` does; ``start`` is the graph that a search begins with."""
        super().__init__(name, dims, **options)
        self._begin(start)

    def _begin(self, start: Graph | None) -> None:
        """Note the graph that a search begins with."""
        vars(self).pop("_at_start", None)
        self._start, self._begun = start, _identity(start)

    def started(self, start: Graph) -> Self:
        """Return the model for a search that begins with a graph: itself, or a copy if it was made for no such one."""
        if self._starts_with(start):
            return self
        other = copy(self)
        other._begin(start)
        return other

    def _starts_with(self, start: Graph) -> bool:
        """Whether the model was made for a search that begins with a graph, node by node and for its opset."""
        known = {i: sig for i, (sig, _) in self._at_start.items()}
        return self._begun == _identity(start) and known == {i: node.sig for i, node in start.operators()}

    def bound(self, dims: Mapping[str, int]) -> Self:
        """Return the model with these values of dimension symbols: itself, or a copy that knows no start yet."""
        other = super().bound(dims)
        if other is not self:
            vars(other).pop("_at_start", None)
        return other

    def opaque_time(self, sig: Signature, load: Work) -> tuple[int, int]:  # noqa: ARG002
        """Return time and number of kernels of an operator without an entry: by its bytes."""
        return bound_ps(self.bound_device, load), 1

    def unknown_time(self, region: Region, load: Work) -> tuple[int, int]:
        """Return time and number of kernels of a region that nobody timed: what never pays, more than the whole start.

        One that the start has costs a roofline bound, which hardly any takes less than: no more may be gained by taking
        it away.
        """
        return (bound_ps(self.bound_device, load) if self.grants(region) else self._never_ps), 1

    def grants(self, region: Region) -> bool:
        """Whether the start has a region, wherever this one is."""
        return describe(region, self._dims) in self._descriptions

    @cached_property
    def _descriptions(self) -> frozenset[str]:
        sigs = {sig for sig, _ in self._at_start.values() if not isinstance(sig.op, OpaqueOperator)}
        return frozenset(describe(lone(sig), self._dims) for sig in sigs)

    @cached_property
    def _at_start(self) -> dict[int, tuple[Signature, Hashable]]:
        """Signatures and contexts of the start's operators, by id."""
        return {i: (node.sig, None) for i, node in self._start.operators()} if self._start else {}

    @cached_property
    def _never_ps(self) -> int:
        """More than the whole start takes, by a picosecond and one for each operator, which searches count as such."""
        whole = sum(self.node(*known).time_ps for known in self._at_start.values())
        return whole + len(self._at_start) + 1 if self._at_start else NEVER_PS

    def __getstate__(self) -> dict[str, object]:
        """Leave the start with its weights behind when pickled or copied."""
        kept = {**super().__getstate__(), "_at_start": self._at_start, "_start": None}
        return {name: value for name, value in kept.items() if name not in ("_never_ps", "_descriptions")}


class RegionalCost(StartedCost):
    """Base of the models whose contexts are regions.

    An opaque operator, which no rewrite brings or takes away, is costed by `opaque_time`, and a region whose time isn't
    known by `unknown_time`: as `Granted` only at the operator of the start that has it there. So of two equal graphs
    the one that took such an operator away and made it anew costs more.
    """

    contextual = True

    @property
    @abstractmethod
    def layouts(self) -> Layouts:
        """The layouts of the device."""

    @abstractmethod
    def region_time(self, region: Region, load: Work) -> tuple[int, int]:
        """Return time in picoseconds and number of kernels of a region, whose anchor does ``load``.

        Raises:
            CostError: it can't be costed.
        """

    def context(self, graph: Graph, node_id: int) -> Hashable:
        """Return the region that a node runs in; `Granted` where a node of the start runs as it does there."""
        region, node = self._contexts(graph, node_id), graph.nodes[node_id]
        sig, known = self._at_start.get(node_id, (None, None))
        return known if isinstance(known, Granted) and sig == node.sig and known.fits(region, node.sig) else region

    def grants(self, region: Region) -> bool:
        """Whether a region is that of an operator of the start: a second one isn't, nor what is made anew."""
        return isinstance(region, Granted)

    @cached_property
    def _at_start(self) -> dict[int, tuple[Signature, Hashable]]:
        if not (start := self._start):
            return {}
        contexts = ((i, node.sig, self._contexts(start, i)) for i, node in start.operators())
        return {i: (sig, self._granted(sig, context)) for i, sig, context in contexts}

    @staticmethod
    def _granted(sig: Signature, region: Region | str | None) -> Hashable:
        if sig.const or sig.op.view or isinstance(sig.op, OpaqueOperator) or isinstance(region, str):
            return region
        region = region or lone(sig)
        return Granted(region.nodes, region.inputs, region.outputs)

    def affected(self, before: Graph, after: Graph, node_ids: Iterable[int]) -> set[int]:
        """Return the operators whose regions may differ."""
        return self._contexts.affected(before, after, node_ids)

    @cached_property
    def _contexts(self) -> Remembered[Region | str | None]:
        layouts = self.layouts
        return Remembered(lambda window, node_id: region_of(window, node_id, layouts), layouts)

    def time(self, sig: Signature, context: Hashable, load: Work) -> tuple[int, int]:
        """Return the time of the region that a node anchors, and how many kernels it takes; nothing within one."""
        if isinstance(sig.op, OpaqueOperator):
            return (0, 0) if context == FUSED else self.opaque_time(sig, load)
        region = anchored(sig, context)
        return self.region_time(region, load) if region else (0, 0)

    @property
    def view_ps(self) -> int:
        """Picoseconds that running a node takes which moves nothing; 0 where that isn't known."""
        return 0

    def view(self, sig: Signature) -> Cost:
        """Return what running a node takes; runtimes take an Identity out."""
        return FREE if sig.op.name == "Identity" else Cost(self.view_ps)

    def regions(self, graph: Graph) -> Iterator[Region]:
        """Yield the region of every node of a graph that anchors one."""
        for node_id, node in graph.operators():
            if region := anchored(node.sig, self._contexts(graph, node_id)):
                yield region

    def __getstate__(self) -> dict[str, object]:
        """Leave what is found again behind, too."""
        return {name: value for name, value in super().__getstate__().items() if name != "_contexts"}


def _identity(start: Graph | None) -> tuple[int, tuple[tuple[str, int], ...]] | None:
    """Return what tells graphs of equal signatures apart: how these are connected, and the opsets."""
    return (start.hash, tuple(sorted(start.info.opsets.items()))) if start else None


def anchored(sig: Signature, context: Hashable) -> Region | None:
    """Return the region that a node in a context anchors: none of one within another's, or that isn't costed by one."""
    if sig.const or sig.op.view or context == FUSED or isinstance(sig.op, OpaqueOperator):
        return None
    return context if isinstance(context, Region) else lone(sig)


def describe(region: Region, dims: Dims) -> str:
    """Return a text for a region, the same in every process: equal texts mean equal regions, symbols bound."""
    bound = [bind_signature(part.sig, dims) for part in region.nodes]
    parts = [(f"{s.hash:016x}", str(s), tuple(p.operands)) for s, p in zip(bound, region.nodes, strict=True)]
    return f"{parts} {region.inputs} {region.outputs}"


def bind_signature(sig: Signature, dims: Dims) -> Signature:
    """Return a signature of an operator of the table with an integer for every dimension symbol."""
    types = [*sig.inputs, *sig.outputs]
    if all(t is None or t.is_static for t in types):
        return sig
    attrs = {name: dims.bind_attr(value, types) for name, value in sig.attrs}
    return signature(OPERATORS[sig.op.domain, sig.op.name], attrs, dims.bind(types)[: len(sig.inputs)])
