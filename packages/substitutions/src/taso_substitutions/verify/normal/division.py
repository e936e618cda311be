"""Division that cancels: a factor, or a sum over an axis, with its inverse where it is known not to be 0.

Not 0 are the divisors of a rule's left side, where that is defined, and sums of exponentials.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fractions import Fraction

from taso_substitutions.verify.normal.canonical import POWER, canonical
from taso_substitutions.verify.normal.factors import Bound, Factor, Term, factor_key, has, rename, variables
from taso_substitutions.verify.normal.polynomial import Polynomial, collect


def divisors(p: Polynomial) -> Iterator[str]:
    """Yield the patterns of all divisors in a normal form, those in arguments of functions too."""
    for term in p.terms.values():
        for factor in term.factors:
            if factor[0] == "f":
                if factor[1] == "inv":
                    yield pattern(factor[2][0])
                for inner in factor[2]:
                    yield from divisors(inner)


def pattern(p: Polynomial) -> str:
    """Return a normal form as text whatever its free index variables are called: it stands for all positions."""
    names = dict.fromkeys(v for t in p.terms.values() for f in t.factors for v in variables(f))
    free = [v for v in names if v in p.free()]
    return p.substitute({v: (1, f"?{number}", 0) for number, v in enumerate(free)}).key


def cancelled(p: Polynomial, nonzero: Collection[str]) -> Polynomial:
    """Return a normal form without pairs of a divisor that isn't 0 and its inverse."""
    while True:
        terms = [(term, _shorter(term, nonzero)) for term in p.terms.values()]
        if all(short is None for _, short in terms):
            return p
        p = collect(term if short is None else short for term, short in terms)


def _shorter(term: Term, nonzero: Collection[str]) -> Term | None:
    """Return a term without one pair; None where there is none."""
    for factor in term.factors:
        if factor[:2] != ("f", "inv") or len(factor[2][0].terms) != 1:
            continue
        (inner,) = factor[2][0].terms.values()
        if inner.coefficient <= 0 or not (_is_positive(inner) or pattern(factor[2][0]) in nonzero):
            continue
        rest = list(term.factors)
        rest.remove(factor)
        for bound, left in _without(term.bound, rest, inner):
            return canonical(term.coefficient / inner.coefficient, bound, tuple(left))
    return None


def _is_positive(term: Term) -> bool:
    """Whether a term is a sum of products of exponentials, none of which is ever 0."""
    return all(f[:2] == ("f", POWER) for f in term.factors)


def _without(
    bound: tuple[Bound, ...], factors: list[Factor], inner: Term
) -> Iterator[tuple[tuple[Bound, ...], list[Factor]]]:
    """Yield what is left of a sum of products without an inner sum of products, for each way to find it."""
    if not inner.bound:
        left = _minus(factors, inner.factors)
        if left is not None:
            yield bound, left
        return
    (name, size), others = inner.bound[0], inner.bound[1:]
    for variable in bound:
        if variable[1] != size:
            continue
        own = {name: (1, variable[0], 0)}
        renamed = Term(Fraction(1), others, tuple(rename(f, own) for f in inner.factors))
        for rest, left in _without(tuple(b for b in bound if b != variable), factors, renamed):
            if not any(has(f, variable[0]) for f in left):
                yield rest, left


def _minus(factors: list[Factor], taken: tuple[Factor, ...]) -> list[Factor] | None:
    left = {number: factor_key(f) for number, f in enumerate(factors)}
    for factor in taken:
        found = next((number for number, key in left.items() if key == factor_key(factor)), None)
        if found is None:
            return None
        del left[found]
    return [factors[number] for number in left]
