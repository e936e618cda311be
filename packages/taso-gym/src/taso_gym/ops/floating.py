"""Floating-point arrays: NumPy, NumPy in float64, and CuPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from taso_gym.errors import MissingPackageError
from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.tensor import FLOATS, numpy_dtype


def _vectorized_erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(x) if x.size else x


class NumpyModule(ArrayModule):
    """Arrays of NumPy, or of a library with its interface; element types are kept.

    Args:
        namespace: ``numpy`` or ``cupy``.
        erf: the error function on its arrays; its result is converted to the type of the argument.
        float64: convert floating-point values, and numbers of fewer than 8 bits, to float64 on entry and in casts.
    """

    def __init__(self, namespace: Any = np, erf: Any = _vectorized_erf, *, float64: bool = False) -> None:
        self.np, self._erf, self._float64 = namespace, erf, float64

    def asarray(self, values: Array) -> Array:
        """Return NumPy values as an array of this module."""
        values = np.asarray(values)
        is_float = values.dtype.kind in "fV" or values.dtype.name == "bfloat16"
        return self.np.asarray(values.astype(np.float64) if self._float64 and is_float else values)

    def to_numpy(self, x: Array) -> Any:
        """Return an array of this module as a NumPy array."""
        return x.get() if hasattr(x, "get") else np.asarray(x)

    def constant(self, value: float | int, like: Array, /) -> Array:
        """Return a scalar of the element type of ``like``."""
        if math.isinf(value) and like.dtype.kind in "iu":
            bounds = np.iinfo(like.dtype)
            value = int(bounds.max if value > 0 else bounds.min)
        return self.np.asarray(value, dtype=like.dtype)

    def function(self, name: str, x: Array) -> Array:
        """Apply a function of one number to each element."""
        apply = self._erf if name == "erf" else getattr(self.np, name)
        return self.np.asarray(apply(x)).astype(x.dtype, copy=False)

    def logaddexp(self, a: Array, b: Array) -> Array:
        """log(e**a + e**b), without overflow."""
        return self.np.logaddexp(a, b)

    def shift_max(self, x: Array, axis: int, /) -> Array:
        """Return ``x`` minus its maximum along ``axis``; -inf stays where all are."""
        if 0 in x.shape:
            return x
        largest = self.np.max(x, axis=axis, keepdims=True)
        return x - self.np.where(largest == -math.inf, self.constant(0, x), largest)

    def power(self, a: Array, b: Array) -> Array:
        """a**b, in the element type of ``a``."""
        return self.np.power(a, b).astype(a.dtype, copy=False)

    def divide(self, a: Array, b: Array) -> Array:
        """a / b; for integer types truncated towards zero."""
        if a.dtype.kind not in "iu":
            return a / b
        quotient = a // b
        return (quotient + ((a % b != 0) & ((a < 0) != (b < 0)))).astype(a.dtype, copy=False)

    def ratio(self, a: Array, b: Array) -> Array:
        """a / b, and 0 where both are 0."""
        return a / self.np.where((a == 0) & (b == 0), self.constant(1, b), b)

    def extreme(self, name: str, xs: Sequence[Array]) -> Array:
        """Element-wise "max" or "min"."""
        apply = getattr(self.np, name + "imum")
        result = xs[0]
        for x in xs[1:]:
            result = apply(result, x)
        return result

    def equal(self, a: Array, b: Array) -> Array:
        """Truth of a == b."""
        return self.np.equal(a, b)

    def less(self, a: Array, b: Array) -> Array:
        """Truth of a < b."""
        return self.np.less(a, b)

    def logical_and(self, a: Array, b: Array) -> Array:
        """Truth of a and b."""
        return self.np.logical_and(a, b)

    def logical_or(self, a: Array, b: Array) -> Array:
        """Truth of a or b."""
        return self.np.logical_or(a, b)

    def logical_not(self, a: Array) -> Array:
        """Truth of not a."""
        return self.np.logical_not(a)

    def where(self, condition: Array, a: Array, b: Array) -> Array:
        """Elements of ``a`` where ``condition`` holds, else of ``b``."""
        return self.np.where(condition, a, b)

    def cast(self, x: Array, dtype: str) -> Array:
        """Convert to an ONNX element type."""
        return x.astype(np.float64 if self._float64 and dtype in FLOATS else numpy_dtype(dtype))

    def matmul(self, a: Array, b: Array) -> Array:
        """Batched matrix product."""
        return self.np.matmul(a, b)

    def einsum(self, equation: str, *xs: Array) -> Array:
        """Sum of products."""
        return self.np.einsum(equation, *xs, optimize=len(xs) > 2)

    def reduce(self, name: str, x: Array, axes: Sequence[int], keepdims: bool) -> Array:
        """Reduce by "sum", "prod", "max" or "min"."""
        if not axes:
            return x
        more = {"dtype": x.dtype} if name in ("sum", "prod") else {}
        if name in ("max", "min") and 0 in x.shape:
            more = {"initial": name == "min" if x.dtype.kind == "b" else self._of_none(name, x)}
        result = getattr(self.np, name)(x, axis=tuple(axes), keepdims=keepdims, **more)
        return self.np.asarray(result, dtype=x.dtype)

    def _of_none(self, name: str, like: Array) -> Any:
        """Return the "max" or "min" of no numbers."""
        return self.constant(math.inf if name == "min" else -math.inf, like).item()

    def concatenate(self, xs: Sequence[Array], axis: int) -> Array:
        """Join along an axis."""
        return self.np.concatenate(xs, axis=axis)

    def transpose(self, x: Array, perm: Sequence[int]) -> Array:
        """Permute the axes."""
        return self.np.transpose(x, perm)

    def reshape(self, x: Array, shape: Sequence[int]) -> Array:
        """Give the elements another shape."""
        return self.np.reshape(x, tuple(shape))

    def broadcast_to(self, x: Array, shape: Sequence[int]) -> Array:
        """Repeat along axes of size 1 and new leading axes."""
        return self.np.broadcast_to(x, tuple(shape))

    def pad(self, x: Array, widths: Sequence[tuple[int, int]], value: float | int = 0, mode: str = "constant") -> Array:
        """Pad each axis before and after."""
        fill = {"constant_values": self.constant(value, x).item()} if mode == "constant" else {}
        return self.np.pad(x, list(widths), mode, **fill) if any(map(any, widths)) else x

    def take(self, x: Array, indices: Array, axis: int) -> Array:
        """Elements at ``indices`` along an axis."""
        return self.np.take(x, indices, axis=axis)


NUMPY = NumpyModule()
"""NumPy in the element types of the operands."""
FLOAT64 = NumpyModule(float64=True)
"""NumPy in float64: the reference that results are compared with."""


def cupy_module() -> NumpyModule:
    """Return the array module of CuPy.

    Raises:
        MissingPackageError: CuPy isn't installed.
    """
    try:
        import cupy  # pyright: ignore[reportMissingImports]
        from cupyx.scipy.special import erf  # pyright: ignore[reportMissingImports, reportUnknownVariableType]
    except ImportError as error:
        advice = "pip install 'taso-gym[gpu]' brings it, in an environment without 'taso-gym[cpu]'"
        raise MissingPackageError(f"expected CuPy, found none: {advice}") from error
    return NumpyModule(cupy, erf)
