"""Cost models: what a node, and so a graph, costs on a device.

A specification is a name of `COST_MODELS`, and where it takes one, a colon and an argument: ``roofline``,
``roofline:h200``, ``recorded:epyc-zen4-1t``, ``onnxruntime``, ``onnxruntime:cuda``, ``cupy``.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from taso_gym.checks import check_kind
from taso_gym.cost.dims import Dims, bind_dims
from taso_gym.cost_model import Cost, CostModel
from taso_gym.errors import OptionError

if TYPE_CHECKING:
    from taso_gym.graph import Graph

__all__ = ["COST_MODELS", "Cost", "CostModel", "Dims", "bind_dims", "load", "options_of"]

COST_MODELS = {
    "roofline": "taso_gym.cost.roofline:RooflineCost",
    "recorded": "taso_gym.cost.recorded:RecordedCost",
    "onnxruntime": "taso_gym.cost.onnxruntime:OnnxRuntimeCost",
    "cupy": "taso_gym.cost.cupy:CupyCost",
}
"""Name -> import string of a class that is called with (argument, dims, **options)."""

GIVEN = frozenset({"argument", "dims", "start"})
"""Parameters of these classes that are no options."""


def load(
    spec: str | CostModel, dims: Mapping[str, int] | None = None, *, start: Graph | None = None, **options: Any
) -> CostModel:
    """Return the cost model of a specification, or the given one, for a search from ``start``.

    Args:
        spec: see above, or a model.
        dims: values of dimension symbols; `bind_dims` completes them for a graph. A given model keeps those it has.
        start: the graph that a search begins with, for models that know some operators only (``recorded``).
        options: keywords of the class that `COST_MODELS` names; none for a given model.

    Raises:
        OptionError: an unknown model, argument or option; the message names the choices.
        MissingPackageError: the model needs a package that isn't installed.
        CostError: its device, provider or table is missing.
    """
    if not isinstance(spec, str):
        if options:
            raise OptionError(f"expected no options beside a cost model that is made, found {', '.join(options)}")
        return _started(spec, dims, start)
    name, _, argument = spec.partition(":")
    factory, parameters = _factory(spec)
    choices = [p for p in parameters if p not in GIVEN]
    for option in options:
        if option not in choices:
            known = f"an option of {name} among {', '.join(choices)}" if choices else f"no options for {name}"
            raise OptionError(f"expected {known}, found {option!r}")
    return factory(argument, dims, **options, **({"start": start} if "start" in parameters else {}))


def _started(model: Any, dims: Mapping[str, int] | None, start: Graph | None) -> CostModel:
    """Return a given model, told sizes that it has none for, and what a search begins with where it asks for that.

    Raises:
        OptionError: it is no cost model, or ``dims`` aren't sizes.
    """
    from taso_gym.cost.base import SummedCost
    from taso_gym.cost.regional import StartedCost

    if isinstance(model, type) or not isinstance(model, CostModel):
        raise OptionError(f"expected a name or CostModel as cost, found {model!r}")
    if isinstance(model, SummedCost):
        model = model.bound({**Dims(dims).given, **model.dims})
    return model.started(start) if start and isinstance(model, StartedCost) else model


def options_of(spec: str) -> frozenset[str]:
    """Return the names of the options that `load` takes for a specification.

    Raises:
        OptionError: no name, or an unknown model; the message names the choices.
        MissingPackageError: the model needs a package that isn't installed.
    """
    check_kind("cost", spec, (str,), "a name")
    return frozenset(_factory(spec)[1]) - GIVEN


def _factory(spec: str) -> tuple[Any, Mapping[str, inspect.Parameter]]:
    """Return the class that makes a specification's model, and its parameters."""
    name = spec.partition(":")[0]
    if name not in COST_MODELS:
        raise OptionError(f"expected a cost model among {', '.join(COST_MODELS)}, found {spec!r}")
    module, _, attribute = COST_MODELS[name].partition(":")
    factory = getattr(import_module(module), attribute)
    return factory, inspect.signature(factory).parameters
