"""Dimensions: integers, or integer polynomials over symbols such as a file's "batch"."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from taso_gym.errors import TypeInferenceError

Monomial = tuple[str, ...]
"""Symbols of a product in sorted order, repeated for powers; the empty tuple is 1."""
MOST_PRODUCTS, MOST_DEGREE = 1 << 16, 256
"""Of a product of two polynomials; sizes that a file computes can have exponentially many."""


class Poly:
    """An integer polynomial over a file's dimension symbols, in normal form.

    Two polynomials are equal exactly when their normal forms are; an equality that can't be shown is "no".
    A constant polynomial never exists as a `Poly`: it is an `int`.
    """

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        """Hold terms that are already sorted, merged and free of zeros; use `symbol` and arithmetic to build one."""
        self.terms = terms
        self._hash = hash(terms)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.terms == other.terms

    def __add__(self, other: Dim) -> Dim:
        if isinstance(other, int) and not other:
            return self
        return _collect([*self.terms, *_terms(other)])

    def __sub__(self, other: Dim) -> Dim:
        return self + other * -1

    def __mul__(self, other: Dim) -> Dim:
        if isinstance(other, int) and other == 1:
            return self
        if isinstance(other, Poly):
            _expect_few(self.terms, other.terms)
        return _collect([(tuple(sorted(a + b)), i * j) for a, i in self.terms for b, j in _terms(other)])

    def __rsub__(self, other: int) -> Dim:
        return self * -1 + other

    def __floordiv__(self, other: int) -> Dim:
        return floor_div(self, other)

    def __neg__(self) -> Dim:
        return self * -1

    __radd__ = __add__
    __rmul__ = __mul__

    def __str__(self) -> str:
        """Write it as ONNX dimension names are written: ``2*batch + 1``."""
        return self._written(str)

    def __repr__(self) -> str:
        """Write it so that shapes that differ do so as text, of which hashes are made."""
        return self._written(_quoted)

    def _written(self, write: Callable[[str], str]) -> str:
        products = ("*".join(([] if c == 1 and m else [str(c)]) + [write(s) for s in m]) for m, c in self.terms)
        return " + ".join(products).replace("+ -", "- ")

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that occur in it."""
        return frozenset(s for m, _ in self.terms for s in m)

    @property
    def free_symbols(self) -> frozenset[str]:
        """The symbols that its value depends on: for a rounded quotient, those of its dividend and divisor."""
        found = set[str]()
        for name in self.symbols:
            inner = [d for d in _QUOTIENTS.get(name, ()) if isinstance(d, Poly)]
            found.update(*(d.free_symbols for d in inner)) if inner else found.add(name)
        return frozenset(found)

    def bind(self, dims: Mapping[str, int]) -> Dim:
        """Replace the symbols in ``dims`` by their values."""
        total: Dim = 0
        for monomial, coefficient in self.terms:
            term: Dim = coefficient
            for name in monomial:
                term = term * _bind_symbol(name, dims)
            total = total + term
        return total

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with what the rounded quotients in it stand for."""
        return _restored, (self.terms, {s: _QUOTIENTS[s] for s in self.symbols if s in _QUOTIENTS})


Dim = int | Poly
Shape = tuple[Dim, ...]


def _terms(value: Dim) -> tuple[tuple[Monomial, int], ...]:
    return value.terms if isinstance(value, Poly) else (((), value),)


def _quoted(name: str) -> str:
    """Return a name as it is, or in quotes where it would be taken for a number or for two names."""
    return repr(name) if name.lstrip("-").isdecimal() or not {",", "'"}.isdisjoint(name) else name


def _expect_few(a: tuple[tuple[Monomial, int], ...], b: tuple[tuple[Monomial, int], ...]) -> None:
    if len(a) * len(b) > MOST_PRODUCTS or max(len(m) for m, _ in a) + max(len(m) for m, _ in b) > MOST_DEGREE:
        raise TypeInferenceError(
            f"expected sizes whose product has at most {MOST_PRODUCTS} terms of degree {MOST_DEGREE}, found more"
        )


def _collect(terms: Iterable[tuple[Monomial, int]]) -> Dim:
    merged: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        merged[monomial] = merged.get(monomial, 0) + coefficient
    kept = tuple(sorted((m, c) for m, c in merged.items() if c))
    if not kept:
        return 0
    return kept[0][1] if len(kept) == 1 and not kept[0][0] else Poly(tuple(reversed(kept)))


def symbol(name: str) -> Poly:
    """Return the dimension that ``name`` stands for."""
    return Poly((((name,), 1),))


def bind(dim: Dim, dims: Mapping[str, int]) -> Dim:
    """Replace the symbols of ``dim`` that ``dims`` binds."""
    return dim.bind(dims) if isinstance(dim, Poly) else dim


def bounds(dim: Dim, least: int) -> tuple[float, float]:
    """Return what a dimension is between, whatever the sizes from ``least``, 0 or 1, on that its symbols stand for."""
    terms = dict(_terms(dim))
    constant = terms.pop((), 0)
    nearest = constant + least * sum(terms.values())
    low = nearest if all(c > 0 for c in terms.values()) else -math.inf
    return low, nearest if all(c < 0 for c in terms.values()) else math.inf


def exact_div(a: Dim, b: Dim) -> Dim | None:
    """Return q with q * b == a for every value of the symbols, or None where that can't be shown."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    if a == b:
        return 1
    divisor = _terms(b)
    if len(divisor) != 1 or not divisor[0][1]:
        return None
    monomial, coefficient = divisor[0]
    quotient: list[tuple[Monomial, int]] = []
    for m, c in _terms(a):
        rest = list(m)
        for name in monomial:
            if name not in rest:
                return None
            rest.remove(name)
        if c % coefficient:
            return None
        quotient.append((tuple(rest), c // coefficient))
    return _collect(quotient)


def floor_div(a: Dim, b: Dim) -> Dim:
    """Return floor(a / b); where it isn't exact over symbols, a symbol named by the expression itself."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    exact = exact_div(a, b)
    if exact is not None:
        return exact
    name = f"floor(({a})/{b if isinstance(b, int) else f'({b})'})"
    _QUOTIENTS[name] = (a, b)
    return symbol(name)


_QUOTIENTS: dict[str, tuple[Dim, Dim]] = {}
"""Symbol of a rounded quotient -> dividend and divisor."""


def quotient_of(name: str) -> tuple[Dim, Dim] | None:
    """Return the dividend and divisor of a symbol that stands for a rounded quotient, else None."""
    return _QUOTIENTS.get(name)


def _bind_symbol(name: str, dims: Mapping[str, int]) -> Dim:
    if name in dims:
        return dims[name]
    if name not in _QUOTIENTS:
        return symbol(name)
    dividend, divisor = _QUOTIENTS[name]
    return floor_div(bind(dividend, dims), bind(divisor, dims))


def _restored(terms: tuple[tuple[Monomial, int], ...], quotients: Mapping[str, tuple[Dim, Dim]]) -> Poly:
    _QUOTIENTS.update(quotients)
    return Poly(terms)


def product(dims: Iterable[Dim]) -> Dim:
    """Return the product of dimensions; 1 for none."""
    total: Dim = 1
    for dim in dims:
        total = total * dim
    return total


def total(dims: Iterable[Dim]) -> Dim:
    """Return the sum of dimensions; 0 for none."""
    result: Dim = 0
    for dim in dims:
        result = result + dim
    return result
