"""Evaluating a rule's expressions for one match, by an interpreter of our own.

Truth has three values: over symbolic dimensions an equality or inequality may be shown, refuted, or neither (None);
only what is shown counts. Symbols stand for sizes, which are at least 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from taso_gym.rules.functions import FUNCTIONS, Operand
from taso_gym.rules.lists import Undefined, as_list
from taso_gym.rules.operations import CONNECTIVES, OPERATIONS, Truth
from taso_gym.rules.rule import Expr


@dataclass(frozen=True)
class Binding:
    """What the variables of a rule stand for in one match.

    Attributes:
        tensors: tensor variable -> operand; ``*xs`` -> tuple of operands.
        attrs: attribute variable -> value; ``**k`` -> mapping of attributes.
        opset: version of the default domain.
    """

    tensors: Mapping[str, Operand | tuple[Operand, ...]]
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    opset: int = 0


def holds(condition: Expr, binding: Binding) -> bool:
    """Whether a condition is shown for a match."""
    return truth(condition, binding) is True


def truth(expr: Expr, binding: Binding) -> Truth:
    """Return whether an expression is shown (True), refuted (False) or neither (None)."""
    if expr.kind in CONNECTIVES:
        return CONNECTIVES[expr.kind]([truth(arg, binding) for arg in expr.args])
    try:
        value = evaluate(expr, binding)
    except Undefined:
        return None
    return value if isinstance(value, bool) else None


def evaluate(expr: Expr, binding: Binding) -> Any:
    """Return the value of an expression: a number, dimension, string, None, tuple, array or truth value.

    Raises:
        Undefined: it has none for this match.
    """
    match expr.kind:
        case "call":
            return _call(expr, binding)
        case "number" | "string" | "none":
            return expr.value
        case "list":
            return tuple(evaluate(arg, binding) for arg in expr.args)
        case "name":
            return _name(str(expr.value), binding)
        case "field":
            attrs = binding.attrs[str(expr.args[0].value)]
            if expr.value not in attrs:
                raise Undefined(f"no attribute {expr.value}")
            return attrs[expr.value]
        case "and" | "or" | "not":
            return truth(expr, binding)
        case "[:]":
            return _slice(*(evaluate(arg, binding) for arg in expr.args))
        case _:
            return _applied(OPERATIONS[expr.kind], [evaluate(arg, binding) for arg in expr.args])


def _name(name: str, binding: Binding) -> Any:
    if name == "opset":
        return binding.opset
    if name not in binding.attrs:
        raise Undefined(f"no value for {name}")
    return binding.attrs[name]


def _call(expr: Expr, binding: Binding) -> Any:
    function = FUNCTIONS[str(expr.value)]
    args = [
        evaluate(arg, binding) if function.parameter(i) == "value" else _tensor(str(arg.value), binding)
        for i, arg in enumerate(expr.args)
    ]
    return _applied(function.apply, args)


def _applied(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Return a function's value; it has none for arguments of kinds or shapes that it isn't for."""
    try:
        return function(*args)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise Undefined(str(error)) from error


def _tensor(name: str, binding: Binding) -> Operand | tuple[Operand, ...]:
    if name not in binding.tensors:
        raise Undefined(f"no tensor {name}")
    return binding.tensors[name]


def _slice(items: Any, begin: Any, end: Any) -> tuple[Any, ...]:
    if not all(i is None or isinstance(i, int) for i in (begin, end)):
        raise Undefined(f"no items {begin} to {end}")
    return as_list(items)[begin:end]
