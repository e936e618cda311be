"""Values for dimension symbols: what cost models and observations put in for the sizes that a file leaves open."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, cast

from taso_gym.errors import OptionError
from taso_gym.tensor import Dim, Poly, TensorType, ValueType, itemsize_bits

if TYPE_CHECKING:
    from taso_gym.graph import Graph

LEADING, OTHER = 1, 128
"""Value of an unbound symbol on the leading axis (a batch) and on any other (a sequence)."""

_ARITHMETIC: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: a // b,  # occurs only as floor((…)/n)
}


def bind_dims(graph: Graph, given: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return a value for every symbol of the graph inputs' shapes: the given one, else 1 or 128.

    The first axis that a symbol occurs on decides: 1 on a leading axis, 128 on any other.
    """
    types = [graph.type_of(value) for value in graph.info.inputs]
    return {**_defaults(types), **(given or {})}


class Dims:
    """Binds symbols; remembers which ones it had no value for."""

    def __init__(self, given: Mapping[str, int] | None = None) -> None:
        """Take the values of symbols.

        Raises:
            OptionError: a value isn't a non-negative integer.
        """
        self.given = dict(given or {})
        self._unbound: set[str] = set()
        for name, value in self.given.items():
            if isinstance(value, bool) or value != int(value) or value < 0:
                raise OptionError(f"expected a non-negative integer as dimension {name!r}, found {value!r}")

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
        if t.shape is None:
            return t
        return t._replace(shape=tuple(self._value(d, values) for d in t.shape))

    def _value(self, dim: Dim, values: Mapping[str, int]) -> int:
        if isinstance(dim, int):
            return dim
        total = 0
        for monomial, coefficient in dim.terms:
            for name in monomial:
                coefficient *= self._symbol(name, values)
            total += coefficient
        return max(total, 0)

    def _symbol(self, name: str, values: Mapping[str, int]) -> int:
        if name in self.given:
            return self.given[name]
        if tree := _derived(name):
            return self._evaluate(tree, values)
        self._unbound.add(name)
        return values.get(name, OTHER)

    def _evaluate(self, tree: ast.expr, values: Mapping[str, int]) -> int:
        match tree:
            case ast.Constant(value=int(value)):
                return value
            case ast.Name(id=name):
                return self._symbol(name, values)
            case ast.UnaryOp(operand=operand):
                return -self._evaluate(operand, values)
            case ast.BinOp(left=left, op=op, right=right):
                return _ARITHMETIC[type(op)](self._evaluate(left, values), self._evaluate(right, values))
            case ast.Call(args=[argument]):
                return self._evaluate(argument, values)
            case _:
                raise AssertionError(f"{ast.dump(tree)} is no dimension")


def size_bytes(t: ValueType | None) -> int:
    """Return the bytes of a value; 0 for an absent input, a sequence, or a tensor of unknown rank."""
    if not isinstance(t, TensorType) or t.shape is None:
        return 0
    elements = 1
    for dim in t.shape:
        assert isinstance(dim, int), f"{t} isn't bound"
        elements *= dim
    return (elements * _bits(t.dtype) + 7) // 8


_bits = cache(itemsize_bits)


def _defaults(types: Iterable[ValueType | None]) -> dict[str, int]:
    found: dict[str, int] = {}
    for t in types:
        for axis, dim in enumerate((t.shape or ()) if isinstance(t, TensorType) else ()):
            for name in sorted(dim.symbols) if isinstance(dim, Poly) else ():
                found.setdefault(name, OTHER if axis else LEADING)
    return found


@cache
def _derived(name: str) -> ast.expr | None:
    """Return the expression that a symbol is named by (`taso_gym.tensor.floor_div`), or None for a plain symbol."""
    if not name.startswith("floor("):
        return None
    try:
        tree = ast.parse(name, mode="eval").body
    except SyntaxError:
        return None
    return tree if all(_is_arithmetic(node) for node in ast.walk(tree)) else None


def _is_arithmetic(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int)
        case ast.Call(func=ast.Name(id="floor"), args=[_]) | ast.UnaryOp(op=ast.USub()):
            return True
        case _:
            return isinstance(node, (ast.Name, ast.BinOp, ast.expr_context, ast.USub, *_ARITHMETIC))
