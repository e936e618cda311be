"""What a rule's variables stand for, read off the signatures of the matched nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from taso_gym.graph import Weight
from taso_gym.rules.conditions import Binding, evaluate, truth
from taso_gym.rules.functions import Operand, Undefined
from taso_gym.rules.pattern import Pattern
from taso_gym.rules.rule import Expr, Rest, Rule
from taso_gym.signature import Signature
from taso_gym.tensor import FLOATS, TensorType, ValueType


class Place(NamedTuple):
    """Where a tensor variable is found: input ``index`` of a pattern node, or for ``*xs`` from there on.

    ``tail`` is the number of inputs after ``*xs``; None for a single tensor.
    """

    name: str
    node: int
    index: int
    tail: int | None


def places_of(pattern: Pattern) -> tuple[Place, ...]:
    """Return the first place of every tensor variable, in pattern order."""
    places: dict[str, Place] = {}
    for name, i, position in pattern.variables():
        node = pattern.nodes[i]
        tail = len(node.operands) - 1 - position if isinstance(node.operands[position], Rest) else None
        places.setdefault(name, Place(name, i, node.index(position), tail))
    return tuple(places.values())


def spans_of(places: Sequence[Place], sigs: Sequence[Signature]) -> dict[str, range]:
    """Return, for each variable, which of the bound values in a row are its."""
    spans: dict[str, range] = {}
    begin = 0
    for place in places:
        count = 1 if place.tail is None else len(sigs[place.node].inputs) - place.index - place.tail
        spans[place.name] = range(begin, begin + count)
        begin += count
    return spans


def types_of(places: Sequence[Place], sigs: Sequence[Signature]) -> list[ValueType | None]:
    """Return the types of the bound values in a row."""
    types: list[ValueType | None] = []
    for place in places:
        inputs = sigs[place.node].inputs
        if place.tail is None:
            types.append(inputs[place.index])
        else:
            types += inputs[place.index : len(inputs) - place.tail]
    return types


def value_variables(rule: Rule) -> frozenset[str]:
    """Return the tensor variables whose values, not only types, a rule asks for."""
    exprs = [*rule.conditions, *_expressions(rule.lhs), *_expressions(rule.rhs)]
    return frozenset().union(*map(_valued, exprs))


def _expressions(part: object) -> list[Expr]:
    """Return the expressions inside terms, which are nested tuples and dataclasses."""
    if isinstance(part, Expr):
        return [part]
    items: Sequence[object] = part if isinstance(part, tuple) else tuple(getattr(part, "__dict__", {}).values())
    return [expr for item in items for expr in _expressions(item)]


def _valued(expr: Expr) -> frozenset[str]:
    own = frozenset([str(expr.args[0].value)]) if expr.kind == "call" and expr.value == "value" else frozenset[str]()
    return own.union(*map(_valued, expr.args))


def asks_for_values(expr: Expr) -> bool:
    """Whether an expression reads a weight."""
    return bool(_valued(expr))


def is_closed(expr: Expr) -> bool:
    """Whether an expression has a value without any binding."""
    if _names_something(expr):
        return False
    try:
        evaluate(expr, Binding({}))
    except Undefined:
        return False
    return True


def _names_something(expr: Expr) -> bool:
    return expr.kind == "name" or any(map(_names_something, expr.args))


def bind(
    pattern: Pattern,
    places: Sequence[Place],
    sigs: Sequence[Signature],
    weights: Mapping[str, Weight | None],
    opset: int,
) -> Binding | None:
    """Return the binding of a match, or None where attributes don't fit together.

    Args:
        pattern: the order of operands in which it was found.
        places: of the tensor variables.
        sigs: of the matched nodes in pattern order.
        weights: of the variables that ``value(...)`` asks for.
        opset: version of the default domain.
    """
    types = types_of(places, sigs)
    tensors: dict[str, Operand | tuple[Operand, ...]] = {}
    for place, span in zip(places, spans_of(places, sigs).values(), strict=True):
        bound = [types[i] for i in span]
        if not all(isinstance(t, TensorType) for t in bound):
            return None
        operands = tuple(Operand(t, weights.get(place.name)) for t in bound if isinstance(t, TensorType))
        tensors[place.name] = operands if place.tail is not None else operands[0]
    attrs = _bind_attributes(pattern, sigs)
    if attrs is None:
        return None
    binding = Binding(tensors, attrs, opset)
    return binding if _attributes_fit(pattern, sigs, binding) else None


def floating_type(sigs: Sequence[Signature]) -> str:
    """Return the one floating type that occurs in signatures; "" for none or several."""
    types = [t for sig in sigs for t in (*sig.inputs, *sig.outputs) if isinstance(t, TensorType)]
    found = {t.dtype for t in types} & FLOATS
    return min(found) if len(found) == 1 else ""


def _bind_attributes(pattern: Pattern, sigs: Sequence[Signature]) -> dict[str, Any] | None:
    attrs: dict[str, Any] = {}
    for node, sig in zip(pattern.nodes, sigs, strict=True):
        actual = dict(sig.attrs)
        for name, expr in node.attrs:
            if name in actual:
                listed = expr.kind == "list" and isinstance(actual[name], tuple)
                items = actual[name] if listed else (actual[name],)
                for variable, item in zip(expr.args if listed else (expr,), items, strict=False):
                    if variable.kind == "name":
                        attrs.setdefault(str(variable.value), item)
        if node.others:
            held = {k: v for k, v in actual.items() if k in node.held}
            if attrs.setdefault(node.others, held) != held:
                return None
    return attrs


def _attributes_fit(pattern: Pattern, sigs: Sequence[Signature], binding: Binding) -> bool:
    """Whether attributes written as expressions over variables have the values that the nodes have."""
    for node, sig in zip(pattern.nodes, sigs, strict=True):
        actual = dict(sig.attrs)
        for name, expr in node.attrs:
            if is_closed(expr):
                continue
            found = Expr("name", "")
            equal = Expr("==", None, (expr, found))
            own = Binding(binding.tensors, {**binding.attrs, "": actual.get(name)}, binding.opset)
            if name in actual and truth(equal, own) is not True:
                return False
    return True
