"""z3 terms over the reals: numbers, powers, maxima, and what is done to terms before the solver sees them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce as fold
from typing import Any, cast

import z3

LARGEST = 1000
"""Largest denominator of a simple fraction."""
SMALL_POWERS = 8
"""Largest exponent that is written out as a product."""
REAL = z3.RealSort()
INVERSE = z3.Function("inv", REAL, REAL)
"""1 / a: no more is known of it than inv(a b) = inv(a) inv(b) and inv(inv(a)) = a, which hold with inv(0) = 0."""


def real(value: Any) -> Any:
    """Return a number or a term as a z3 term; an infinity is a variable.

    A float is the simple fraction that it is rounded from (1/3), if there is one, else the decimal that it prints as.
    """
    if isinstance(value, z3.ExprRef):
        return value
    if isinstance(value, float) and math.isinf(value):
        return z3.Real("inf" if value > 0 else "-inf")
    number = _fraction(float(value)) if isinstance(value, float) else Fraction(int(value))
    return z3.RealVal(f"{number.numerator}/{number.denominator}")


def _fraction(value: float) -> Fraction:
    simple = Fraction(value).limit_denominator(LARGEST)
    return simple if float(simple) == value else Fraction(repr(value))


def tidy(term: Any) -> Any:
    """Return a term as a sum of monomials, where z3's rewriter can bring it to that."""
    return z3.simplify(real(term), som=True)


def absolute(a: Any) -> Any:
    """|a|."""
    return z3.If(a >= 0, a, -a)


def equal(a: Any, b: Any) -> Any:
    """1 where equal, else 0."""
    return z3.If(a == b, real(1), real(0))


def less(a: Any, b: Any) -> Any:
    """1 where a < b, else 0."""
    return z3.If(a < b, real(1), real(0))


def choose(condition: Any, a: Any, b: Any) -> Any:
    """Choose by truth."""
    return z3.If(condition == 1, a, b)


def _greater(a: Any, b: Any) -> Any:
    return z3.If(b > a, b, a)


def _smaller(a: Any, b: Any) -> Any:
    return z3.If(b < a, b, a)


def power(base: Any, exponent: Any) -> Any:
    """base**exponent: products for small integer exponents, sqrt for 1/2, else uninterpreted."""
    value = z3.simplify(real(exponent))
    if z3.is_rational_value(value):
        number: Fraction = cast(Any, value).as_fraction()
        if number.denominator == 1 and abs(number) <= SMALL_POWERS:
            result = fold(lambda a, _: a * base, range(abs(int(number))), real(1))
            return 1 / result if number < 0 else result
        if 2 * number == 1:
            return z3.Function("sqrt", REAL, REAL)(tidy(base))
    return z3.Function("pow", REAL, REAL, REAL)(tidy(base), value)


def extreme(name: str, values: Sequence[Any]) -> Any:
    """Return the maximum or minimum of a set of terms: nested ones are flattened, equal ones count once."""
    neutral = "-inf" if name == "max" else "inf"
    kept: dict[int, Any] = {}
    for value in map(tidy, values):
        inner = value.children() if value.decl().name().startswith(f"{name}#") else [value]
        kept.update((v.get_id(), v) for v in inner if v.decl().name() != neutral)
    terms = [kept[i] for i in sorted(kept)]
    if len(terms) < 2:
        return terms[0] if terms else z3.Real(neutral)
    return z3.Function(f"{name}#{len(terms)}", *[REAL] * (len(terms) + 1))(*terms)


def with_comparisons(term: Any, memo: dict[int, Any]) -> Any:
    """Return a term whose maxima and minima are written as comparisons, which the solver knows exactly."""
    key = term.get_id()
    if key not in memo:
        args = [with_comparisons(arg, memo) for arg in term.children()]
        name = term.decl().name()
        if name.startswith("max#"):
            memo[key] = fold(_greater, args)
        elif name.startswith("min#"):
            memo[key] = fold(_smaller, args)
        else:
            memo[key] = term.decl()(*args) if args else term
    return memo[key]


def without_division(term: Any, memo: dict[int, Any]) -> Any:
    """Return a term with a / b written as a * inv(b), of factors of b where it has some.

    What is proved then holds whatever else the inverse of 0 is taken to be.
    """
    key = term.get_id()
    if key not in memo:
        args = [without_division(arg, memo) for arg in term.children()]
        if z3.is_div(term):
            memo[key] = args[0] * inverse(z3.simplify(args[1], som=True))
        else:
            memo[key] = term.decl()(*args) if args else term
    return memo[key]


def inverse(term: Any) -> Any:
    """Return 1 / a term, as a number times the inverse of a sum whose first monomial has the coefficient 1."""
    if z3.is_rational_value(term) and term.as_fraction() != 0:
        return z3.simplify(1 / term)
    if z3.is_mul(term):
        return fold(lambda a, b: a * b, map(inverse, term.children()))
    if z3.is_add(term) and not (first := _coefficient(term.arg(0))).eq(z3.RealVal(1)):
        return inverse(z3.simplify(term / first, som=True)) * z3.simplify(1 / first)
    return term.arg(0) if term.decl().eq(INVERSE) else INVERSE(term)


def _coefficient(monomial: Any) -> Any:
    """Return the number in front of a monomial of a simplified sum."""
    number = monomial.arg(0) if z3.is_mul(monomial) else monomial
    return number if z3.is_rational_value(number) else z3.RealVal(1)


def has_division(term: Any, seen: set[int]) -> bool:
    """Whether a division occurs in a term; ``seen`` are the terms in which none does."""
    if term.get_id() in seen:
        return False
    if z3.is_div(term) or any(has_division(arg, seen) for arg in term.children()):
        return True
    seen.add(term.get_id())
    return False
