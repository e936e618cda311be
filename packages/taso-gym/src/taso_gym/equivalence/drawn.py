"""Inputs that are given or drawn, and what the model that is right gives on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from taso_gym.equivalence.compare import Value, has_finite
from taso_gym.equivalence.draw import ROUNDS, InputKind, Sizes, bind_sizes, draw, draw_defaults, input_kinds
from taso_gym.equivalence.exact import exact_magnitude
from taso_gym.equivalence.runtime import Feeds
from taso_gym.equivalence.subject import Subject
from taso_gym.errors import EquivalenceError
from taso_gym.graph import Graph
from taso_gym.tensor import FLOATS, TensorType, numpy_dtype


class Draw(NamedTuple):
    """Inputs that the first model ran on, and what it gave.

    Attributes:
        sizes: values of the dimension symbols.
        feeds: inputs by name.
        outputs: of the first model, in order.
        whole: magnitude of the whole numbers that were drawn, on which neither model rounds; else None.
    """

    sizes: Mapping[str, int]
    feeds: Feeds
    outputs: list[Value]
    whole: int | None = None


def run_on_given(model: Subject, inputs: Sequence[Feeds]) -> list[Draw]:
    """Run a model on inputs; a list for a tensor, or a number, is one.

    Raises:
        EquivalenceError: it doesn't run on all of them.
    """
    inputs = [_as_arrays(model.graph, feeds) for feeds in inputs]
    results = model.run(inputs)
    for result in results:
        if isinstance(result, str):
            raise EquivalenceError(f"expected the first model to run on the given inputs, found: {result}")
    return [Draw({}, feeds, result) for feeds, result in zip(inputs, results, strict=True) if isinstance(result, list)]


def _as_arrays(graph: Graph, feeds: Feeds) -> Feeds:
    """Return inputs with an array for each tensor, of its element type where none is said."""
    types = {graph.leaves[value].name: graph.type_of(value) for value in graph.info.inputs}
    found = dict(feeds)
    for name, value in feeds.items():
        t = types.get(name)
        if isinstance(t, TensorType) and not hasattr(value, "dtype"):
            try:
                found[name] = np.asarray(value, numpy_dtype(t.dtype))
            except (TypeError, ValueError) as error:
                raise EquivalenceError(f"expected a tensor for input {name!r}, found {value!r:.60}: {error}") from error
    return found


class _Plan(NamedTuple):
    """How one set of inputs is drawn: see `Draw` and `Sizes`; ``overrides``: defaults are drawn, too."""

    sizes: Mapping[str, int]
    binary: bool
    whole: int | None = None
    overrides: bool = False


def run_on_drawn(model: Subject, exact: Sequence[Graph], draws: int, seed: int) -> list[Draw]:
    """Draw inputs of ever tamer kinds until the model runs on some.

    If no graph of ``exact`` rounds whole numbers, these are drawn, and normal ones last: what holds for whole numbers
    alone, as that they are truncated to themselves, is no equality. For both there are at least two draws. Defaults of
    inputs are overridden in one of several draws. What gives nothing, or nothing finite, as attention does where all is
    masked, counts only if nothing tamer gives more.

    Raises:
        EquivalenceError: it runs on none.
    """
    kinds = input_kinds(model.graph)
    message, empty, count = "it was never run", list[Draw](), 0
    for number, rounds in enumerate(ROUNDS):
        rng = np.random.default_rng((seed, number))
        plans = _plans(model.graph, kinds, exact, [rounds[i % len(rounds)] for i in range(draws)])
        good, failure = _run(model, kinds, plans, rng)
        if good and plans[-1].whole is None and all(each.whole for each in good):
            good += _run(model, kinds, [plans[-1]._replace(sizes=good[0].sizes, overrides=False)], rng)[0]
        if any(has_finite(value) for each in good for value in each.outputs):
            return good
        empty, message, count = empty or good, failure or message, count + len(plans)
    if empty:
        return empty
    raise EquivalenceError(
        f"expected inputs that the first model runs on, found none among {count} drawn ones (--dim or dims= gives "
        f"sizes, inputs= values): {message}"
    )


def _plans(graph: Graph, kinds: Sequence[InputKind], exact: Sequence[Graph], rounds: Sequence[Sizes]) -> list[_Plan]:
    types = [kind.type for kind in kinds]
    sizes = [bind_sizes(types, each, {} if i else graph.info.dims) for i, each in enumerate(rounds)]
    plans = [_Plan(bound, each.binary) for bound, each in zip(sizes, rounds, strict=True)]
    magnitudes = [exact_magnitude(exact, kinds, bound) if exact else None for bound in sizes]
    found = [magnitude for magnitude in magnitudes if magnitude is not None]
    if len(found) == len(plans):
        inputs = [graph.type_of(value) for value in graph.info.inputs]
        has_floats = any(isinstance(type_, TensorType) and type_.dtype in FLOATS for type_ in inputs)
        whole = [plan._replace(whole=min(found)) for plan in plans]
        plans = [*(whole[:-1] or whole), plans[-1]] if has_floats else whole
    if len(plans) > 1 and plans[-1].whole is None:
        plans[-1] = plans[-1]._replace(overrides=True)
    return plans


def _run(
    model: Subject, kinds: Sequence[InputKind], plans: Sequence[_Plan], rng: np.random.Generator
) -> tuple[list[Draw], str | None]:
    """Return what a model gives on inputs drawn as planned, where it runs, and a message from where it doesn't."""
    feeds = [
        {k.name: draw(k, plan.sizes, rng, binary=plan.binary, whole=plan.whole) for k in kinds}
        | (draw_defaults(model.graph, rng) if plan.overrides else {})
        for plan in plans
    ]
    results = model.run(feeds)
    good = [
        Draw(plan.sizes, feed, result, plan.whole)
        for plan, feed, result in zip(plans, feeds, results, strict=True)
        if isinstance(result, list)
    ]
    return good, next((result for result in results if isinstance(result, str)), None)
