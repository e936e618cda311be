"""Normal forms of tensor elements: canonical sums of products over index variables, for all sizes at once.

An element of a tensor is a polynomial whose atoms are elements of the rule's inputs, read at affine indices. A sum over
an axis is a bound index variable that ranges over a symbolic size; a function such as ``tanh`` is an opaque atom over
the normal form of its argument. Two elements with the same normal form are equal for every size and every input, since
each step below is an identity of commutative rings, of finite sums, or one of the listed `AXIOMS`.

Reading beyond an axis (padding) is written with guards, ``[0 <= index]`` and ``[index < size]``, that are 0 or 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import permutations, product
from typing import Any, NamedTuple

from taso_gym.errors import TasoError

Index = tuple[int, str, int]
"""``stride * variable + offset``; the variable is "" for a constant."""
Coordinate = tuple[int, tuple[Index, ...]]
"""Position along an axis: number of the segment, and an index for each of the segment's factors."""
Factor = tuple[Any, ...]
"""("x", input, coordinates) | ("f", function, polynomials) | (">=", index) | ("<", index, size) | ("=", index, index)
| ("n", size) | ("1/n", size)."""
Bound = tuple[str, str]
"""(index variable, size that it ranges over)."""

MAX_TERMS = 20_000
MAX_ORDERS = 5_040


class WorkExhaustedError(TasoError):
    """A proof that needed more work than its limit; counts as a failure to prove."""


class Term(NamedTuple):
    """A coefficient times a sum over bound variables of a product of factors, canonical."""

    coefficient: Fraction
    bound: tuple[Bound, ...]
    factors: tuple[Factor, ...]


class Polynomial:
    """A canonical sum of terms; equal polynomials have equal keys."""

    __slots__ = ("_key", "height", "terms")

    def __init__(self, terms: Mapping[str, Term]) -> None:
        """Hold canonical terms by key; use the functions of this module to make one."""
        self.terms = terms
        self.height = max((_height(t.factors) for t in terms.values()), default=0)
        self._key: str | None = None
        if len(terms) > MAX_TERMS:
            raise WorkExhaustedError(f"expected at most {MAX_TERMS} terms in a normal form, found {len(terms)}")

    @property
    def key(self) -> str:
        """The polynomial as text; the same for equal ones."""
        if self._key is None:
            self._key = " + ".join(f"{self.terms[k].coefficient}*{k}" for k in sorted(self.terms)) or "0"
        return self._key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return self.key

    @property
    def constant(self) -> Fraction | None:
        """The value of a constant polynomial, else None."""
        if not self.terms:
            return Fraction(0)
        return self.terms["1"].coefficient if list(self.terms) == ["1"] else None

    def __add__(self, other: Polynomial) -> Polynomial:
        merged = dict(self.terms)
        for key, term in other.terms.items():
            total = term.coefficient + (merged[key].coefficient if key in merged else 0)
            if total:
                merged[key] = term._replace(coefficient=total)
            else:
                del merged[key]
        return Polynomial(merged)

    def __neg__(self) -> Polynomial:
        return self.scale(Fraction(-1))

    def scale(self, by: Fraction) -> Polynomial:
        """Multiply by a rational number."""
        if not by:
            return ZERO
        return Polynomial({k: t._replace(coefficient=t.coefficient * by) for k, t in self.terms.items()})

    def __mul__(self, other: Polynomial) -> Polynomial:
        if (c := other.constant) is not None:
            return self.scale(c)
        if (c := self.constant) is not None:
            return other.scale(c)
        if len(self.terms) * len(other.terms) > MAX_TERMS:
            raise WorkExhaustedError(f"expected a product of at most {MAX_TERMS} terms")
        return collect(_times(a, b) for a, b in product(self.terms.values(), other.terms.values()))

    def sum_over(self, variable: str, size: str) -> Polynomial:
        """Sum over an index variable that occurs in it and ranges over ``size``."""
        return collect(canonical(t.coefficient, (*t.bound, (variable, size)), t.factors) for t in self.terms.values())

    def substitute(self, mapping: Mapping[str, Index]) -> Polynomial:
        """Replace free index variables by indices."""
        renamed = (
            canonical(t.coefficient, t.bound, tuple(_rename(f, mapping) for f in t.factors))
            for t in self.terms.values()
        )
        return collect(renamed)


def collect(terms: Iterable[Term | None]) -> Polynomial:
    """Add up canonical terms; None is zero."""
    merged: dict[str, Term] = {}
    for term in terms:
        if term is None:
            continue
        key = _term_key(term)
        total = term.coefficient + (merged[key].coefficient if key in merged else 0)
        if total:
            merged[key] = term._replace(coefficient=total)
        else:
            merged.pop(key, None)
    return Polynomial(merged)


def constant(value: Fraction | int) -> Polynomial:
    """Return a constant polynomial."""
    return collect([Term(Fraction(value), (), ())])


def atom(factor: Factor) -> Polynomial:
    """Return the polynomial that is one factor."""
    return collect([canonical(Fraction(1), (), (factor,))])


def _times(a: Term, b: Term) -> Term | None:
    apart = {name: (1, f"{name}'", 0) for name, _ in b.bound}
    factors = a.factors + tuple(_rename(f, apart) for f in b.factors)
    bound = a.bound + tuple((f"{name}'", size) for name, size in b.bound)
    return canonical(a.coefficient * b.coefficient, bound, factors)


def canonical(coefficient: Fraction, bound: tuple[Bound, ...], factors: tuple[Factor, ...]) -> Term | None:
    """Return the canonical form of a term, or None where it is zero."""
    ranges = dict(bound)
    found = _contract(list(factors), ranges)
    if found is None or not coefficient:
        return None
    found = _cancel(found)
    used = {v for f in found for v in variables(f)}
    for name in [n for n in ranges if n not in used]:
        found.append(("n", ranges.pop(name)))
    found = _cancel(found)
    height = _height(found)
    order = _canonical_order(ranges, found)
    names = {old: (1, f"b{height}_{i}", 0) for i, old in enumerate(order)}
    renamed = sorted((_rename(f, names) for f in found), key=factor_key)
    return Term(coefficient, tuple((names[o][1], ranges[o]) for o in order), tuple(renamed))


def _contract(factors: list[Factor], ranges: dict[str, str]) -> list[Factor] | None:
    """Sum out Kronecker deltas over bound variables and drop guards that say the same twice; None where it is zero."""
    deltas = [f for f in factors if f[0] == "="]
    for delta in deltas:
        _, a, b = delta
        if not a[1] and not b[1] and a != b:
            return None
        own, other = (b, a) if b[1] in ranges and b[0] == 1 else (a, b)
        if a == b:
            factors.remove(delta)
        elif own[1] in ranges and own[0] == 1 and other[1] != own[1]:
            factors.remove(delta)
            shifted = (other[0], other[1], other[2] - own[2])
            size = ranges.pop(own[1])
            inside = [] if _within(shifted, size, ranges) else [(">=", shifted), ("<", shifted, size)]
            return _contract([_rename(f, {own[1]: shifted}) for f in factors] + inside, ranges)
    kept: list[Factor] = []
    for factor in factors:
        if factor[0] == ">=" and not factor[1][1]:
            if factor[1][2] < 0:
                return None
        elif factor[0] not in (">=", "<") or factor not in kept:
            kept.append(factor)
    return kept


def _within(index: Index, size: str, ranges: Mapping[str, str]) -> bool:
    """Whether an index is a plain variable that is known to range over this size."""
    return index[0] == 1 and index[2] == 0 and (ranges.get(index[1]) == size or index[1].endswith(f":{size}"))


def _cancel(factors: list[Factor]) -> list[Factor]:
    """Drop pairs of a factor that is never 0 (a size, an exponential) and its inverse."""
    kept = list(factors)
    for factor in factors:
        inverse = _inverted(factor)
        if inverse in kept and factor in kept:
            kept.remove(inverse)
            kept.remove(factor)
    return kept


def _inverted(factor: Factor) -> Factor | None:
    """Return the factor that a factor is the inverse of, if that is never 0."""
    if factor[0] == "1/n":
        return ("n", factor[1])
    if factor[:2] != ("f", "inv"):
        return None
    terms = list(factor[2][0].terms.values())
    single = len(terms) == 1 and terms[0].coefficient == 1 and not terms[0].bound and len(terms[0].factors) == 1
    return terms[0].factors[0] if single and terms[0].factors[0][:2] == ("f", "exp") else None


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
            yield from (i[1] for i in factor[1:] if isinstance(i, tuple) and i[1])


def _rename(factor: Factor, mapping: Mapping[str, Index]) -> Factor:
    match factor[0]:
        case "x":
            coordinates = tuple((s, tuple(_compose(i, mapping) for i in indices)) for s, indices in factor[2])
            return ("x", factor[1], coordinates)
        case "f":
            if not any(v in mapping for v in variables(factor)):
                return factor
            return ("f", factor[1], sorted_arguments(factor[1], tuple(p.substitute(mapping) for p in factor[2])))
        case "n" | "1/n":
            return factor
        case "=":
            a, b = sorted((_compose(factor[1], mapping), _compose(factor[2], mapping)))
            return ("=", a, b)
        case _:
            return (factor[0], _compose(factor[1], mapping), *factor[2:])


SYMMETRIC = frozenset({"max", "min"})
"""Functions whose arguments have no order."""


def sorted_arguments(function: str, arguments: tuple[Polynomial, ...]) -> tuple[Polynomial, ...]:
    """Return the arguments of an opaque function in canonical order; max(a, a) is max(a)."""
    if function not in SYMMETRIC:
        return arguments
    return tuple(sorted(set(arguments), key=lambda p: p.key))


def _compose(index: Index, mapping: Mapping[str, Index]) -> Index:
    if index[1] not in mapping:
        return index
    stride, name, offset = mapping[index[1]]
    return (index[0] * stride if name else 0, name, index[0] * offset + index[2])


def _canonical_order(ranges: Mapping[str, str], factors: list[Factor]) -> list[str]:
    """Return the bound variables in the order that makes the term's text smallest, ties tried in all orders."""
    if len(ranges) < 2:
        return list(ranges)
    masked = dict.fromkeys(ranges, (1, "?", 0))
    colours = {
        name: (size, sorted(factor_key(_rename(f, masked | {name: (1, "*", 0)})) for f in factors if _has(f, name)))
        for name, size in ranges.items()
    }
    groups: dict[str, list[str]] = {}
    for name in ranges:
        groups.setdefault(repr(colours[name]), []).append(name)
    orders = 1
    for group in groups.values():
        for i in range(2, len(group) + 1):
            orders *= i
    if orders > MAX_ORDERS:
        raise WorkExhaustedError(f"expected at most {MAX_ORDERS} orders of bound indices, found {orders}")
    best: tuple[list[str], list[str]] | None = None
    for choice in product(*(permutations(groups[c]) for c in sorted(groups))):
        order = [name for part in choice for name in part]
        names = {old: (1, f"#{i}", 0) for i, old in enumerate(order)}
        text = sorted(factor_key(_rename(f, names)) for f in factors)
        if best is None or text < best[0]:
            best = (text, order)
    assert best is not None
    return best[1]


def _has(factor: Factor, name: str) -> bool:
    return name in variables(factor)


def _height(factors: Iterable[Factor]) -> int:
    return max((1 + max(p.height for p in f[2]) for f in factors if f[0] == "f" and f[2]), default=0)


def factor_key(factor: Factor) -> str:
    """Return a factor as text."""
    if factor[0] == "f":
        return f"{factor[1]}({', '.join(p.key for p in factor[2])})"
    return f"{factor[0]}{factor[1:]}"


def _term_key(term: Term) -> str:
    body = "*".join(factor_key(f) for f in term.factors) or "1"
    if not term.bound:
        return body
    return f"sum[{', '.join(f'{n}<{s}' for n, s in term.bound)}]({body})"


ZERO = Polynomial({})
ONE = constant(1)
