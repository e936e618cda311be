"""What a picture shows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from taso_gym.graph import Graph, value_of
from taso_gym.observation.features import FAMILIES, family_of
from taso_gym.render.placement import Placement, Point, place
from taso_gym.rules.state import RewriteState

_FILLS = "#bdbdbd #fdd0a2 #fee6ce #c7e9c0 #9ecae1 #c6dbef #dadaeb #bcbddc #fcc5e0 #eeeeee #d9d9d9 #ffffff"
COLOURS = dict(zip(FAMILIES, _FILLS.split(), strict=True))
"""Family of operators -> fill."""
MARK = "#d62728"


class Box(NamedTuple):
    """An operator or graph input; ``at`` is (column, layer)."""

    at: Point
    label: str
    detail: str
    fill: str
    marked: bool


class Wire(NamedTuple):
    """A value on its way to a consumer."""

    points: tuple[Point, ...]
    marked: bool


@dataclass(frozen=True)
class Scene:
    """A state to be shown.

    Attributes:
        state: the present one.
        start_ms: cost of the start graph.
        steps: steps taken.
        rule: name of the last rewrite, None at the start.
    """

    state: RewriteState
    start_ms: float
    steps: int
    rule: str | None

    @property
    def title(self) -> str:
        """Step, cost, improvement and last rewrite in one line."""
        cost = self.state.cost.time_ms
        saved = 100 * (self.start_ms - cost) / self.start_ms if self.start_ms else 0.0
        last = f" · {self.rule}" if self.rule else ""
        return f"step {self.steps} · {cost:.4g} ms ({saved:.2f} % saved) · {len(self.state.graph)} operators{last}"

    @property
    def marked(self) -> frozenset[int]:
        """The operators that the last rewrite made."""
        return frozenset(self.state.edit.added if self.rule and self.state.edit else ())

    @cached_property
    def placement(self) -> Placement:
        """Where everything stands."""
        return place(self.state.graph)

    @cached_property
    def boxes(self) -> list[Box]:
        """All operators and graph inputs."""
        return [_box(self.state.graph, i, self.placement.place(i), i in self.marked) for i in self.placement.layers]

    @cached_property
    def wires(self) -> list[Wire]:
        """All values between them."""
        marked, route = self.marked, self.placement.route
        return [Wire(route(a, b), a in marked or b in marked) for a, b in self.placement.wires]


def _box(graph: Graph, node_id: int, at: Point, marked: bool) -> Box:
    node = graph.nodes.get(node_id)
    if node is None:
        leaf = graph.leaves[value_of(node_id)]
        return Box(at, leaf.name, str(leaf.type), COLOURS["input"], marked)
    detail = str(node.sig.outputs[0]) if node.sig.outputs else ""
    return Box(at, node.sig.op.key, detail, COLOURS[family_of(node.sig)], marked)
