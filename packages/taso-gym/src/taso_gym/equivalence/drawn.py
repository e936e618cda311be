"""Inputs that are given or drawn, and what the model that is right gives on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from taso_gym.equivalence.compare import Value, has_finite
from taso_gym.equivalence.draw import ROUNDS, bind_sizes, draw, input_kinds
from taso_gym.equivalence.exact import exact_magnitude
from taso_gym.equivalence.runtime import Feeds
from taso_gym.equivalence.subject import Subject
from taso_gym.errors import EquivalenceError
from taso_gym.graph import Graph


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
    """Run a model on inputs.

    Raises:
        EquivalenceError: it doesn't run on all of them.
    """
    results = model.run(inputs)
    for result in results:
        if isinstance(result, str):
            raise EquivalenceError(f"expected the first model to run on the given inputs, found: {result}")
    return [Draw({}, feeds, result) for feeds, result in zip(inputs, results, strict=True) if isinstance(result, list)]


def run_on_drawn(model: Subject, exact: Sequence[Graph], draws: int, seed: int) -> list[Draw]:
    """Draw inputs of ever tamer kinds until the model runs on some: whole numbers if no graph of ``exact`` rounds.

    What gives nothing finite, as attention does where all is masked, counts only if nothing tamer gives more.

    Raises:
        EquivalenceError: it runs on none.
    """
    kinds = input_kinds(model.graph)
    message, empty = "it was never run", list[Draw]()
    for number, plans in enumerate(ROUNDS):
        rng = np.random.default_rng((seed, number))
        planned = [plans[i % len(plans)] for i in range(draws)]
        first = model.graph.info.dims
        sizes = [bind_sizes([k.type for k in kinds], plan, {} if i else first) for i, plan in enumerate(planned)]
        magnitudes = [exact_magnitude(exact, kinds, bound) if exact else None for bound in sizes]
        whole = None if None in magnitudes else min(m for m in magnitudes if m is not None)
        feeds = [
            {k.name: draw(k, bound, rng, binary=plan.binary, whole=whole) for k in kinds}
            for bound, plan in zip(sizes, planned, strict=True)
        ]
        results = model.run(feeds)
        good = [Draw(s, f, r, whole) for s, f, r in zip(sizes, feeds, results, strict=True) if isinstance(r, list)]
        if any(has_finite(value) for each in good for value in each.outputs):
            return good
        empty = empty or good
        message = next((r for r in results if isinstance(r, str)), message)
    if empty:
        return empty
    raise EquivalenceError(
        f"expected inputs that the first model runs on, found none among {draws * len(ROUNDS)} drawn ones (--dim or "
        f"dims= gives sizes, inputs= values): {message}"
    )
