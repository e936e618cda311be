"""What a rule's variables stand for, read off the signatures of the matched nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from taso_gym.graph import Node, Weight
from taso_gym.rules.conditions import Binding, evaluate, truth
from taso_gym.rules.functions import Operand
from taso_gym.rules.lists import Undefined
from taso_gym.rules.pattern import Pattern, distinct_calls
from taso_gym.rules.rule import Constant, Expr, Rest, Rule, kept
from taso_gym.signature import Signature
from taso_gym.tensor import FLOATS, TensorType

T = TypeVar("T")


class Place(NamedTuple):
    """Where a tensor variable is found: input ``at`` of a pattern node, or for ``*xs`` from there on.

    ``tail`` is the number of inputs after ``*xs``; None for a single tensor.
    """

    name: str
    node: int
    at: int
    tail: int | None


class Binder:
    """Reads off what the variables of a pattern stand for.

    Bound values, types and slots come in one row: variable by variable in pattern order, each of ``*xs`` by itself.

    Attributes:
        places: the first place of every tensor variable, in pattern order.
    """

    def __init__(self, pattern: Pattern) -> None:
        """Read variables of ``pattern``."""
        self._nodes = pattern.nodes
        places: dict[str, Place] = {}
        for name, i, position in pattern.variables():
            node = pattern.nodes[i]
            tail = len(node.operands) - 1 - position if isinstance(node.operands[position], Rest) else None
            places.setdefault(name, Place(name, i, node.index(position), tail))
        self.places = tuple(places.values())
        self._singles = None if any(p.tail is not None for p in self.places) else [p[1:3] for p in self.places]
        open_attrs = [(i, k, e) for i, node in enumerate(pattern.nodes) for k, e in node.attrs if not is_closed(e)]
        self._checks = [(i, k, Expr("==", None, (e, Expr("name", "")))) for i, k, e in open_attrs]

    def values(self, records: Sequence[Node]) -> tuple[int, ...]:
        """Return the bound values in a match of these nodes; none is absent."""
        if self._singles is not None:
            return tuple([records[node].inputs[index] for node, index in self._singles])  # pyright: ignore[reportReturnType]
        return self.row([record.inputs for record in records])  # pyright: ignore[reportReturnType]

    def row(self, inputs: Sequence[tuple[T, ...]]) -> tuple[T, ...]:
        """Return the bound values, or types, from the inputs of each matched node."""
        if self._singles is not None:
            return tuple([inputs[node][index] for node, index in self._singles])
        row: list[T] = []
        for _, node, index, tail in self.places:
            end = index + 1 if tail is None else len(inputs[node]) - tail
            row += inputs[node][index:end] if index != -1 or tail is not None else inputs[node][-1:]
        return tuple(row)

    def spans(self, sigs: Sequence[Signature]) -> dict[str, range]:
        """Return, for each variable, which places of the row are its."""
        spans: dict[str, range] = {}
        begin = 0
        for name, node, index, tail in self.places:
            count = 1 if tail is None else len(sigs[node].inputs) - index - tail
            spans[name] = range(begin, begin + count)
            begin += count
        return spans

    def bind(self, sigs: Sequence[Signature], weights: Mapping[str, Weight | None], opset: int) -> Binding | None:
        """Return the binding of a match, or None where attributes don't fit together.

        Args:
            sigs: of the matched nodes in pattern order.
            weights: of the variables that ``value(...)`` asks for.
            opset: version of the default domain.
        """
        types = self.row([sig.inputs for sig in sigs])
        tensors: dict[str, Operand | tuple[Operand, ...]] = {}
        for place, span in zip(self.places, self.spans(sigs).values(), strict=True):
            bound = [types[i] for i in span]
            operands = tuple([Operand(t, weights.get(place.name)) for t in bound if isinstance(t, TensorType)])
            if len(operands) != len(bound):
                return None
            tensors[place.name] = operands if place.tail is not None else operands[0]
        attrs = self._attributes(sigs)
        if attrs is None:
            return None
        binding = Binding(tensors, attrs, opset)
        return binding if self._attributes_fit(sigs, binding) else None

    def _attributes(self, sigs: Sequence[Signature]) -> dict[str, Any] | None:
        attrs: dict[str, Any] = {}
        for node, sig in zip(self._nodes, sigs, strict=True):
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

    def _attributes_fit(self, sigs: Sequence[Signature], binding: Binding) -> bool:
        """Whether attributes written as expressions over variables have the values that the nodes have."""
        for node, name, equal in self._checks:
            actual = dict(sigs[node].attrs)
            if name not in actual:
                return False
            own = Binding(binding.tensors, {**binding.attrs, "": actual[name]}, binding.opset)
            if truth(equal, own) is not True:
                return False
        return True


@kept
def value_variables(rule: Rule) -> frozenset[str]:
    """Return the tensor variables whose values, not only types, a rule asks for."""
    attrs = [expr for call in distinct_calls((*rule.lhs, *rule.rhs)) for _, expr in call.attrs]
    literals = [arg.value for call in distinct_calls(rule.rhs) for arg in call.args if isinstance(arg, Constant)]
    return frozenset[str]().union(*map(_valued, (*rule.conditions, *attrs, *literals)))


def _valued(expr: Expr) -> frozenset[str]:
    if expr.kind == "call" and expr.value == "value":
        return frozenset([str(expr.args[0].value)])
    return frozenset[str]().union(*map(_valued, expr.args)) if expr.args else frozenset()


def asks_for_values(expr: Expr) -> bool:
    """Whether an expression reads a weight."""
    return bool(_valued(expr))


def free_names(expr: Expr) -> frozenset[str]:
    """Return the variables of an expression."""
    if expr.kind == "name":
        return frozenset([str(expr.value)] if expr.value != "opset" else [])
    return frozenset[str]().union(*map(free_names, expr.args)) if expr.args else frozenset()


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


def floating_type(sigs: Sequence[Signature]) -> str:
    """Return the one floating type that occurs in signatures; "" for none or several."""
    types = [t for sig in sigs for t in (*sig.inputs, *sig.outputs) if isinstance(t, TensorType)]
    found = {t.dtype for t in types} & FLOATS
    return min(found) if len(found) == 1 else ""
