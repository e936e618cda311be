"""What a model gives on inputs drawn once, for asking of many graphs that are made of it whether they give the same."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from taso_gym.equivalence.compare import compare
from taso_gym.equivalence.subject import expect_one_interface, subject
from taso_gym.equivalence.validation import REFERENCE_BYTES, Draw, run_on_drawn, validate
from taso_gym.graph import Graph


class _Ran(NamedTuple):
    graph: Graph
    weight_bytes: int
    draws: list[Draw]


class Baseline:
    """A model that is run once, however many graphs are compared with it."""

    def __init__(self, model: Graph | Path, draws: int = 3, seed: int = 0) -> None:
        """Take a model; it is run when the first graph is compared.

        Args:
            model: a graph or a file.
            draws: how often inputs are drawn.
            seed: of the draws.
        """
        self._model, self._number, self._seed = model, draws, seed

    @cached_property
    def _ran(self) -> _Ran:
        with ExitStack() as stack:
            first = subject(self._model, stack)
            return _Ran(first.graph, first.weight_bytes, run_on_drawn(first, [], self._number, self._seed))

    def differs(self, graph: Graph) -> bool:
        """Return whether a graph gives something else, or doesn't run.

        What differs is compared by `validate`, too, where that can tell rounding from an error.

        Raises:
            EquivalenceError: the model runs on no inputs, or the graph has others.
        """
        expect_one_interface(self._ran.graph, graph)
        with ExitStack() as stack:
            found = subject(graph, stack).run([draw.feeds for draw in self._ran.draws])
        for draw, outputs in zip(self._ran.draws, found, strict=True):
            if isinstance(outputs, str):
                return True
            if not all(compare(a, b).ok for a, b in zip(draw.outputs, outputs, strict=True)):
                return self._ran.weight_bytes > REFERENCE_BYTES or not validate(self._model, graph).ok
        return False
