"""The array module of the bounded prover: the bodies of operators run on arrays of z3 reals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import z3

from taso_gym.ops.floating import NumpyModule
from taso_gym.ops.modules import Array
from taso_substitutions.verify.z3_terms import REAL, absolute, choose, equal, extreme, less, power, real, tidy


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
            return _each(absolute, x)
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
        return _each(power, a, b)

    def divide(self, a: Array, b: Array) -> Array:
        """A / b; see `without_division` for what a division by 0 is."""
        return a / b

    def ratio(self, a: Array, b: Array) -> Array:
        """A / b."""
        return a / b

    def extreme(self, name: str, xs: Sequence[Array]) -> Array:
        """Element-wise maximum or minimum; see `with_comparisons`."""
        return _each(lambda *vs: extreme(name, vs), *xs)

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
        return _each(equal, a, b)

    def less(self, a: Array, b: Array) -> Array:
        """1 where a < b, else 0."""
        return _each(less, a, b)

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
        return _each(choose, condition, a, b)

    def cast(self, x: Array, dtype: str) -> Array:
        """Uninterpreted: a conversion may round."""
        return self.function(f"cast to {dtype}", x)

    def take(self, x: Array, indices: Array, axis: int) -> Array:
        """Elements at indices, which are numbers."""
        plain = np.asarray(indices, dtype=object)
        places = np.array([v.as_fraction().numerator for v in plain.flat], np.int64).reshape(plain.shape)
        return super().take(x, places, axis)


def _each(f: Callable[..., Any], *arrays: Any) -> Array:
    """Apply a function of terms element by element to arrays, or terms, that broadcast."""
    operands = np.broadcast_arrays(*(np.asarray(a, dtype=object) for a in arrays))
    result = np.empty(operands[0].shape, dtype=object)
    for index in np.ndindex(result.shape):
        result[index] = f(*(a[index] for a in operands))
    return result.view(Terms)
