"""Contexts of the measured cost models: the group that a node runs in, and the layouts that it reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from taso_gym.cost.fusion import group, owner
from taso_gym.cost.layout import CONVOLUTIONS, Layouts, image_shape
from taso_gym.cost.window import Window
from taso_gym.graph import SINK, Node, output_index, producer_of, value_of
from taso_gym.signature import Signature
from taso_gym.tensor import TensorType

FUSED = "fused"
"""Context of a node that runs within the kernel of its group's anchor, which bears the cost."""

OWN, PLAIN, BLOCKED, BOTH = "own", "plain", "blocked", "both"


class Operand(NamedTuple):
    """Where a node of a region reads from.

    Attributes:
        kind: "node" (of the region), "input" (of the region), or "constant".
        place: position among the region's nodes or inputs; 0 for a constant.
        output: output of that node.
        value: of a scalar constant, where onnxruntime's fusions or kernels look at it.
    """

    kind: str
    place: int = 0
    output: int = 0
    value: float | None = None


class Part(NamedTuple):
    """A node of a region; None stands for an absent operand."""

    sig: Signature
    operands: tuple[Operand | None, ...]


class Wanted(NamedTuple):
    """A value of a region that is read outside: `PLAIN`, `BLOCKED` or `BOTH`."""

    node: int
    output: int
    layout: str


@dataclass(frozen=True)
class Region:
    """A group of nodes with the layouts at its border.

    Attributes:
        nodes: producers first.
        inputs: layout of each value that comes from outside. A value is converted once, at its producer's cost: a
            region that reads an input `PLAIN` or `BLOCKED` doesn't pay for that; with `OWN` it does: of graph inputs,
            and of what a view makes (it converts nothing) and the region reads in blocks.
        outputs: values that leave the region.
    """

    nodes: tuple[Part, ...]
    inputs: tuple[str, ...]
    outputs: tuple[Wanted, ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.nodes, self.inputs, self.outputs))

    def __hash__(self) -> int:
        """Return the hash of the fields, worked out once: regions are looked up far more often than made."""
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the fields without their hash, which another process works out differently."""
        return type(self), (self.nodes, self.inputs, self.outputs)


def region_of(graph: Window, node_id: int, layouts: Layouts) -> Region | str | None:
    """Return a node's context: its region, `FUSED`, or None for a node that runs by itself on plain values."""
    sig = graph.nodes[node_id].sig
    if sig.const or sig.op.view:
        return None
    if owner(graph, node_id) != node_id:
        return FUSED
    return _Builder(graph, layouts, group(graph, node_id)).build()


def lone(sig: Signature) -> Region:
    """Return the region of a signature by itself."""
    operands: list[Operand | None] = []
    inputs = 0
    for t in sig.inputs:
        if t is None:
            operands.append(None)
        elif t.const:
            operands.append(Operand("constant"))
        else:
            operands.append(Operand("input", inputs))
            inputs += 1
    outputs = tuple(Wanted(0, i, PLAIN) for i in range(len(sig.outputs)))
    return Region((Part(sig, tuple(operands)),), (OWN,) * inputs, outputs)


class _Builder:
    """Builds the region of a group."""

    def __init__(self, graph: Window, layouts: Layouts, members: tuple[int, ...]) -> None:
        self._graph, self._layouts, self._members = graph, layouts, members
        self._position = {node_id: i for i, node_id in enumerate(members)}
        self._inputs: dict[int, int] = {}

    def build(self) -> Region | None:
        nodes = tuple(self._part(self._graph.nodes[node_id]) for node_id in self._members)
        inputs = tuple(self._layout(value) for value in self._inputs)
        outputs = tuple(w for node_id in self._members for w in self._wanted(node_id))
        region = Region(nodes, inputs, outputs)
        return None if len(nodes) == 1 and region == lone(nodes[0].sig) else region

    def _part(self, node: Node) -> Part:
        pairs = zip(node.inputs, node.sig.inputs, strict=False)
        return Part(node.sig, tuple(None if v is None or t is None else self._operand(v, t.const) for v, t in pairs))

    def _operand(self, value: int, const: bool) -> Operand:
        if const:
            return Operand("constant", value=self._scalar(value))
        inside = self._position.get(producer_of(value))
        if inside is not None:
            return Operand("node", inside, output_index(value))
        return Operand("input", self._inputs.setdefault(value, len(self._inputs)))

    def _scalar(self, value: int) -> float | None:
        """Return the value of a one-element weight where it matters: to a fusion's pattern, or to Pow."""
        leaf = self._graph.leaves.get(value)
        if leaf is None or not isinstance(leaf.type, TensorType) or leaf.type.shape is None:
            return None
        if any(dim != 1 for dim in leaf.type.shape):
            return None
        if len(self._members) == 1 and self._graph.nodes[self._members[0]].sig.op.name != "Pow":
            return None
        return getattr(leaf.weight, "splat", None)

    def _layout(self, value: int) -> str:
        if image_shape(self._graph.type_of(value)) is None or value in self._graph.leaves or not self._layouts.block:
            return OWN
        if self._graph.nodes[producer_of(value)].sig.op.view and self._reads_blocks(value):
            return OWN
        return BLOCKED if self._graph.blocked[value] else PLAIN

    def _reads_blocks(self, value: int) -> bool:
        return any(map(self._in_blocks, (u for u in self._graph.uses[value] if producer_of(u) in self._position)))

    def _in_blocks(self, use: int) -> bool:
        """Whether a use takes its value in blocks; if not, it takes it plain."""
        consumer = producer_of(use)
        if consumer == SINK:
            return False
        sig, blocked = self._graph.nodes[consumer].sig, self._graph.blocked[value_of(consumer)]
        if sig.op.key in CONVOLUTIONS:
            return blocked and self._layouts.convolution_reads(sig, output_index(use))
        return blocked

    def _wanted(self, node_id: int) -> list[Wanted]:
        found: list[Wanted] = []
        for output in range(len(self._graph.nodes[node_id].sig.outputs)):
            value = value_of(node_id, output)
            uses = self._graph.uses[value]
            outside = [use for use in uses if producer_of(use) not in self._position]
            if uses and not outside:
                continue
            layout = PLAIN
            if image_shape(self._graph.type_of(value)) is not None and self._layouts.block and outside:
                blocked = sum(map(self._in_blocks, outside))
                layout = PLAIN if not blocked else BLOCKED if blocked == len(outside) else BOTH
            found.append(Wanted(self._position[node_id], output, layout))
        return found
