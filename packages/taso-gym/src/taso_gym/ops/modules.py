"""Array modules: what the body of an operator may compute with.

A body is written over an `ArrayModule` ``xp`` and runs on whatever it stands for. It may use ``+ - * /`` and unary
minus between arrays, or an array and a Python number; ``.shape``; basic indexing (integers, slices, ``None``, ``...``);
and the methods of `ArrayModule`. It must not look at elements: a branch may depend on shapes and attributes only.

`taso_gym.ops.floating` has NumPy, its float64 form (the reference of all checks) and CuPy, `taso_gym.ops.modular` has
integers modulo a prime. A module over object arrays of terms (z3) derives from ``NumpyModule`` and overrides
``asarray``, ``constant``, ``function``, ``power``, ``less``, ``equal``, the three ``logical_``, ``where``, ``extreme``,
``reduce`` and ``cast``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

Array = Any
"""An array of some module; it has ``shape``, basic indexing and ``+ - * /`` with arrays and Python numbers."""


class ArrayModule(ABC):
    """The functions that a body may use, besides arithmetic and indexing."""

    @abstractmethod
    def asarray(self, values: Array) -> Array:
        """Return NumPy values as an array of this module."""

    @abstractmethod
    def to_numpy(self, x: Array) -> Any:
        """Return an array of this module as a NumPy array."""

    @abstractmethod
    def constant(self, value: float | int, like: Array, /) -> Array:
        """Return a scalar of the element type of ``like``; an infinity is the extreme value of an integer type."""

    @abstractmethod
    def function(self, name: str, x: Array) -> Array:
        """Apply a function of one real number to each element: see the methods below."""

    def exp(self, x: Array) -> Array:
        """e**x."""
        return self.function("exp", x)

    def log(self, x: Array) -> Array:
        """Natural logarithm."""
        return self.function("log", x)

    def sqrt(self, x: Array) -> Array:
        """Square root."""
        return self.function("sqrt", x)

    def erf(self, x: Array) -> Array:
        """Gauss error function."""
        return self.function("erf", x)

    def tanh(self, x: Array) -> Array:
        """Hyperbolic tangent."""
        return self.function("tanh", x)

    def abs(self, x: Array) -> Array:
        """Absolute value."""
        return self.function("abs", x)

    def logaddexp(self, a: Array, b: Array) -> Array:
        """log(e**a + e**b)."""
        return self.log(self.exp(a) + self.exp(b))

    def shift_max(self, x: Array, _axis: int, /) -> Array:
        """Return ``x`` minus its maximum along an axis where there are overflows, else ``x``.

        Only for an expression whose value doesn't depend on that shift.
        """
        return x

    @abstractmethod
    def power(self, a: Array, b: Array) -> Array:
        """a**b, in the element type of ``a``."""

    @abstractmethod
    def divide(self, a: Array, b: Array) -> Array:
        """a / b; for integer types truncated towards zero."""

    def ratio(self, a: Array, b: Array) -> Array:
        """a / b, and 0 where both are 0; in exact modules simply a / b."""
        return a / b

    @abstractmethod
    def extreme(self, name: str, xs: Sequence[Array]) -> Array:
        """Element-wise "max" or "min" of arrays that broadcast."""

    def maximum(self, *xs: Array) -> Array:
        """Element-wise maximum of arrays that broadcast."""
        return self.extreme("max", xs)

    def minimum(self, *xs: Array) -> Array:
        """Element-wise minimum of arrays that broadcast."""
        return self.extreme("min", xs)

    @abstractmethod
    def equal(self, a: Array, b: Array) -> Array:
        """Truth of a == b, element by element."""

    @abstractmethod
    def less(self, a: Array, b: Array) -> Array:
        """Truth of a < b, element by element."""

    @abstractmethod
    def logical_and(self, a: Array, b: Array) -> Array:
        """Truth of a and b."""

    @abstractmethod
    def logical_or(self, a: Array, b: Array) -> Array:
        """Truth of a or b."""

    @abstractmethod
    def logical_not(self, a: Array) -> Array:
        """Truth of not a."""

    @abstractmethod
    def where(self, condition: Array, a: Array, b: Array) -> Array:
        """Elements of ``a`` where ``condition`` holds, else of ``b``; the three broadcast."""

    @abstractmethod
    def cast(self, x: Array, dtype: str) -> Array:
        """Convert to the ONNX element type called ``dtype``."""

    @abstractmethod
    def matmul(self, a: Array, b: Array) -> Array:
        """Batched matrix product by NumPy's rule."""

    @abstractmethod
    def einsum(self, equation: str, *xs: Array) -> Array:
        """Sum of products by NumPy's notation, ellipsis included."""

    @abstractmethod
    def reduce(self, name: str, x: Array, axes: Sequence[int], keepdims: bool) -> Array:
        """Reduce by "sum", "prod", "max" or "min", in the element type of ``x``; no axes change nothing."""

    def sum(self, x: Array, axes: Sequence[int], keepdims: bool = True) -> Array:
        """Sum over axes."""
        return self.reduce("sum", x, axes, keepdims)

    @abstractmethod
    def concatenate(self, xs: Sequence[Array], axis: int) -> Array:
        """Join along an axis."""

    @abstractmethod
    def transpose(self, x: Array, perm: Sequence[int]) -> Array:
        """Permute the axes."""

    @abstractmethod
    def reshape(self, x: Array, shape: Sequence[int]) -> Array:
        """Give the elements another shape, in row-major order."""

    @abstractmethod
    def broadcast_to(self, x: Array, shape: Sequence[int]) -> Array:
        """Repeat along axes of size 1 and new leading axes."""

    @abstractmethod
    def pad(self, x: Array, widths: Sequence[tuple[int, int]], value: float | int = 0, mode: str = "constant") -> Array:
        """Pad each axis before and after; ``mode`` is "constant", "reflect", "edge" or "wrap"."""

    @abstractmethod
    def take(self, x: Array, indices: Array, axis: int) -> Array:
        """Elements of ``x`` at ``indices`` (negative ones count from the end) along an axis."""
