"""The array module of the bounded prover: the bodies of operators run on arrays of z3 reals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce as fold
from typing import Any, cast

import numpy as np
import z3

from taso_gym.ops.floating import NumpyModule
from taso_gym.ops.modules import Array

LARGEST = 1000
"""Largest denominator of a simple fraction."""
SMALL_POWERS = 8
"""Largest exponent that is written out as a product."""
REAL = z3.RealSort()
INVERSE = z3.Function("inv", REAL, REAL)
"""1 / a: no more is known of it than inv(a b) = inv(a) inv(b) and inv(inv(a)) = a, which hold with inv(0) = 0."""


class Terms(np.ndarray[Any, Any]):
    """An array of terms, whose arithmetic and elements are arrays too where there are no axes."""

    def __getitem__(self, index: Any) -> Any:
        """Return an array, of one element where all axes are indexed."""
        found: Any = super().__getitem__(index)
        return found if isinstance(found, np.ndarray) else _each(real, found)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply a ufunc to terms; numbers become terms first."""
        operands = [np.asarray(x if isinstance(x, Terms) else _each(real, x), dtype=object) for x in inputs]
        return _each(real, getattr(ufunc, method)(*operands, **options))


class Z3Module(NumpyModule):
    """Object arrays of z3 reals."""

    def asarray(self, values: Any) -> Array:
        """Return numbers as z3 reals."""
        return _each(real, values)

    def constant(self, value: float | int, like: Array) -> Array:
        """Return a number; infinities are variables that `extreme` drops."""
        return _each(real, value)

    def function(self, name: str, x: Array) -> Array:
        """Apply an uninterpreted function; the absolute value is exact."""
        if name == "abs":
            return _each(_absolute, x)
        f = z3.Function(name, REAL, REAL)

        def apply(term: Any) -> Any:
            return f(tidy(term))

        return _each(apply, x)

    def logaddexp(self, a: Array, b: Array) -> Array:
        """log(e**a + e**b)."""
        return self.log(self.exp(a) + self.exp(b))

    def shift_max(self, x: Array, axis: int, /) -> Array:
        """Return ``x``: there are no overflows."""
        return x

    def power(self, a: Array, b: Array) -> Array:
        """a**b: products for small integer exponents, sqrt for 1/2, else uninterpreted."""
        return _each(_power, a, b)

    def divide(self, a: Array, b: Array) -> Array:
        """A / b; see `without_division` for what a division by 0 is."""
        return a / b

    def ratio(self, a: Array, b: Array) -> Array:
        """A / b."""
        return a / b

    def extreme(self, name: str, xs: Sequence[Array]) -> Array:
        """Element-wise maximum or minimum; see `with_comparisons`."""
        return _each(lambda *vs: _extreme(name, vs), *xs)

    def reduce(self, name: str, x: Array, axes: Sequence[int], keepdims: bool) -> Array:
        """Reduce by "sum", "prod", "max" or "min"."""
        if name in ("sum", "prod") or not axes:
            return _each(real, super().reduce(name, x, axes, keepdims))
        kept = [a for a in range(x.ndim) if a not in axes]
        count = math.prod(x.shape[a] for a in axes)
        last = np.transpose(x, [*kept, *axes]).reshape([x.shape[a] for a in kept] + [count])
        result = self.extreme(name, [last[..., i] for i in range(count)])
        return np.expand_dims(result, tuple(axes)) if keepdims else result

    def matmul(self, a: Array, b: Array) -> Array:
        """Batched matrix product."""
        return _each(real, super().matmul(a, b))

    def einsum(self, equation: str, *xs: Array) -> Array:
        """Sum of products."""
        return _each(real, super().einsum(equation, *xs))

    def equal(self, a: Array, b: Array) -> Array:
        """1 where equal, else 0."""
        return _each(_equal, a, b)

    def less(self, a: Array, b: Array) -> Array:
        """1 where a < b, else 0."""
        return _each(_less, a, b)

    def logical_and(self, a: Array, b: Array) -> Array:
        """Product of truths."""
        return a * b

    def logical_or(self, a: Array, b: Array) -> Array:
        """A + b - a b."""
        return a + b - a * b

    def logical_not(self, a: Array) -> Array:
        """1 - a."""
        return 1 - a

    def where(self, condition: Array, a: Array, b: Array) -> Array:
        """Choose by truth."""
        return _each(_choose, condition, a, b)

    def cast(self, x: Array, dtype: str) -> Array:
        """Uninterpreted: a conversion may round."""
        return self.function(f"cast to {dtype}", x)

    def take(self, x: Array, indices: Array, axis: int) -> Array:
        """Elements at indices, which are numbers."""
        plain = np.asarray(indices, dtype=object)
        places = np.array([v.as_fraction().numerator for v in plain.flat], np.int64).reshape(plain.shape)
        return super().take(x, places, axis)


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


def _absolute(a: Any) -> Any:
    return z3.If(a >= 0, a, -a)


def _equal(a: Any, b: Any) -> Any:
    return z3.If(a == b, real(1), real(0))


def _less(a: Any, b: Any) -> Any:
    return z3.If(a < b, real(1), real(0))


def _choose(condition: Any, a: Any, b: Any) -> Any:
    return z3.If(condition == 1, a, b)


def _greater(a: Any, b: Any) -> Any:
    return z3.If(b > a, b, a)


def _smaller(a: Any, b: Any) -> Any:
    return z3.If(b < a, b, a)


def _each(f: Callable[..., Any], *arrays: Any) -> Array:
    """Apply a function of terms element by element to arrays, or terms, that broadcast."""
    operands = np.broadcast_arrays(*(np.asarray(a, dtype=object) for a in arrays))
    result = np.empty(operands[0].shape, dtype=object)
    for index in np.ndindex(result.shape):
        result[index] = f(*(a[index] for a in operands))
    return result.view(Terms)


def _power(base: Any, exponent: Any) -> Any:
    value = z3.simplify(real(exponent))
    if z3.is_rational_value(value):
        number: Fraction = cast(Any, value).as_fraction()
        if number.denominator == 1 and abs(number) <= SMALL_POWERS:
            result = fold(lambda a, _: a * base, range(abs(int(number))), real(1))
            return 1 / result if number < 0 else result
        if 2 * number == 1:
            return z3.Function("sqrt", REAL, REAL)(tidy(base))
    return z3.Function("pow", REAL, REAL, REAL)(tidy(base), value)


def _extreme(name: str, values: Sequence[Any]) -> Any:
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
    """Return 1 / a term."""
    if z3.is_rational_value(term) and term.as_fraction() != 0:
        return z3.simplify(1 / term)
    if z3.is_mul(term):
        return fold(lambda a, b: a * b, map(inverse, term.children()))
    return term.arg(0) if term.decl().eq(INVERSE) else INVERSE(term)


def has_division(term: Any, seen: set[int]) -> bool:
    """Whether a division occurs in a term; ``seen`` are the terms in which none does."""
    if term.get_id() in seen:
        return False
    if z3.is_div(term) or any(has_division(arg, seen) for arg in term.children()):
        return True
    seen.add(term.get_id())
    return False
