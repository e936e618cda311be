"""Numbers for normal forms: what an index form says that the elements of a tensor are, at given sizes and values."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from taso_substitutions.verify.normal.axes import Axis
from taso_substitutions.verify.normal.factors import Coordinate, Factor, Term
from taso_substitutions.verify.normal.index_module import IndexModule
from taso_substitutions.verify.normal.index_tensor import IndexTensor
from taso_substitutions.verify.normal.polynomial import Polynomial
from taso_substitutions.verify.normal.sizes import Refined, Sizes

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "max": max,
    "min": min,
    "max if": lambda guard, value: value if guard else -math.inf,
    "min if": lambda guard, value: value if guard else math.inf,
    "inv": lambda a: 1 / Fraction(a),
    "abs": abs,
    "zero": lambda a: int(a == 0),
    "negative": lambda a: int(a < 0),
}


class Numbers:
    """Values of the elements of index forms.

    Args:
        sizes: whose example says how large each atom is.
        tensors: the inputs in index form.
        arrays: their values.
    """

    def __init__(self, sizes: Sizes, tensors: dict[str, IndexTensor], arrays: dict[str, Any]) -> None:
        self.sizes, self.tensors, self.arrays = sizes, tensors, arrays

    def array(self, x: IndexTensor) -> Any:
        coordinates = [list(self.coordinates(axis)) for axis in x.axes]
        values = [self.polynomial(x.at(position), {}) for position in product(*coordinates)]
        return np.array(values, dtype=object).reshape([len(c) for c in coordinates])

    def coordinates(self, axis: Axis) -> list[Coordinate]:
        return [
            (number, tuple((0, "", i) for i in indices))
            for number, segment in enumerate(axis)
            for indices in product(*(range(self.sizes.size_of((a,))) for a in segment))
        ]

    def polynomial(self, p: Polynomial, at: dict[str, int]) -> Any:
        return sum((self.term(t, at) for t in p.terms.values()), Fraction(0))

    def term(self, term: Term, at: dict[str, int]) -> Any:
        total: Any = 0
        for choice in product(*(range(self.sizes.size_of((size,))) for _, size in term.bound)):
            places = at | dict(zip((name for name, _ in term.bound), choice, strict=True))
            value: Any = 1
            for factor in sorted(term.factors, key=lambda f: f[0] not in ("<", ">=")):
                if value == 0:
                    break
                value = value * self.factor(factor, places)
            total += value
        return term.coefficient * total if total not in (math.inf, -math.inf) else total

    def factor(self, factor: Factor, at: dict[str, int]) -> Any:
        match factor[0]:
            case "x" if factor[2] == () and factor[1] in ("inf", "-inf"):
                return float(factor[1])
            case "x":
                return self.arrays[factor[1]][self.place(factor[1], factor[2], at)]
            case "n" | "1/n":
                size = self.size(factor[1])
                return size if factor[0] == "n" else Fraction(1, size)
            case ">=":
                return int(self.index(factor[1], at) >= 0)
            case "<":
                return int(self.index(factor[1], at) < self.size(factor[2]))
            case _:
                return self.function(factor[1], factor[2], at)

    def function(self, name: str, arguments: tuple[Polynomial, ...], at: dict[str, int]) -> Any:
        if name.startswith("take "):
            _, variable, _, size = name.split()
            place = int(self.polynomial(arguments[1], at))
            return self.polynomial(arguments[0], at | {variable: place % self.size(size)})
        if " over " in name:
            kind, _, sizes = name.partition(" over ")
            (argument,) = arguments
            names = [f"@{argument.height}_{i}" for i in range(len(sizes.split(", ")))]
            ranges = (range(self.size(s)) for s in sizes.split(", "))
            return FUNCTIONS[kind](
                self.polynomial(argument, at | dict(zip(names, choice, strict=True))) for choice in product(*ranges)
            )
        values = []
        for argument in arguments:
            values.append(self.polynomial(argument, at))
            if name.endswith(" if") and not values[0]:
                return FUNCTIONS[name](0, None)
        return FUNCTIONS[name](*values)

    def size(self, name: str) -> int:
        return self.sizes.value(self.sizes.dim_of_atom(name)) if name in self.sizes.example else self.sum(name)

    def sum(self, text: str) -> int:
        return sum(
            math.prod(int(f) if f.isdigit() else self.sizes.example[f] for f in t.split("*")) for t in text.split(" + ")
        )

    def index(self, index: tuple[int, str, int], at: dict[str, int]) -> int:
        return index[0] * (at[index[1]] if index[1] else 0) + index[2]

    def place(self, name: str, position: Any, at: dict[str, int]) -> tuple[int, ...]:
        result: list[int] = []
        for axis, (segment, indices) in zip(self.tensors[name].axes, position, strict=True):
            inside = 0
            for atom, index in zip(axis[segment], indices, strict=True):
                inside = inside * self.sizes.size_of((atom,)) + self.index(index, at)
            result.append(sum(self.sizes.size_of(s) for s in axis[:segment]) + inside)
        return tuple(result)


def evaluated(f: Callable[..., Any], arrays: dict[str, Any]) -> Any:
    """Return what ``f(xp, *inputs)`` is by its index form, for these inputs."""
    sizes = Sizes()
    while True:
        xp = IndexModule(sizes)
        try:
            tensors = {
                name: xp.variable(name, [sizes.fresh(f"{name}.{i}", d) for i, d in enumerate(array.shape)])
                for name, array in arrays.items()
            }
            return Numbers(sizes, tensors, arrays).array(f(xp, *tensors.values()))
        except Refined:
            continue
