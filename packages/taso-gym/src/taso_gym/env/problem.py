"""What an environment plays: start states, rules, cost model, sizes; immutable, so clones and vectors share it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from taso_gym import cost as costs
from taso_gym.cost import CostModel, Dims, bind_dims
from taso_gym.cost.base import SummedCost
from taso_gym.env.source import Model, Source, load_model
from taso_gym.errors import OptionError
from taso_gym.graph import Graph
from taso_gym.observation import Features, Layout, Observer, Scale, count_rows
from taso_gym.rules.pattern import pattern_of
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.signature import symbols_of

ROOM = 1.5
"""Rows of nodes and edges, relative to the start graph's, where nothing else is asked for."""


@dataclass(frozen=True, eq=False)
class Start:
    """A model that episodes begin with.

    Attributes:
        number: among the environment's models.
        name: what ``options["model"]`` calls it: name of the network, path as given, or ``graph`` and its number.
        graph: as loaded.
        rules, cost, layout: those of the environment.
        source: what makes it again.
    """

    number: int
    name: str
    graph: Graph
    rules: RuleSet
    cost: CostModel
    layout: Layout
    source: Source

    @cached_property
    def state(self) -> RewriteState:
        """The start state with its matches; no rewrite is made beforehand where its costs would be measured."""
        state = RewriteState(self.graph, self.rules, self.cost, **self.source.limits)
        return state.prepare() if self.cost.deterministic else state.prepare(rewrites=0)

    @cached_property
    def facts(self) -> tuple[np.float64, np.int64, NDArray[np.uint8]]:
        """What every ``info`` says alike: cost of the start in ms, number of the model, digest of the rules."""
        digest = np.frombuffer(bytes.fromhex(self.rules.digest), np.uint8)
        return np.float64(self.state.cost.time_ps / 1e9), np.int64(self.number), digest

    @cached_property
    def observer(self) -> Observer:
        """An observer at the start; episodes take a fork of it."""
        dims = Dims(bind_dims(self.graph, self.source.dims))
        return Observer(self.layout, Features(Scale(self.cost, dims, self.state.cost)), self.state)


@dataclass(frozen=True)
class Sizes:
    """The sizes of the spaces as the environment's arguments give them; None stands for `ROOM` times the start's."""

    locations: int
    matches: int
    max_nodes: int | None
    max_edges: int | None
    location_counts: bool
    extra_views: tuple[str, ...]

    def layout(self, graphs: Sequence[Graph], rules: RuleSet) -> Layout:
        """Return a layout that has room for all graphs.

        Raises:
            OptionError: ``max_nodes`` or ``max_edges`` is less than a graph has.
        """
        nodes, edges = map(max, zip(*map(count_rows, graphs), strict=True))
        for name, most, found in (("max_nodes", self.max_nodes, nodes), ("max_edges", self.max_edges, edges)):
            if most is not None and most < found:
                raise OptionError(f"expected {name} of at least {found} for this graph, found {most}")
        return Layout(
            max_nodes=with_room(nodes) if self.max_nodes is None else self.max_nodes,
            max_edges=with_room(edges) if self.max_edges is None else self.max_edges,
            xfers=len(rules),
            locations=self.locations,
            matches=self.matches,
            pattern_nodes=max((len(pattern_of(rule).nodes) for rule in rules), default=1),
            location_counts=self.location_counts,
            extra_views=self.extra_views,
        )


def with_room(rows: int) -> int:
    """Return how many rows observations have by default where the start has so many."""
    return max(1, round(ROOM * rows))


def make_starts(
    chosen: Sequence[Model], base: Source, rules: RuleSet, cost: str | CostModel, sizes: Sizes
) -> tuple[Start, ...]:
    """Load models and find sizes that fit all of them; ``base`` says what their sources have in common.

    Raises:
        OptionError: a model that is neither network, file nor graph, or two of one name.
        ModelError: a file that can't be read.
    """
    if not chosen:
        raise OptionError("expected at least one model, found none")
    named = [load_model(model, base.model_kwargs) for model in chosen]
    names = [name or f"graph{i}" for i, (name, _) in enumerate(named)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise OptionError(f"expected models with different names, found {twice[0]!r} twice")
    graphs = [graph for _, graph in named]
    symbols = symbols_of(graph.type_of(value) for graph in graphs for value in graph.info.inputs)
    if unknown := sorted(set(base.dims) - symbols):
        known = f"a dimension among {', '.join(sorted(symbols))}" if symbols else "no dims for a model without symbols"
        raise OptionError(f"expected {known}, found {unknown[0]!r}")
    layout = sizes.layout(graphs, rules)
    given, starts = cost if isinstance(cost, SummedCost) else None, list[Start]()
    for number, (name, graph) in enumerate(named):
        own = given.dims if given else {}
        dims = bind_dims(graph, {**own, **base.dims})
        model = costs.load(given.bound(dims) if given else cost, dims=dims, start=graph)
        limits = {
            "max_locations": layout.locations,
            "max_nodes": max(1, layout.max_nodes - len(graph.info.inputs)),
            "max_edges": layout.max_edges,
        }
        dims = {**graph.info.dims, **own, **base.dims}
        made = {"cost": model.name, "cost_options": dict(getattr(model, "options", {}))}
        source = replace(base, model=name, dims=dims, limits=limits, **made)
        starts.append(Start(number, names[number], graph, rules, model, layout, source))
    return tuple(starts)
