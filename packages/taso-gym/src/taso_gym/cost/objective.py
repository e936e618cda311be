"""What a search lowers: time, or peak memory, operations, traffic, kernels or file size, weighted, within a limit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from numbers import Real

import numpy as np

from taso_gym.checks import check_count, check_kind, items_of
from taso_gym.cost.memory import constant_bytes
from taso_gym.cost_model import Cost, CostModel
from taso_gym.errors import OptionError
from taso_gym.graph import Graph

QUANTITIES = {
    "time": "run time in picoseconds, by the cost model",
    "flops": "floating-point operations",
    "bytes": "bytes that kernels read and write",
    "kernels": "kernels that run",
    "memory": "peak bytes of weights and activations (`taso_gym.cost.memory`)",
    "size": "bytes of the weights in the file, constants folded",
}
"""Name -> what it is. The first four are sums over nodes; the others need the whole graph."""

SUMS = ("time", "flops", "bytes", "kernels")
UNIT = 10**12
"""Value of a weighted objective at its start, and of a byte above the limit: integers, so that searches are exact."""
OVER = 10**24


@dataclass(frozen=True)
class Objective:
    """A weighted sum of quantities, each relative to the graph that a search begins with, and a limit.

    A quantity that is 0 in that graph counts for nothing in a sum: it can't become less, and has no scale.

    Attributes:
        weights: name of `QUANTITIES` -> weight above 0; of a single one the quantity itself is lowered.
        max_memory: peak bytes that the result may need; a graph beyond it counts as worse than any within.
    """

    weights: tuple[tuple[str, float], ...] = (("time", 1.0),)
    max_memory: int | None = None

    def __post_init__(self) -> None:
        pairs = f"pairs of {', '.join(QUANTITIES)} and a weight above 0"
        if not all(map(_is_term, items_of(self.weights, object, pairs) or [None])):
            raise OptionError(f"expected {pairs}, found {self.weights!r}")
        if self.max_memory is not None:
            check_count("max_memory", self.max_memory, 0)

    @classmethod
    def parse(cls, text: str, max_memory: int | None = None) -> Objective:
        """Read ``time``, ``memory`` or a sum such as ``time+0.2*memory``.

        Raises:
            OptionError: no text, an unknown quantity, one named twice, or a weight that isn't above 0.
        """
        check_kind("objective", text, (str,), "a sum of quantities")
        weights: dict[str, float] = {}
        for term in text.split("+"):
            found = re.fullmatch(r"\s*(?:(\d+(?:\.\d+)?|\.\d+)\s*\*)?\s*([a-z]+)\s*", term)
            if not found or found[2] not in QUANTITIES or found[2] in weights or float(found[1] or 1) <= 0:
                raise OptionError(
                    f"expected an objective such as time or time+0.2*memory, of {', '.join(QUANTITIES)}, found {text!r}"
                )
            weights[found[2]] = float(found[1] or 1)
        return cls(tuple(weights.items()), max_memory)

    @cached_property
    def is_time(self) -> bool:
        """Whether it is run time alone, without a limit: the default."""
        return self.max_memory is None and self.lowers_time

    @cached_property
    def lowers_time(self) -> bool:
        """Whether what is lowered is run time alone, whatever the limit."""
        return self._single == "time"

    @cached_property
    def of_sums(self) -> bool:
        """Whether a change of it follows from a change of cost."""
        return self.max_memory is None and all(name in SUMS for name, _ in self.weights)

    @cached_property
    def _single(self) -> str:
        return self.weights[0][0] if len(self.weights) == 1 else ""

    def value(self, found: Mapping[str, int], start: Mapping[str, int]) -> int:
        """Return what is lowered.

        Args:
            found: `quantities` of a graph, those that `needs` names at least.
            start: of the graph that the search begins with.
        """
        if self._single:
            value = found[self._single]
        else:
            value = sum(
                round(UNIT * weight * found[name] / start[name]) for name, weight in self.weights if start[name]
            )
        excess = 0 if self.max_memory is None else max(found["memory"] - self.max_memory, 0)
        return value + OVER * excess

    @cached_property
    def needs(self) -> frozenset[str]:
        """Quantities beyond sums that it takes."""
        wanted = {name for name, _ in self.weights} | ({"memory"} if self.max_memory is not None else set[str]())
        return frozenset(wanted.difference(SUMS))

    def __str__(self) -> str:
        """Write it as `parse` reads it, with the limit."""
        terms = "+".join(name if weight == 1 else f"{_digits(weight)}*{name}" for name, weight in self.weights)
        return terms if self.max_memory is None else f"{terms}, at most {self.max_memory} bytes of memory"


def _digits(weight: float) -> str:
    """Write a weight with all its digits, and without an exponent."""
    return np.format_float_positional(float(weight), trim="-")


def _is_term(term: object) -> bool:
    match term:
        case (str(name), Real() as weight):
            return name in QUANTITIES and isfinite(weight) and float(weight) > 0
        case _:
            return False


def quantities(
    graph: Graph, cost: Cost, model: CostModel | None, names: frozenset[str] = frozenset(QUANTITIES)
) -> dict[str, int]:
    """Return the quantities of a graph by name: the sums, and of the others those named.

    Args:
        graph: the graph.
        cost: by the model.
        model: what says how much memory it needs; without one that is 0.
        names: quantities to work out.
    """
    found = {"time": cost.time_ps, "flops": cost.flops, "bytes": cost.bytes_moved, "kernels": cost.kernels}
    if "memory" in names:
        found["memory"] = model.peak_bytes(graph) if model else 0
    if "size" in names:
        found["size"] = constant_bytes(graph)
    return found
