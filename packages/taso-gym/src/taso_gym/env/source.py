"""Where a start state comes from, as data: names and arguments that make it again in another process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from taso_gym import cost as costs
from taso_gym import models, onnx_io
from taso_gym.cost import bind_dims
from taso_gym.errors import OptionError, ReplayError
from taso_gym.graph import Graph
from taso_gym.models.splits import is_generated
from taso_gym.rules.rule import Numerics
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState

Model = str | Path | Graph


@dataclass(frozen=True)
class Source:
    """What is needed to make a start state again.

    Attributes:
        model: name of a network or path of a file; empty for a graph that was made in Python.
        model_kwargs: arguments of the network.
        rules: name or path of the rule set; empty for one that was made in Python.
        portable, numerics: as in `RuleSet.load`.
        cost: name of the cost model.
        cost_options: options that it was made with, of `taso_gym.cost.load`.
        dims: values of symbolic dimensions.
        limits: max_locations, max_nodes, max_edges of `RewriteState`.
        seed: of the random stream, None without one.
    """

    model: str = ""
    model_kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    rules: str = ""
    portable: bool = False
    numerics: Numerics = "reassociate"
    cost: str = "roofline"
    cost_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    limits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    seed: int | None = None

    def start(self, model: Model | None = None, rules: str | Path | RuleSet | None = None) -> RewriteState:
        """Make the start state; a model and rules that are given stand in for those named.

        Raises:
            ReplayError: neither given nor named, or arguments of wrong kinds.
            OptionError, ModelError, RuleError, CostError: what is named can't be loaded.
        """
        for kind, given, named in (("model", model, self.model), ("rules", rules, self.rules)):
            if given is None and not named:
                raise ReplayError(f"expected the {kind}, found a replay of {kind} made in Python: pass {kind}=…")
        arguments: Mapping[str, Any] = self.model_kwargs if model is None else {}
        try:
            _, graph = load_model(self.model if model is None else model, arguments)
            return self._state(graph, self.rules if rules is None else rules)
        except TypeError as error:
            raise ReplayError(f"expected arguments that a start can be made with, found others: {error}") from error

    def _state(self, graph: Graph, rules: str | Path | RuleSet) -> RewriteState:
        if not isinstance(rules, RuleSet):
            rules = RuleSet.load(rules, portable=self.portable, numerics=self.numerics)
        cost = costs.load(self.cost, dims=bind_dims(graph, self.dims), start=graph, **self.cost_options)
        return RewriteState(graph, rules, cost, **self.limits)


def names_file(model: str | Path) -> bool:
    """Whether a model is named by the path of a file, which needn't be there if its name says so."""
    return Path(model).suffix == ".onnx" or os.path.exists(model)


def load_model(model: Model, arguments: Mapping[str, Any]) -> tuple[str, Graph]:
    """Return name (empty for a graph) and graph.

    Args:
        model: name of a network, path of an ONNX file, or a graph.
        arguments: of the network; a file and a graph have none.

    Raises:
        OptionError: no such network or file, or arguments that it doesn't take.
        ModelError: the file can't be read.
    """
    if not isinstance(model, Graph) and (str(model) in models.NETWORKS or is_generated(str(model))):
        return str(model), models.build(str(model), **arguments)
    if arguments and (isinstance(model, Graph) or os.path.exists(model)):
        kind = "a graph" if isinstance(model, Graph) else f"the file {model}"
        raise OptionError(f"expected no model_kwargs for {kind}, found {', '.join(arguments)}")
    if isinstance(model, Graph):
        return "", model
    if names_file(model):
        return str(model), onnx_io.load(model)
    near = get_close_matches(str(model), models.NETWORKS, 1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    known = ", ".join(sorted(models.NETWORKS))
    raise OptionError(f"expected an ONNX file, a graph or a network among {known}, found {str(model)!r}{hint}")
