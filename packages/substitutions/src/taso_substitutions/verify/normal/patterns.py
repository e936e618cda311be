"""Shapes of normal forms that axioms ask for: common factors, 1 + 1 / m, 1 + c / p, (1 - s) a, roots of numbers."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

from taso_substitutions.verify.normal.canonical import POWER
from taso_substitutions.verify.normal.factors import Factor, Term
from taso_substitutions.verify.normal.polynomial import ONE, Polynomial, atom, collect, constant, inverse, opaque


def root(square: Fraction) -> Polynomial:
    """Return the square root of a positive number: a fraction times the root of a square-free one."""
    inside, outside, divisor = square.numerator * square.denominator, 1, 2
    while divisor * divisor <= inside:
        if inside % (divisor * divisor) == 0:
            inside //= divisor * divisor
            outside *= divisor
        else:
            divisor += 1
    scale = Fraction(outside, square.denominator)
    return constant(scale) if inside == 1 else opaque("sqrt", constant(inside)).scale(scale)


def one_plus_inverse(p: Polynomial) -> Polynomial | None:
    """Return m where an element is 1 + 1 / m, m a product of exponentials."""
    rest = p + -ONE
    if len(p.terms) != 2 or len(rest.terms) != 1:
        return None
    (term,) = rest.terms.values()
    inverses = all(f[:2] == ("f", "inv") and (f[2][0].single or ("",))[:2] == ("f", POWER) for f in term.factors)
    return inverse(rest) if term.coefficient == 1 and not term.bound and inverses else None


def one_plus_share(p: Polynomial) -> tuple[Fraction, Polynomial] | None:
    """Return (c, q) where an element is 1 + c / q, c > 0 and q a product of sums of exponentials."""
    rest = p + -ONE
    if len(p.terms) != 2 or len(rest.terms) != 1:
        return None
    (term,) = rest.terms.values()
    if (
        term.coefficient <= 0
        or term.bound
        or not all(f[:2] == ("f", "inv") and _is_positive(f[2][0]) for f in term.factors)
    ):
        return None
    return term.coefficient, reduce(lambda a, f: a * f[2][0], term.factors, ONE)


def _is_positive(p: Polynomial) -> bool:
    """Whether an element is a sum of positive multiples of products of exponentials."""
    terms = p.terms.values()
    return all(t.coefficient > 0 and all(f[:2] == ("f", POWER) for f in t.factors) for t in terms)


def common_factors(p: Polynomial) -> list[Factor]:
    """Return the factors that all terms have, outside sums."""
    terms = list(p.terms.values())
    if not terms or any(t.bound for t in terms):
        return []
    return [f for f in dict.fromkeys(terms[0].factors) if all(f in t.factors for t in terms)]


def without(p: Polynomial, factor: Factor) -> Polynomial:
    """Return an element divided by a factor that all its terms have."""
    return collect(term._replace(factors=_dropped(term.factors, factor)) for term in p.terms.values())


def _dropped(factors: tuple[Factor, ...], factor: Factor) -> tuple[Factor, ...]:
    at = factors.index(factor)
    return factors[:at] + factors[at + 1 :]


def one_minus(p: Polynomial, name: str) -> tuple[Factor, Polynomial] | None:
    """Return (s, a) where an element is (1 - s) a, s an element of an input."""
    factors = {f for t in p.terms.values() for f in t.factors if f[0] == "x" and f[1] == name}
    if len(factors) != 1 or any(t.bound for t in p.terms.values()):
        return None
    (factor,) = factors
    rest = collect(t for t in p.terms.values() if factor not in t.factors)
    return (factor, rest) if (ONE + -atom(factor)) * rest == p else None


def is_bend(term: Term) -> bool:
    """Whether a term is a number times max(a, 0)."""
    return not term.bound and len(term.factors) == 1 and term.factors[0][:2] == ("f", "relu")


def number_in(p: Polynomial) -> Fraction:
    """Return the number that an element has as a term."""
    return p.terms["1"].coefficient if "1" in p.terms else Fraction(0)


def monic(p: Polynomial) -> tuple[Polynomial, Fraction]:
    """Return an element without its number, divided by its first coefficient, and that coefficient."""
    moving = p + constant(-number_in(p))
    first = moving.terms[min(moving.terms)].coefficient
    return moving.scale(1 / first), first
