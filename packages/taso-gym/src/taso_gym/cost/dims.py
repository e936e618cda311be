"""Values for dimension symbols: what cost models and observations put in for the sizes that a file leaves open."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache
from numbers import Real
from typing import cast

from taso_gym.checks import check_kind, check_sizes
from taso_gym.errors import OptionError
from taso_gym.graph import Graph
from taso_gym.symbolic import Dim, Poly
from taso_gym.tensor import TensorType, ValueType, itemsize_bits

LEADING, OTHER = 1, 128
"""Value of an unbound symbol on the leading axis (a batch) and on any other (a sequence)."""


def bind_dims(graph: Graph, given: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return a value for every symbol of the graph inputs' shapes, as `bind_symbols` does.

    It is the given one, else the one that the graph was loaded with.

    Raises:
        OptionError: no graph, or what is given isn't a mapping from names to sizes.
    """
    check_kind("graph", graph, (Graph,), "a Graph")
    check_sizes(given)
    sizes = {name: int(size) for name, size in {**graph.info.dims, **(given or {})}.items()}
    return bind_symbols(map(graph.type_of, graph.info.inputs), sizes)


def bind_symbols(types: Iterable[ValueType], given: Mapping[str, int]) -> dict[str, int]:
    """Return a value for every symbol of some types' shapes, and what is given besides.

    It is the given one, else the sum where the symbol is called one ("past + 1"), else 1 where it first occurs on a
    leading axis and 128 where it first occurs on another.
    """
    return {**with_sums({**_defaults(types), **given}), **given}


def with_sums(dims: Mapping[str, int]) -> dict[str, int]:
    """Return values of symbols in which one that is called the sum of others ("past + 1") has that value."""
    found = dict(dims)
    for name in found:
        terms = [int(t) if t.isdecimal() else found.get(t) for t in name.split(" + ")]
        if len(terms) > 1 and None not in terms:
            found[name] = sum(t for t in terms if t is not None)
    return found


class Dims:
    """Binds symbols; remembers which ones it had no value for."""

    def __init__(self, given: Mapping[str, int] | None = None) -> None:
        """Take the values of symbols.

        Raises:
            OptionError: no mapping, or a value isn't a non-negative integer.
        """
        check_kind("dims", given, (Mapping, type(None)), "a mapping from names to sizes")
        self._unbound: set[str] = set()
        for name, value in (given or {}).items():
            if isinstance(value, bool) or not isinstance(value, Real) or value < 0 or value != value // 1:
                raise OptionError(f"expected a non-negative integer as dimension {name!r}, found {value!r}")
        self.given = {name: int(value) for name, value in (given or {}).items()}

    @property
    def unbound(self) -> tuple[str, ...]:
        """Symbols that were costed by default so far, sorted."""
        return tuple(sorted(self._unbound))

    @property
    def key(self) -> str:
        """The given values as text."""
        return ",".join(f"{name}={value}" for name, value in sorted(self.given.items()))

    def bind(self, types: Iterable[ValueType | None]) -> list[ValueType | None]:
        """Return the types of one signature with an integer for every symbol.

        Within them, a symbol without a value is 1 where it first occurs on a leading axis, else 128.
        """
        types = list(types)
        if all(t is None or t.is_static for t in types):
            return types
        values = {**_defaults(types), **self.given}
        return [self._static(t, values) if isinstance(t, TensorType) else t for t in types]

    def bind_attr(self, value: object, types: Iterable[ValueType | None]) -> object:
        """Return an attribute value of a signature of these types with an integer for every symbol."""
        if isinstance(value, Poly):
            return self._value(value, {**_defaults(types), **self.given})
        if isinstance(value, tuple):
            items, types = cast(tuple[object, ...], value), list(types)
            return tuple(self.bind_attr(item, types) for item in items)
        return value

    def _static(self, t: TensorType, values: Mapping[str, int]) -> TensorType:
        return t._replace(shape=None if t.shape is None else tuple(self._value(d, values) for d in t.shape))

    def _value(self, dim: Dim, values: Mapping[str, int]) -> int:
        if isinstance(dim, int):
            return dim
        free = dim.free_symbols
        self._unbound |= free - self.given.keys()
        found = dim.bind({**dict.fromkeys(free, OTHER), **values})
        assert isinstance(found, int), f"{dim} isn't bound by {values}"
        return max(found, 0)


def sizes_of(t: TensorType) -> tuple[int, ...]:
    """Return the shape of a bound tensor type of known rank."""
    assert t.shape is not None and t.is_static, f"{t} isn't bound"
    return tuple(dim for dim in t.shape if isinstance(dim, int))


def size_bytes(t: ValueType | None) -> int:
    """Return the bytes of a value; 0 for an absent input, a sequence, or a tensor of unknown rank."""
    if not isinstance(t, TensorType) or t.shape is None:
        return 0
    return (math.prod(sizes_of(t)) * _bits(t.dtype) + 7) // 8


_bits = cache(itemsize_bits)


def _defaults(types: Iterable[ValueType | None]) -> dict[str, int]:
    found: dict[str, int] = {}
    for t in types:
        for axis, dim in enumerate((t.shape or ()) if isinstance(t, TensorType) else ()):
            for name in dim.free_symbols if isinstance(dim, Poly) else ():
                found.setdefault(name, OTHER if axis else LEADING)
    return found
