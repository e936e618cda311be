"""Operations in a rule's expressions: arithmetic on numbers, dimensions and lists, and comparisons with three values.

Over symbolic dimensions an equality or inequality may be shown, refuted, or neither (None). Symbols stand for sizes,
which are at least 0. What an operation raises for arguments that it isn't for means that it has no value
(`taso_gym.rules.conditions`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from taso_gym.rules.lists import MAX_ITEMS, Undefined, as_list, item
from taso_gym.symbolic import Poly, bounds, exact_div

Truth = bool | None

MAX_EXPONENT, MAX_BITS = 64, 4096
"""Keep an expression from a rule file from filling the memory with one number."""


def _index(items: Any, index: Any) -> Any:
    return item(as_list(items), index)


def _arithmetic(apply: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Wrap an operation on numbers, dimensions, arrays and (for + and *) lists."""

    def wrapped(a: Any, b: Any) -> Any:
        if isinstance(a, str) or isinstance(b, str) or a is None or b is None:
            raise Undefined("arithmetic on something else than numbers")
        return apply(a, b)

    return wrapped


def _minus(a: Any, *rest: Any) -> Any:
    return _arithmetic(operator.sub)(a, *rest) if rest else _arithmetic(lambda x, _: -x)(a, 0)


def _floor_div(a: Any, b: Any) -> Any:
    if isinstance(a, Poly) or isinstance(b, Poly):
        quotient = exact_div(a, b)
        if quotient is None:
            raise Undefined(f"{a} // {b} isn't exact for every size")
        return quotient
    return a // b


def _remainder(a: Any, b: Any) -> Any:
    if isinstance(a, Poly) or isinstance(b, Poly):
        if exact_div(a, b) is None:
            raise Undefined(f"{a} % {b} depends on the sizes")
        return 0
    return a % b


def _times(a: Any, b: Any) -> Any:
    if not isinstance(a, tuple):
        if isinstance(a, int) and isinstance(b, int) and a.bit_length() + b.bit_length() > MAX_BITS:
            raise Undefined(f"a number of over {MAX_BITS} bits")
        return _times(b, a) if isinstance(b, tuple) else a * b
    if not isinstance(b, int) or len(as_list(a)) * b > MAX_ITEMS:
        raise Undefined(f"a list of over {MAX_ITEMS} items")
    return as_list(a) * b


def _power(a: Any, b: Any) -> Any:
    if not isinstance(b, int | float) or abs(b) > MAX_EXPONENT:
        raise Undefined(f"the power {b} of {a}")
    if isinstance(a, int) and a.bit_length() * abs(b) > MAX_BITS:
        raise Undefined(f"a number of over {MAX_BITS} bits")
    result = a**b
    if isinstance(result, complex):
        raise Undefined(f"{a} ** {b} isn't real")
    return result


def _all_of(truths: list[Truth]) -> Truth:
    return False if False in truths else None if None in truths else True


def _any_of(truths: list[Truth]) -> Truth:
    return True if True in truths else None if None in truths else False


def _negate(truths: list[Truth]) -> Truth:
    return None if truths[0] is None else not truths[0]


def _equal(a: Any, b: Any) -> Truth:
    if type(a) is int and type(b) is int:
        return a == b
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return _elementwise(a == b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return _equal_items(as_list(a), as_list(b))
    if isinstance(a, Poly) or isinstance(b, Poly):
        return _sign(a, b, lambda low, high: True if low == high == 0 else False if low > 0 or high < 0 else None)
    return bool(a == b)


def _equal_items(a: tuple[Any, ...], b: tuple[Any, ...]) -> Truth:
    return _all_of([_equal(x, y) for x, y in zip(a, b, strict=True)]) if len(a) == len(b) else False


def _less_equal(a: Any, b: Any) -> Truth:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return _elementwise(a <= b)
    if isinstance(a, Poly) or isinstance(b, Poly):
        return _sign(b, a, lambda low, high: True if low >= 0 else False if high < 0 else None)
    return bool(a <= b)


def _elementwise(result: Any) -> Truth:
    """Return whether something holds for all elements (True), for none (False), or for some (None)."""
    found = np.asarray(result)
    return True if found.all() else None if found.any() else False


def _sign(a: Any, b: Any, decide: Callable[[float, float], Truth]) -> Truth:
    """Decide from bounds of a - b over all non-negative values of the symbols."""
    if not isinstance(a, int | Poly) or not isinstance(b, int | Poly):
        return None
    return decide(*bounds(a - b, 0))


def _member(a: Any, items: Any) -> Truth:
    return _any_of([_equal(a, item) for item in as_list(items)])


def _unequal(a: Any, b: Any) -> Truth:
    return _negate([_equal(a, b)])


def _greater_equal(a: Any, b: Any) -> Truth:
    return _less_equal(b, a)


def _greater(a: Any, b: Any) -> Truth:
    if _is_nan(a) or _is_nan(b):
        return None if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else False
    return _negate([_less_equal(a, b)])


def _less(a: Any, b: Any) -> Truth:
    return _greater(b, a)


def _is_nan(x: Any) -> bool:
    """Whether a number, or an element of an array, is neither above nor below any other."""
    return isinstance(x, float | np.ndarray | np.generic) and bool(np.any(x != x))


def _no_member(a: Any, items: Any) -> Truth:
    return _negate([_member(a, items)])


def _divide(a: Any, b: Any) -> Any:
    return a / b


CONNECTIVES: Mapping[str, Callable[[list[Truth]], Truth]] = {"and": _all_of, "or": _any_of, "not": _negate}
OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "+": _arithmetic(operator.add),
    "-": _minus,
    "*": _arithmetic(_times),
    "/": _arithmetic(_divide),
    "//": _arithmetic(_floor_div),
    "%": _arithmetic(_remainder),
    "**": _arithmetic(_power),
    "==": _equal,
    "!=": _unequal,
    "<=": _less_equal,
    ">=": _greater_equal,
    "<": _less,
    ">": _greater,
    "in": _member,
    "not in": _no_member,
    "[]": _index,
}
