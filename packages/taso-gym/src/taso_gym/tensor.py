"""Tensor types: an element type and a shape whose dimensions are integers or integer polynomials over symbols."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto, helper

Monomial = tuple[str, ...]
"""Symbols of a product in sorted order, repeated for powers; the empty tuple is 1."""


class Poly:
    """An integer polynomial over a file's dimension symbols, in normal form.

    Two polynomials are equal exactly when their normal forms are; an equality that can't be shown is "no".
    A constant polynomial never exists as a `Poly`: it is an `int`.
    """

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        """Hold terms that are already sorted, merged and free of zeros; use `symbol` and arithmetic to build one."""
        self.terms = terms
        self._hash = hash(terms)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.terms == other.terms

    def __add__(self, other: Dim) -> Dim:
        if isinstance(other, int) and not other:
            return self
        return _collect([*self.terms, *_terms(other)])

    def __sub__(self, other: Dim) -> Dim:
        return self + other * -1

    def __mul__(self, other: Dim) -> Dim:
        if isinstance(other, int) and other == 1:
            return self
        return _collect([(tuple(sorted(a + b)), i * j) for a, i in self.terms for b, j in _terms(other)])

    def __rsub__(self, other: int) -> Dim:
        return self * -1 + other

    def __floordiv__(self, other: int) -> Dim:
        return floor_div(self, other)

    def __neg__(self) -> Dim:
        return self * -1

    __radd__ = __add__
    __rmul__ = __mul__

    def __str__(self) -> str:
        """Write it as ONNX dimension names are written: ``2*batch + 1``."""
        return " + ".join("*".join(([] if c == 1 and m else [str(c)]) + list(m)) for m, c in self.terms).replace(
            "+ -", "- "
        )

    __repr__ = __str__

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that occur in it."""
        return frozenset(s for m, _ in self.terms for s in m)

    @property
    def free_symbols(self) -> frozenset[str]:
        """The symbols that its value depends on: for a rounded quotient, those of its dividend and divisor."""
        found = set[str]()
        for name in self.symbols:
            inner = [d for d in _QUOTIENTS.get(name, ()) if isinstance(d, Poly)]
            found.update(*(d.free_symbols for d in inner)) if inner else found.add(name)
        return frozenset(found)

    def bind(self, dims: Mapping[str, int]) -> Dim:
        """Replace the symbols in ``dims`` by their values."""
        total: Dim = 0
        for monomial, coefficient in self.terms:
            term: Dim = coefficient
            for name in monomial:
                term = term * _bind_symbol(name, dims)
            total = total + term
        return total

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with what the rounded quotients in it stand for."""
        return _restored, (self.terms, {s: _QUOTIENTS[s] for s in self.symbols if s in _QUOTIENTS})


Dim = int | Poly
Shape = tuple[Dim, ...]


def _terms(value: Dim) -> tuple[tuple[Monomial, int], ...]:
    return value.terms if isinstance(value, Poly) else (((), value),)


def _collect(terms: Iterable[tuple[Monomial, int]]) -> Dim:
    merged: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        merged[monomial] = merged.get(monomial, 0) + coefficient
    kept = tuple(sorted((m, c) for m, c in merged.items() if c))
    if not kept:
        return 0
    return kept[0][1] if len(kept) == 1 and not kept[0][0] else Poly(tuple(reversed(kept)))


def symbol(name: str) -> Poly:
    """Return the dimension that ``name`` stands for."""
    return Poly((((name,), 1),))


def bind(dim: Dim, dims: Mapping[str, int]) -> Dim:
    """Replace the symbols of ``dim`` that ``dims`` binds."""
    return dim.bind(dims) if isinstance(dim, Poly) else dim


def bounds(dim: Dim, least: int) -> tuple[float, float]:
    """Return what a dimension is between, whatever the sizes from ``least``, 0 or 1, on that its symbols stand for."""
    terms = dict(_terms(dim))
    constant = terms.pop((), 0)
    nearest = constant + least * sum(terms.values())
    low = nearest if all(c > 0 for c in terms.values()) else -math.inf
    return low, nearest if all(c < 0 for c in terms.values()) else math.inf


def exact_div(a: Dim, b: Dim) -> Dim | None:
    """Return q with q * b == a for every value of the symbols, or None where that can't be shown."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    if a == b:
        return 1
    divisor = _terms(b)
    if len(divisor) != 1 or not divisor[0][1]:
        return None
    monomial, coefficient = divisor[0]
    quotient: list[tuple[Monomial, int]] = []
    for m, c in _terms(a):
        rest = list(m)
        for name in monomial:
            if name not in rest:
                return None
            rest.remove(name)
        if c % coefficient:
            return None
        quotient.append((tuple(rest), c // coefficient))
    return _collect(quotient)


def floor_div(a: Dim, b: Dim) -> Dim:
    """Return floor(a / b); where it isn't exact over symbols, a symbol named by the expression itself."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    exact = exact_div(a, b)
    if exact is not None:
        return exact
    name = f"floor(({a})/{b if isinstance(b, int) else f'({b})'})"
    _QUOTIENTS[name] = (a, b)
    return symbol(name)


_QUOTIENTS: dict[str, tuple[Dim, Dim]] = {}
"""Symbol of a rounded quotient -> dividend and divisor."""


def quotient_of(name: str) -> tuple[Dim, Dim] | None:
    """Return the dividend and divisor of a symbol that stands for a rounded quotient, else None."""
    return _QUOTIENTS.get(name)


def _bind_symbol(name: str, dims: Mapping[str, int]) -> Dim:
    if name in dims:
        return dims[name]
    if name not in _QUOTIENTS:
        return symbol(name)
    dividend, divisor = _QUOTIENTS[name]
    return floor_div(bind(dividend, dims), bind(divisor, dims))


def _restored(terms: tuple[tuple[Monomial, int], ...], quotients: Mapping[str, tuple[Dim, Dim]]) -> Poly:
    _QUOTIENTS.update(quotients)
    return Poly(terms)


def product(dims: Iterable[Dim]) -> Dim:
    """Return the product of dimensions; 1 for none."""
    total: Dim = 1
    for dim in dims:
        total = total * dim
    return total


def total(dims: Iterable[Dim]) -> Dim:
    """Return the sum of dimensions; 0 for none."""
    result: Dim = 0
    for dim in dims:
        result = result + dim
    return result


class TensorType(NamedTuple):
    """Type of a tensor value.

    ``dtype`` is ONNX's name in lower case ("float", "int64", "bfloat16", …); ``shape`` is None where the rank isn't
    known; ``const`` is true where the value doesn't depend on any graph input, so that it is folded on save.
    """

    dtype: str
    shape: Shape | None
    const: bool = False

    def __str__(self) -> str:
        """Write it as ``float[1, 128, 768]``; ``const`` is put in front of a constant's."""
        dims = "?" if self.shape is None else ", ".join(map(str, self.shape))
        return f"{'const ' if self.const else ''}{self.dtype}[{dims}]"

    @property
    def is_static(self) -> bool:
        """Whether every dimension is an integer."""
        return self.shape is not None and all(isinstance(d, int) for d in self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes of the value; sub-byte types are packed. Needs a static shape."""
        count = product(self.shape or ())
        assert self.shape is not None and isinstance(count, int), f"{self} has no static size"
        return (count * itemsize_bits(self.dtype) + 7) // 8

    def bind(self, dims: Mapping[str, int]) -> TensorType:
        """Replace the symbols that ``dims`` binds."""
        if self.shape is None or self.is_static:
            return self
        return self._replace(shape=tuple(bind(d, dims) for d in self.shape))


@dataclass(frozen=True)
class OtherType:
    """Type of a sequence, optional, map or sparse value, as a serialised ``TypeProto``; it is only carried along."""

    proto: bytes
    const: bool = False

    @cached_property
    def is_static(self) -> bool:
        """Always false: its size isn't known before it runs."""
        return False


ValueType = TensorType | OtherType

FLOATS = frozenset({"float", "double", "float16", "bfloat16"})
_BITS = {"uint4": 4, "int4": 4, "float4e2m1": 4, "uint2": 2, "int2": 2, "string": 64}


def dtype_name(elem_type: int) -> str:
    """Return the name of an ONNX ``TensorProto.DataType``."""
    return TensorProto.DataType.Name(elem_type).lower()


def dtype_code(name: str) -> int:
    """Return the ONNX ``TensorProto.DataType`` of a name."""
    return TensorProto.DataType.Value(name.upper())


def numpy_dtype(name: str) -> np.dtype:
    """Return the NumPy element type that ONNX stores a dtype as."""
    return np.dtype(helper.tensor_dtype_to_np_dtype(dtype_code(name)))


def itemsize_bits(name: str) -> int:
    """Return the bits of an element; a string counts as a pointer."""
    return _BITS.get(name) or numpy_dtype(name).itemsize * 8
