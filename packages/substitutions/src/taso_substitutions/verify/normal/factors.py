"""The parts of a normal form: indices, factors and terms, and what can be asked about them.

A factor is an element of an input read at affine indices, an opaque function of normal forms, a guard that says whether
an index lies within an axis (0 or 1), or a size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from taso_gym.errors import TasoError

Index = tuple[int, str, int]
"""``stride * variable + offset``; the variable is "" for a constant, and never negative; strides are positive."""
Coordinate = tuple[int, tuple[Index, ...]]
"""Position along an axis: number of the segment, and an index for each of the segment's factors."""
Factor = tuple[Any, ...]
"""("x", input, coordinates) | ("f", function, polynomials) | (">=", index) | ("<", index, size) | ("n", size)
| ("1/n", size)."""
Bound = tuple[str, str]
"""(index variable, size that it ranges over)."""

SYMMETRIC = frozenset({"max", "min"})
"""Functions whose arguments have no order, and count once."""


class WorkExhaustedError(TasoError):
    """A proof that needed more work than its limit; counts as a failure to prove."""


class Term(NamedTuple):
    """A coefficient times a sum over bound variables of a product of factors, canonical."""

    coefficient: Fraction
    bound: tuple[Bound, ...]
    factors: tuple[Factor, ...]


def variables(factor: Factor) -> Iterator[str]:
    """Yield the index variables that occur free in a factor."""
    match factor[0]:
        case "x":
            yield from (i[1] for _, indices in factor[2] for i in indices if i[1])
        case "f":
            for inner in factor[2]:
                for term in inner.terms.values():
                    own = {name for name, _ in term.bound}
                    yield from (v for f in term.factors for v in variables(f) if v not in own)
        case "n" | "1/n":
            return
        case _:
            if factor[1][1]:
                yield factor[1][1]


def has(factor: Factor, name: str) -> bool:
    """Whether an index variable occurs free in a factor."""
    return name in variables(factor)


def rename(factor: Factor, mapping: Mapping[str, Index]) -> Factor:
    """Replace free index variables by indices."""
    match factor[0]:
        case "x":
            coordinates = tuple((s, tuple(compose(i, mapping) for i in indices)) for s, indices in factor[2])
            return ("x", factor[1], coordinates)
        case "f":
            if not any(v in mapping for v in variables(factor)):
                return factor
            return ("f", factor[1], sorted_arguments(factor[1], tuple(p.substitute(mapping) for p in factor[2])))
        case "n" | "1/n":
            return factor
        case _:
            return (factor[0], compose(factor[1], mapping), *factor[2:])


def compose(index: Index, mapping: Mapping[str, Index]) -> Index:
    """Replace the variable of an index by an index."""
    if index[1] not in mapping:
        return index
    stride, name, offset = mapping[index[1]]
    return (index[0] * stride if name else 0, name, index[0] * offset + index[2])


def sorted_arguments(function: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of an opaque function in canonical order; max(a, a) is max(a)."""
    if function not in SYMMETRIC:
        return arguments
    return tuple(sorted(set(arguments), key=lambda p: p.key))


def height_of(factors: Iterable[Factor]) -> int:
    """Return how deep functions are nested."""
    return max((1 + max(p.height for p in f[2]) for f in factors if f[0] == "f" and f[2]), default=0)


def factor_key(factor: Factor) -> str:
    """Return a factor as text."""
    if factor[0] == "f":
        return f"{factor[1]}({', '.join(p.key for p in factor[2])})"
    return f"{factor[0]}{factor[1:]}"


def term_key(term: Term) -> str:
    """Return a term as text, without its coefficient."""
    body = "*".join(factor_key(f) for f in term.factors) or "1"
    if not term.bound:
        return body
    return f"sum[{', '.join(f'{n}<{s}' for n, s in term.bound)}]({body})"


def is_guard(factor: Factor) -> bool:
    """Whether a factor says that an index lies within an axis."""
    return factor[0] in (">=", "<")


def implies(known: Factor, guard: Factor) -> bool:
    """Whether one guard holds wherever another one, on the same variable, does."""
    if known[0] != guard[0] or known[2:] != guard[2:] or known[1][:2] != guard[1][:2]:
        return False
    return known[1][2] <= guard[1][2] if guard[0] == ">=" else known[1][2] >= guard[1][2]


def simplify_guards(guards: Iterable[Factor]) -> list[Factor] | None:
    """Drop guards that hold always or wherever another one does; None where one never holds."""
    kept: list[Factor] = []
    for guard in guards:
        if guard[0] == ">=":
            stride, name, offset = guard[1]
            if offset >= 0:
                continue
            if not name or not stride:
                return None
        if any(implies(other, guard) for other in kept):
            continue
        kept = [other for other in kept if not implies(guard, other)]
        kept.append(guard)
    return kept
