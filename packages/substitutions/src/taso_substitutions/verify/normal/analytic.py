"""Normal forms over the reals by listed axioms: of exp, log, tanh, roots, and of maxima as piecewise linear functions.

Each axiom is an identity that is true of real numbers where both sides are defined. A proof that uses one names it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce as fold

from taso_substitutions.verify.normal.canonical import POWER
from taso_substitutions.verify.normal.division import cancelled, divisors
from taso_substitutions.verify.normal.extremes import NAME_OF, extreme
from taso_substitutions.verify.normal.factors import Factor, Term
from taso_substitutions.verify.normal.index_module import IndexModule
from taso_substitutions.verify.normal.index_tensor import IndexTensor, Position
from taso_substitutions.verify.normal.patterns import (
    common_factors,
    is_bend,
    monic,
    number_in,
    one_minus,
    one_plus_inverse,
    one_plus_share,
    root,
    without,
)
from taso_substitutions.verify.normal.piecewise import Piecewise
from taso_substitutions.verify.normal.polynomial import (
    ONE,
    ZERO,
    Polynomial,
    atom,
    collect,
    constant,
    inverse,
    number,
    opaque,
    term_of,
)
from taso_substitutions.verify.normal.sizes import Sizes

AXIOMS: Mapping[str, str] = {
    "literal": "a literal stands for the fraction of at most 1000, or the root of one, that it is rounded from",
    "exp-sum": "exp(a + b) = exp(a) exp(b), exp(n a) = exp(a)^n",
    "exp-log": "exp(n log(a)) = a^n",
    "tanh": "tanh(a) = 1 - 2 / (1 + exp(2 a))",
    "logistic": "1 / (1 + c / p) = 1 - c / (c + p) for c > 0, p a product of sums of exponentials",
    "log-exp": "log(1 + 1 / exp(a)) = log(1 + exp(a)) - a",
    "power": "a^(n/4) = sqrt(sqrt(a))^n and a = sqrt(a)^2 for a > 0",
    "max": "max(a, b) = b + max(a - b, 0), min(a, b) = -max(-a, -b), |a| = max(a, -a)",
    "piecewise": "functions of one number that are linear between the same ends are equal",
    "scale": "max(c a, 0) = c max(a, 0) for c >= 0",
    "case": "max(a, 0) is a where a >= 0, and 0 where a <= 0",
    "divisor": "a / a = 1 for a divisor a of the left side, where that is defined, and for a sum of exponentials",
}
"""Name -> statement of every axiom."""

MAX_ELEMENTS = 2
"""Largest set whose maximum is written as piecewise linear; windows of pools stay sets."""
LARGEST = 1000
SMALL_POWERS = 8


class AnalyticModule(IndexModule):
    """Computes on `IndexTensor`, by the axioms of `AXIOMS` too.

    Args:
        sizes: the atoms of this proof.
        nonnegative: inputs none of whose elements is negative.
        at_most_one: inputs none of whose elements is above 1.
        cases: normal form of ``a`` -> whether ``max(a, 0)`` is ``a`` in the case considered.

    Attributes:
        asked: arguments ``a`` of which a case distinction is possible.
    """

    def __init__(
        self,
        sizes: Sizes,
        nonnegative: frozenset[str] = frozenset(),
        at_most_one: frozenset[str] = frozenset(),
        cases: Mapping[str, bool] | None = None,
    ) -> None:
        super().__init__(sizes)
        self.nonnegative, self.at_most_one, self.cases = nonnegative, at_most_one, cases or {}
        self.asked: set[str] = set()
        self.divisors: set[str] = set()
        sizes.number, sizes.inverse = self.number, self.inverted

    def number(self, value: float | int | Fraction) -> Polynomial:
        """Return a number: the simple fraction, or root of one, that a float is rounded from, else what it is."""
        if not isinstance(value, float) or not math.isfinite(value) or value.is_integer():
            return number(value)
        simple = Fraction(value).limit_denominator(LARGEST)
        if float(simple) == value:
            self._use("literal" if simple != Fraction(value) else "")
            return constant(simple)
        square = Fraction(value * value).limit_denominator(LARGEST)
        if square > 0 and abs(math.sqrt(square) - abs(value)) <= math.ulp(value):
            self._use("literal")
            return root(square).scale(Fraction(1 if value > 0 else -1))
        return number(value)

    def apply(self, name: str, p: Polynomial) -> Polynomial:
        """Apply a function to an element."""
        match name:
            case "exp":
                return self.exp_of(p)
            case "tanh":
                self._use("tanh")
                return ONE + self.inverted(ONE + self.exp_of(p.scale(Fraction(2)))).scale(Fraction(-2))
            case "log" if (power := one_plus_inverse(p)) is not None:
                self._use("log-exp")
                exponents = [f[2][0] for t in power.terms.values() for f in t.factors]
                return opaque("log", ONE + power) + -fold(lambda a, b: a + b, exponents, ZERO)
            case "abs":
                return self.extreme_of("max", [p, -p])
            case "sqrt" if p.constant and p.constant > 0:
                return root(p.constant)
            case _:
                return opaque(name, p)

    def exp_of(self, p: Polynomial) -> Polynomial:
        """Return the exponential: of a sum, the product; of a multiple, the power; of a logarithm, its argument."""
        if len(p.terms) > 1:
            self._use("exp-sum")
        return fold(lambda a, t: a * self._exp_term(t), p.terms.values(), ONE)

    def _exp_term(self, term: Term) -> Polynomial:
        count = abs(term.coefficient.numerator)
        whole = count <= SMALL_POWERS
        factor = term_of(term._replace(coefficient=Fraction(1))).single
        if factor is not None and factor[:2] == ("f", "log") and term.coefficient.denominator == 1 and whole:
            self._use("exp-log")
            base = factor[2][0]
        else:
            unit = Fraction(1, term.coefficient.denominator) if whole else abs(term.coefficient)
            count = count if whole else 1
            base = opaque(POWER, term_of(term._replace(coefficient=unit)))
        if term.coefficient.numerator != 1:
            self._use("exp-sum")
        power = fold(lambda a, _: a * base, range(count), ONE)
        return inverse(power) if term.coefficient < 0 else power

    def inverted(self, p: Polynomial) -> Polynomial:
        """Return 1 / p."""
        share = one_plus_share(p)
        if share is None:
            return inverse(p)
        self._use("logistic")
        part, rest = share
        return ONE + -inverse(constant(part) + rest).scale(part)

    def pair(self, left: IndexTensor, right: IndexTensor, position: Position) -> tuple[Polynomial, Polynomial]:
        """Return an element of both sides, without divisions that cancel where the sides differ with them."""
        a, b = super().pair(left, right, position)
        if a == b:
            return a, b
        self.divisors.update(divisors(a))
        short = cancelled(a, self.divisors), cancelled(b, self.divisors)
        if short != (a, b):
            self._use("divisor")
        return short

    def raised(self, base: Polynomial, exponent: Polynomial) -> Polynomial:
        """Return an element to the power of another one; quarters are roots."""
        value = exponent.constant
        if value is None or value.denominator not in (2, 4) or abs(value) > SMALL_POWERS:
            return super().raised(base, exponent)
        self._use("power")
        whole, quarters = divmod(abs(value) * 4, 4)
        roots = [self.apply("sqrt", base)] if quarters >= 2 else []
        roots += [opaque("sqrt", self.apply("sqrt", base))] if quarters % 2 else []
        result = fold(lambda a, b: a * b, [*[base] * int(whole), *roots], ONE)
        return inverse(result) if value < 0 else result

    def extreme_of(self, name: str, elements: Sequence[Polynomial]) -> Polynomial:
        """Return the maximum or minimum of some elements: of few ones, as piecewise linear."""
        plain = extreme(name, elements)
        factor = plain.single
        arguments = factor[2] if factor is not None and factor[:2] == ("f", name) else ()
        guarded = [p for p in arguments if p in NAME_OF or (p.single or ("",))[1:2] in (("max if",), ("min if",))]
        if not 2 <= len(arguments) <= MAX_ELEMENTS or guarded:
            return plain
        self._use("max")
        sign = Fraction(1 if name == "max" else -1)
        return fold(lambda a, b: b + self.positive(a + -b), [p.scale(sign) for p in arguments]).scale(sign)

    def positive(self, p: Polynomial) -> Polynomial:
        """Return max(p, 0)."""
        common = [f for f in common_factors(p) if self._is_nonnegative(f)]
        if common and p.terms:
            self._use("scale")
            rest = p
            for factor in common:
                rest = without(rest, factor)
            return fold(lambda a, f: a * atom(f), common, self.positive(rest))
        for name in sorted(self.at_most_one):
            split = one_minus(p, name)
            if split is not None:
                self._use("scale")
                factor, rest = split
                return (ONE + -atom(factor)) * self.positive(rest)
        return self._bent(p)

    def _is_nonnegative(self, factor: Factor) -> bool:
        return (
            factor[0] in ("n", "1/n", ">=", "<")
            or factor[:2] == ("f", POWER)
            or (factor[0] == "x" and factor[1] in self.nonnegative)
        )

    def _bent(self, p: Polynomial) -> Polynomial:
        """Return max(p, 0) as a piecewise linear function of what ``p`` is one of."""
        offset = p.terms["1"].coefficient if "1" in p.terms else Fraction(0)
        moving = p + constant(-offset)
        if not moving.terms:
            return constant(max(offset, Fraction(0)))
        bends = {t.factors[0][2][0]: t.coefficient for t in moving.terms.values() if is_bend(t)}
        straight = collect(t for t in moving.terms.values() if not is_bend(t))
        places = {monic(q)[0]: q for q in (*bends, *([straight] if straight.terms else []))}
        if len(places) != 1:
            bends, straight = {}, moving
        (unit, _) = monic(straight if straight.terms else next(iter(bends)))
        slope = monic(straight)[1] if straight.terms else Fraction(0)
        found = Piecewise(offset, slope, {-number_in(q): c for q, c in bends.items()}).positive_part()
        self._use("piecewise")
        result = constant(found.offset) + unit.scale(found.slope)
        for place, bend in found.bends.items():
            result = result + self._bend(unit + constant(-place)).scale(bend)
        return result

    def _bend(self, p: Polynomial) -> Polynomial:
        """Return max(p, 0) of a p whose first coefficient is 1, in the case considered."""
        if p.key in self.cases:
            self._use("case")
            return p if self.cases[p.key] else ZERO
        if not any(v.startswith(("s", "b", "@")) for v in p.free()):
            self.asked.add(p.key)
        return opaque("relu", p)

    def _use(self, axiom: str) -> None:
        if axiom:
            self.axioms.add(axiom)
