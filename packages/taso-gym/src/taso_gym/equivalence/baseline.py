"""What a model gives on inputs drawn once, for asking of many graphs that are made of it whether they give the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cache, cached_property, partial
from pathlib import Path

from taso_gym.equivalence.compare import Value, compare
from taso_gym.equivalence.drawn import Draw, run_on_drawn
from taso_gym.equivalence.subject import Subject, expect_one_interface, subject
from taso_gym.equivalence.validation import reference_of, report_on
from taso_gym.graph import Graph

DRAWS = 3
"""How often inputs are drawn."""


class Baseline:
    """A model that is run once, and computed in float64 once where that is needed, however many graphs are compared.

    What only logits or whole numbers show is for `validate`.
    """

    def __init__(self, model: Graph | Path, dims: Mapping[str, int] | None = None) -> None:
        """Take a graph or a file, and sizes of its open dimensions; it is run when the first graph is compared."""
        self._model, self._dims = model, dims

    @cached_property
    def _ran(self) -> tuple[Subject, list[Draw]]:
        with ExitStack() as stack:
            first = subject(self._model, stack, self._dims)
            return first, run_on_drawn(first, [], DRAWS, 0)

    @cached_property
    def _reference(self) -> Callable[[int], list[Value]]:
        return cache(partial(reference_of, *self._ran))

    def run(self) -> None:
        """Run the model now.

        Raises:
            EquivalenceError: it runs on no inputs.
        """
        _ = self._ran

    def differs(self, graph: Graph) -> bool:
        """Return whether a graph gives something else on the inputs that were drawn, or doesn't run.

        Raises:
            EquivalenceError: the model runs on no inputs, or the graph has others.
        """
        first, drawn = self._ran
        expect_one_interface(first.graph, graph)
        with ExitStack() as stack:
            found = subject(graph, stack).run([draw.feeds for draw in drawn])
        outputs = [each for each in found if not isinstance(each, str)]
        if len(outputs) < len(drawn):
            return True
        pairs = (
            (x, y) for draw, given in zip(drawn, outputs, strict=True) for x, y in zip(draw.outputs, given, strict=True)
        )
        if all(compare(x, y).ok for x, y in pairs):
            return False
        return not report_on(first, drawn, outputs, ("",) * len(drawn), self._reference).ok
