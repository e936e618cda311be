"""Normal forms of tensor elements: canonical sums of products over index variables, for all sizes at once.

An element of a tensor is a polynomial whose atoms are elements of the rule's inputs, read at affine indices. A sum over
an axis is a bound index variable that ranges over a symbolic size; a function such as ``tanh`` is an opaque atom over
the normal form of its argument. Two elements with the same normal form are equal for every size and every input, since
each step is an identity of commutative rings, of finite sums, or one that the proof names as an axiom.

Reading beyond an axis (padding) is written with guards, ``[0 <= index]`` and ``[index < size]``, that are 0 or 1.
Division is multiplication by an inverse, of which only inv(a b) = inv(a) inv(b) and inv(inv(a)) = a are used: both hold
with inv(0) = 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import product
from math import isfinite

from taso_substitutions.verify.normal.axes import UnprovableError
from taso_substitutions.verify.normal.canonical import canonical
from taso_substitutions.verify.normal.factors import (
    Factor,
    Index,
    Term,
    WorkExhaustedError,
    height_of,
    rename,
    term_key,
    variables,
)

MAX_TERMS = 20_000
"""Most terms of a normal form."""


class Polynomial:
    """A canonical sum of terms; equal polynomials have equal keys."""

    __slots__ = ("_key", "height", "terms")

    def __init__(self, terms: Mapping[str, Term]) -> None:
        """Hold canonical terms by key; use the functions of this module to make one."""
        self.terms = terms
        self.height = max((height_of(t.factors) for t in terms.values()), default=0)
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

    @property
    def single(self) -> Factor | None:
        """The factor that the polynomial is, if it is one."""
        if len(self.terms) != 1:
            return None
        (term,) = self.terms.values()
        return term.factors[0] if term.coefficient == 1 and not term.bound and len(term.factors) == 1 else None

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
        if by == 1:
            return self
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
        """Sum over an index variable that ranges over ``size``."""
        return collect(canonical(t.coefficient, (*t.bound, (variable, size)), t.factors) for t in self.terms.values())

    def substitute(self, mapping: Mapping[str, Index]) -> Polynomial:
        """Replace free index variables by indices, none of them of a variable that is bound in here.

        `canonical` names what it binds by the height of the term, and so otherwise than what is bound in its factors.
        """
        return collect(_substituted(t, mapping) for t in self.terms.values())

    def free(self) -> set[str]:
        """Return the index variables that occur free."""
        return {
            v for t in self.terms.values() for f in t.factors for v in variables(f) if v not in {n for n, _ in t.bound}
        }


def collect(terms: Iterable[Term | None]) -> Polynomial:
    """Add up canonical terms; None is zero."""
    merged: dict[str, Term] = {}
    for term in terms:
        if term is None:
            continue
        key = term_key(term)
        total = term.coefficient + (merged[key].coefficient if key in merged else 0)
        if total:
            merged[key] = term._replace(coefficient=total)
        else:
            merged.pop(key, None)
    return Polynomial(merged)


def constant(value: Fraction | int) -> Polynomial:
    """Return a constant polynomial."""
    return collect([Term(Fraction(value), (), ())] if value else [])


def atom(factor: Factor) -> Polynomial:
    """Return the polynomial that is one factor."""
    return collect([canonical(Fraction(1), (), (factor,))])


def number(value: float | int | Fraction) -> Polynomial:
    """Return a number as an element, exactly; an infinity is opaque."""
    if isinstance(value, float) and not isfinite(value):
        return atom(("x", repr(value), ()))
    return constant(Fraction(value))


def opaque(name: str, *arguments: Polynomial) -> Polynomial:
    """Return an unknown function of normal forms."""
    return atom(("f", name, arguments))


def term_of(term: Term) -> Polynomial:
    """Return the polynomial that is one canonical term."""
    return collect([term])


def inverse(p: Polynomial) -> Polynomial:
    """Return 1 / p; distributes over what can be taken out of a single term.

    Raises:
        UnprovableError: p is 0 for all values, so that no times of it is 0.
    """
    if not p.terms:
        raise UnprovableError("expected divisors other than 0, found 0")
    if p.constant:
        return constant(1 / p.constant)
    if len(p.terms) != 1:
        return atom(("f", "inv", (p,)))
    (term,) = p.terms.values()
    bound = {name for name, _ in term.bound}
    outside = [f for f in term.factors if not bound & set(variables(f))]
    inside = tuple(f for f in term.factors if f not in outside)
    result = constant(1 / term.coefficient)
    for factor in outside:
        result = result * _inverse_of(factor)
    if not inside:
        return result
    return result * atom(("f", "inv", (collect([canonical(Fraction(1), term.bound, inside)]),)))


def _inverse_of(factor: Factor) -> Polynomial:
    if factor[0] in ("n", "1/n"):
        return atom(("1/n" if factor[0] == "n" else "n", factor[1]))
    if factor[:2] == ("f", "sqrt") and (factor[2][0].constant or 0) > 0:
        return atom(factor).scale(1 / factor[2][0].constant)
    return factor[2][0] if factor[:2] == ("f", "inv") else atom(("f", "inv", (atom(factor),)))


def _substituted(term: Term, mapping: Mapping[str, Index]) -> Term | None:
    """Replace free index variables of a term; bound ones may be called as some that are to be replaced."""
    bound = {name for name, _ in term.bound}
    free = {name: index for name, index in mapping.items() if name not in bound}
    return canonical(term.coefficient, term.bound, tuple(rename(f, free) for f in term.factors))


def _times(a: Term, b: Term) -> Term | None:
    apart = {name: (1, f"{name}'", 0) for name, _ in b.bound}
    factors = a.factors + tuple(rename(f, apart) for f in b.factors)
    bound = a.bound + tuple((f"{name}'", size) for name, size in b.bound)
    return canonical(a.coefficient * b.coefficient, bound, factors)


ZERO = Polynomial({})
ONE = constant(1)
