"""Integers modulo a prime: exact arithmetic in which unequal terms hardly ever give equal elements (fingerprints).

Sums, products and quotients are those of the field; a floating-point constant is a dyadic rational and so an element.
Every other function is opaque: a keyed hash of its arguments. Only mathematics that holds for all functions, besides
that of the field, makes two terms equal; the exceptions, all true over the reals, are stated at the methods.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import numpy as np

from taso_gym.errors import EquivalenceError
from taso_gym.ops.modules import Array, ArrayModule

MERSENNE_31 = 2**31 - 1
SMALL_POWERS = 64


def dtype_of(p: int) -> np.dtype[Any]:
    """Return int64 where a product of two residues fits it, else the type of Python's integers."""
    return np.dtype(np.int64 if p.bit_length() <= 31 else object)


class Residues:
    """An array of integers modulo ``p``, in [0, p); made by `ModularModule`."""

    __slots__ = ("p", "values")
    __array_ufunc__ = None  # NumPy operands leave the arithmetic to this class

    def __init__(self, values: Any, p: int) -> None:
        self.values, self.p = np.asarray(values, dtype=dtype_of(p)), p

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.values.shape

    def reshaped(self, shape: Sequence[int]) -> Residues:
        """Return the elements in another shape."""
        return type(self)(self.values.reshape(tuple(shape)), self.p)

    def __getitem__(self, index: Any) -> Residues:
        return type(self)(np.asarray(self.values[index]), self.p)

    def _other(self, other: Residues | float | int) -> Any:
        return other.values if isinstance(other, Residues) else residue(other, self.p)

    def __add__(self, other: Residues | float | int) -> Residues:
        return type(self)((self.values + self._other(other)) % self.p, self.p)

    def __sub__(self, other: Residues | float | int) -> Residues:
        return type(self)((self.values - self._other(other)) % self.p, self.p)

    def __rsub__(self, other: float | int) -> Residues:
        return type(self)((self._other(other) - self.values) % self.p, self.p)

    def __mul__(self, other: Residues | float | int) -> Residues:
        return type(self)(self.values * self._other(other) % self.p, self.p)

    def __neg__(self) -> Residues:
        return type(self)(-self.values % self.p, self.p)

    def __truediv__(self, other: Residues | float | int) -> Residues:
        divisor = other if isinstance(other, Residues) else type(self)(np.asarray(self._other(other)), self.p)
        return self * divisor.inverse()

    def __rtruediv__(self, other: float | int) -> Residues:
        return self.inverse() * other

    __radd__ = __add__
    __rmul__ = __mul__

    def inverse(self) -> Residues:
        """Return 1 / x by Fermat's little theorem.

        Raises:
            EquivalenceError: an element is zero.
        """
        if not np.all(self.values):
            raise EquivalenceError(f"expected divisors other than 0 modulo {self.p}, found 0")
        return self.to_the(self.p - 2)

    def to_the(self, exponent: int) -> Residues:
        """Return x**exponent for exponent >= 0, by repeated squaring."""
        result, square = type(self)(np.ones_like(self.values), self.p), self
        while exponent:
            result = result * square if exponent & 1 else result
            square, exponent = square * square, exponent >> 1
        return result


def residue(value: float | int, p: int) -> int:
    """Return a finite number, which is a dyadic rational, modulo ``p``.

    Raises:
        EquivalenceError: the number isn't finite.
    """
    if not math.isfinite(value):
        raise EquivalenceError(f"expected a finite number, found {value}")
    exact = Fraction(value)
    return exact.numerator * pow(exact.denominator, -1, p) % p


class ModularModule(ArrayModule):
    """Integers modulo ``prime`` (31 to 62 bits); ``key`` chooses the hash functions, so that two keys are two tests."""

    def __init__(self, prime: int = MERSENNE_31, key: int = 0) -> None:
        assert 31 <= prime.bit_length() <= 62, f"expected a prime of 31 to 62 bits, found {prime}"
        self.prime, self._key = prime, key
        self._dtype = dtype_of(prime)
        self._fits_64 = self._dtype.kind == "i"
        self._infinities = {s: int(self._hash(f"{s}inf", np.zeros((), self._dtype))) for s in (1, -1)}

    def asarray(self, values: Array) -> Residues:
        """Return integers, truth values or finite floats modulo the prime."""
        values = np.asarray(values)
        if values.dtype.kind in "iub":
            fits = self._fits_64 and values.dtype.kind != "u"
            return self._new(values.astype(np.int64 if fits else object) % self.prime)
        return self._new([residue(float(v), self.prime) for v in values.flat]).reshaped(values.shape)

    def to_numpy(self, x: Residues) -> Any:
        """Return the integers in [0, p)."""
        return x.values

    def constant(self, value: float | int, _like: Array, /) -> Residues:
        """Return a number modulo the prime; an infinity is an opaque element that `extreme` knows."""
        if isinstance(value, float) and math.isinf(value):
            return self._new(self._infinities[1 if value > 0 else -1])
        return self._new(residue(value, self.prime))

    def function(self, name: str, x: Residues) -> Residues:
        """Hash each element, keyed by the function's name."""
        return self._new(self._hash(name, x.values))

    def power(self, a: Residues, b: Residues) -> Residues:
        """a**b: exact for exponents of at most 64 in size, the square root for 1/2, else opaque."""
        base, exponent = np.broadcast_arrays(a.values, b.values)
        result = self._hash("pow", (base + self._hash("exponent", exponent)) % self.prime)
        for e in np.unique(exponent).tolist():
            if e <= SMALL_POWERS:
                result[exponent == e] = self._new(base[exponent == e]).to_the(e).values
            elif self.prime - e <= SMALL_POWERS:
                result[exponent == e] = self._new(base[exponent == e]).inverse().to_the(self.prime - e).values
            elif e * 2 % self.prime == 1:
                result[exponent == e] = self._hash("sqrt", base[exponent == e])
        return self._new(result)

    def divide(self, a: Residues, b: Residues) -> Residues:
        """a / b in the field."""
        return a / b

    def extreme(self, name: str, xs: Sequence[Residues]) -> Residues:
        """Opaque function of the *set* of operands: order, repetition and the neutral infinity don't matter."""
        return self._new(self._of_set(name, np.stack(np.broadcast_arrays(*(x.values for x in xs)), axis=-1)))

    def equal(self, a: Residues, b: Residues) -> Residues:
        """1 where the elements are equal, else an opaque function of the squared difference."""
        difference = a - b
        hashed = self._hash("equal", (difference * difference).values)
        return self._new(np.where(difference.values == 0, 1, hashed))

    def less(self, a: Residues, b: Residues) -> Residues:
        """Opaque function of the difference."""
        return self.function("negative", a - b)

    def logical_and(self, a: Residues, b: Residues) -> Residues:
        """Product: truth is 1."""
        return a * b

    def logical_or(self, a: Residues, b: Residues) -> Residues:
        """a + b - a b."""
        return a + b - a * b

    def logical_not(self, a: Residues) -> Residues:
        """1 - a."""
        return 1 - a

    def where(self, condition: Residues, a: Residues, b: Residues) -> Residues:
        """b + condition (a - b)."""
        return b + condition * (a - b)

    def cast(self, x: Residues, dtype: str) -> Residues:
        """Opaque: a conversion may round."""
        return self.function(f"cast to {dtype}", x)

    def matmul(self, a: Residues, b: Residues) -> Residues:
        """Batched matrix product; 31-bit operands are split, so that sums of up to 2**16 terms fit 64 bits."""
        if not self._fits_64:
            return self._new(np.matmul(a.values, b.values) % self.prime)
        high, low = a.values >> 16, a.values & 0xFFFF
        carried = np.matmul(high, b.values) % self.prime << 16
        return self._new((carried + np.matmul(low, b.values)) % self.prime)

    def einsum(self, equation: str, *xs: Residues) -> Residues:
        """Sum of products, with Python's integers."""
        return self._new(np.einsum(equation, *(x.values.astype(object) for x in xs)) % self.prime)

    def reduce(self, name: str, x: Residues, axes: Sequence[int], keepdims: bool) -> Residues:
        """Sum and product of the field; "max" and "min" as in `extreme`."""
        if not axes:
            return x
        if name in ("sum", "prod"):
            exact = getattr(np, name)(x.values.astype(object), axis=tuple(axes), keepdims=keepdims)
            return self._new(exact % self.prime)
        kept = [a for a in range(len(x.shape)) if a not in axes]
        last = np.transpose(x.values, [*kept, *axes]).reshape([x.shape[a] for a in kept] + [-1])
        result = self._of_set(name, last)
        return self._new(np.expand_dims(result, tuple(axes)) if keepdims else result)

    def concatenate(self, xs: Sequence[Residues], axis: int) -> Residues:
        """Join along an axis."""
        return self._new(np.concatenate([x.values for x in xs], axis=axis))

    def transpose(self, x: Residues, perm: Sequence[int]) -> Residues:
        """Permute the axes."""
        return self._new(np.transpose(x.values, perm))

    def reshape(self, x: Residues, shape: Sequence[int]) -> Residues:
        """Give the elements another shape."""
        return x.reshaped(shape)

    def broadcast_to(self, x: Residues, shape: Sequence[int]) -> Residues:
        """Repeat along axes of size 1 and new leading axes."""
        return self._new(np.broadcast_to(x.values, tuple(shape)))

    def pad(
        self, x: Residues, widths: Sequence[tuple[int, int]], value: float | int = 0, mode: str = "constant"
    ) -> Residues:
        """Pad each axis before and after."""
        fill: Any = {"constant_values": self.constant(value, x).values} if mode == "constant" else {}
        pad: Any = np.pad
        return self._new(pad(x.values, list(widths), mode, **fill)) if any(map(any, widths)) else x

    def take(self, x: Residues, indices: Residues, axis: int) -> Residues:
        """Elements at ``indices``; a residue above p / 2 is a negative index."""
        positive = indices.values.astype(np.int64)
        signed = positive - self.prime * (positive > self.prime // 2)
        return self._new(np.take(x.values, signed, axis=axis))

    def _new(self, values: Any) -> Residues:
        return Residues(values, self.prime)

    def _hash(self, name: str, values: Any) -> Any:
        """Return a hash of each element (splitmix64's finaliser), keyed by name, as residues."""
        key = blake2b(f"{self._key}/{name}".encode(), digest_size=8).digest()
        z = np.asarray(values).astype(np.uint64) ^ np.uint64(int.from_bytes(key, "little"))
        with np.errstate(over="ignore"):
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
                z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        return np.array((z ^ (z >> np.uint64(31))) % np.uint64(self.prime), dtype=self._dtype)

    def _of_set(self, name: str, values: Any) -> Any:
        """Hash the set of elements along the last axis; a set of one is that one."""
        values = np.sort(values, axis=-1)
        neutral = self._infinities[-1 if name == "max" else 1]
        counted = values != neutral
        counted[..., 1:] &= values[..., 1:] != values[..., :-1]
        total = np.where(counted, self._hash(f"{name} of", values), 0).sum(axis=-1) % self.prime
        count = counted.sum(axis=-1)
        single = np.where(count == 0, neutral, np.where(counted, values, 0).sum(axis=-1))
        return np.where(count > 1, self._hash(name, total), single)
