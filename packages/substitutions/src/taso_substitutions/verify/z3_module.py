"""The array module of the bounded prover: the bodies of operators run on arrays of z3 reals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import z3

from taso_gym.ops.floating import NumpyModule
from taso_gym.ops.modules import Array


class Z3Module(NumpyModule):
    """Object arrays of z3 reals."""

    def asarray(self, values: Any) -> Array:
        """Return numbers as z3 reals."""
        return np.vectorize(real, otypes=[object])(np.asarray(values))

    def constant(self, value: float | int, like: Array) -> Array:
        """Return a number; infinities are variables that `extreme` drops."""
        result = np.empty((), dtype=object)
        result[()] = real(value)
        return result

    def function(self, name: str, x: Array) -> Array:
        """Apply an uninterpreted function; the absolute value is exact."""
        if name == "abs":
            return _each(lambda v: z3.If(v >= 0, v, -v), x)
        f = z3.Function(name, z3.RealSort(), z3.RealSort())
        return _each(f, x)

    def power(self, a: Array, b: Array) -> Array:
        """a**b: products for small integer exponents, sqrt for 1/2, else uninterpreted."""
        return _each(_power, *np.broadcast_arrays(a, b))

    def extreme(self, name: str, xs: Sequence[Array]) -> Array:
        """Element-wise maximum or minimum, exactly."""
        return _each(lambda *vs: _extreme(name, vs), *np.broadcast_arrays(*xs))

    def reduce(self, name: str, x: Array, axes: Sequence[int], keepdims: bool) -> Array:
        """Reduce by "sum", "prod", "max" or "min"."""
        if name in ("sum", "prod") or not axes:
            return super().reduce(name, x, axes, keepdims)
        kept = [a for a in range(x.ndim) if a not in axes]
        last = np.transpose(x, [*kept, *axes]).reshape([x.shape[a] for a in kept] + [-1])
        result = self.extreme(name, [last[..., i] for i in range(last.shape[-1])])
        return np.expand_dims(result, tuple(axes)) if keepdims else result

    def equal(self, a: Array, b: Array) -> Array:
        """1 where equal, else 0."""
        return _each(lambda u, v: z3.If(u == v, real(1), real(0)), *np.broadcast_arrays(a, b))

    def less(self, a: Array, b: Array) -> Array:
        """1 where a < b, else 0."""
        return _each(lambda u, v: z3.If(u < v, real(1), real(0)), *np.broadcast_arrays(a, b))

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
        return _each(lambda c, u, v: z3.If(c == 1, u, v), *np.broadcast_arrays(condition, a, b))

    def cast(self, x: Array, dtype: str) -> Array:
        """Uninterpreted: a conversion may round."""
        return self.function(f"cast to {dtype}", x)

    def divide(self, a: Array, b: Array) -> Array:
        """A / b; see `without_division` for what a division by 0 is."""
        return a / b

    def shift_max(self, x: Array, axis: int) -> Array:
        """Return ``x``: there are no overflows."""
        return x


def real(value: Any) -> Any:
    """Return a number or a term as a z3 term; an infinity is a variable."""
    if isinstance(value, z3.ExprRef):
        return value
    if isinstance(value, float) and math.isinf(value):
        return z3.Real("inf" if value > 0 else "-inf")
    return z3.RealVal(value) if isinstance(value, int) else z3.RealVal(str(_fraction(float(value))))


def _fraction(value: float) -> str:
    numerator, denominator = value.as_integer_ratio()
    return f"{numerator}/{denominator}"


def _each(f: Any, *arrays: Array) -> Array:
    result = np.empty(np.shape(arrays[0]), dtype=object)
    for index in np.ndindex(result.shape):
        result[index] = f(*(np.asarray(a, dtype=object)[index] for a in arrays))
    return result


def _power(base: Any, exponent: Any) -> Any:
    value = z3.simplify(real(exponent))
    if z3.is_rational_value(value):
        number = value.as_fraction()
        if number.denominator == 1 and 0 <= number <= 8:
            result = real(1)
            for _ in range(int(number)):
                result = result * base
            return result
        if 2 * number == 1:
            return z3.Function("sqrt", z3.RealSort(), z3.RealSort())(base)
    return z3.Function("pow", z3.RealSort(), z3.RealSort(), z3.RealSort())(base, value)


def _extreme(name: str, values: Sequence[Any]) -> Any:
    neutral = "-inf" if name == "max" else "inf"
    kept = [v for v in values if str(v) != neutral]
    if not kept:
        return z3.Real(neutral)
    result = kept[0]
    for v in kept[1:]:
        result = z3.If(v > result if name == "max" else v < result, v, result)
    return result


def without_division(term: Any, memo: dict[int, Any]) -> Any:
    """Return a term with a / b written as a * inv(b), where inv is uninterpreted and b is in normal form.

    What is proved then holds whatever the inverse of 0 is taken to be.
    """
    key = term.get_id()
    if key not in memo:
        args = [without_division(arg, memo) for arg in term.children()]
        if z3.is_div(term) and not z3.is_rational_value(args[1]):
            inverse = z3.Function("inv", z3.RealSort(), z3.RealSort())
            memo[key] = args[0] * inverse(z3.simplify(args[1], som=True))
        else:
            memo[key] = term.decl()(*args) if args else term
    return memo[key]
