"""Labels: what a pattern node asks of a signature alone, one bit each, found once per signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from taso_gym.errors import TypeInferenceError
from taso_gym.ops import Operator
from taso_gym.rules.binding import Binder, asks_for_values, free_names, is_closed
from taso_gym.rules.conditions import Binding, evaluate, holds
from taso_gym.rules.pattern import Operand, Pattern, PatternNode, bound_names, is_all
from taso_gym.rules.rule import Absent, Expr, Rest, Rule, Var
from taso_gym.signature import Signature


@dataclass(frozen=True)
class Label:
    """A predicate on signatures.

    Attributes:
        pattern: the node alone; variables are named by their place, so that like nodes have like labels.
        conditions: those of the rule's conditions that are about this node's variables alone.
        root: one of its outputs is replaced, so it mustn't be constant (constants are folded and cost nothing).
    """

    pattern: Pattern
    conditions: tuple[Expr, ...]
    root: bool

    def binding(self, sig: Signature, opset: int) -> Binding | None:
        """Return what the node's variables stand for in a signature; None if its operands or attributes don't fit."""
        node = self.pattern.nodes[0]
        if sig.op is not node.op or not _has_operands(node, sig) or not self._has_attributes(sig):
            return None
        return self._binder.bind([sig], {}, opset)

    @cached_property
    def _binder(self) -> Binder:
        return Binder(self.pattern)

    @cached_property
    def _fixed(self) -> dict[str, Any]:
        """Attributes that are written as values."""
        return {name: evaluate(expr, Binding({})) for name, expr in self.pattern.nodes[0].attrs if is_closed(expr)}

    def _has_attributes(self, sig: Signature) -> bool:
        """Whether attributes that aren't variables have the value that is written, or their ONNX default."""
        if not sig.attrs:
            return True
        node = self.pattern.nodes[0]
        actual = dict(sig.attrs)
        free = node.held.union(name for name, _ in node.attrs).difference(self._fixed)
        given = {**node.op.defaults, **self._fixed, **{name: actual[name] for name in free if name in actual}}
        try:
            expected = node.op.normalize(given, sig.inputs)  # pyright: ignore[reportArgumentType]
        except (TypeInferenceError, TypeError, IndexError):
            return False
        return all(name in free or expected.get(name) == value for name, value in actual.items())


def _has_operands(node: PatternNode, sig: Signature) -> bool:
    """Whether as many operands are there as the node has, and those absent that it wants absent."""
    wanted = [isinstance(operand, Absent) for operand in node.operands]
    absent = [t is None for t in sig.inputs]
    if node.spread is None:
        return absent == wanted
    head, tail = wanted[: node.spread], wanted[node.spread + 1 :]
    end = len(absent) - len(tail)
    if end < len(head):
        return False
    return absent[: len(head)] == head and absent[end:] == tail and not any(absent[len(head) : end])


Conditions = Sequence[tuple[Expr, frozenset[str]]]
"""Conditions with their variables."""


def conditions_on_types(rule: Rule) -> Conditions:
    """Return the conditions of a rule that don't read weights."""
    return [(condition, free_names(condition)) for condition in rule.conditions if not asks_for_values(condition)]


def label_of(pattern: Pattern, number: int, conditions: Conditions) -> Label:
    """Return the label of a pattern node; ``conditions`` are the rule's."""
    node = pattern.nodes[number]
    names: dict[str, str] = {}
    for position, operand in enumerate(node.operands):
        if isinstance(operand, Var | Rest):
            names.setdefault(operand.name, str(position))
    for attr, expr in node.attrs:
        for i, name in enumerate(bound_names(expr)):
            names.setdefault(name, f"{attr}.{i}")
    if node.others:
        names[node.others] = "**"
    attrs = tuple(
        [(name, _own(expr, free_names(expr), names) or Expr("name", f"{name}.free")) for name, expr in node.attrs]
    )
    operands = tuple([_placeholder(operand, i, names) for i, operand in enumerate(node.operands)])
    alone = PatternNode(node.op, operands, attrs, node.others and "**", node.held)
    own = [_own(condition, free, names) for condition, free in conditions]
    root = any(root.node == number for root in pattern.roots)
    return Label(Pattern((alone,), ()), tuple([c for c in own if c is not None]), root)


def _placeholder(operand: Operand, position: int, names: Mapping[str, str]) -> Operand:
    """Return an operand without what other nodes say about it."""
    if isinstance(operand, Absent):
        return operand
    if isinstance(operand, Rest) or is_all(operand):
        return Rest(names[operand.name] if isinstance(operand, Rest) else f"{position}")
    return Var(names[operand.name] if isinstance(operand, Var) else f"{position}")


def _own(expr: Expr, free: frozenset[str], names: Mapping[str, str]) -> Expr | None:
    """Return an expression with its variables renamed; None if it has others than these."""
    return _rename(expr, names) if free.issubset(names) else None


def _rename(expr: Expr, names: Mapping[str, str]) -> Expr:
    if expr.kind == "name":
        return Expr("name", names.get(str(expr.value), expr.value))
    return Expr(expr.kind, expr.value, tuple([_rename(arg, names) for arg in expr.args])) if expr.args else expr


class _Truths(dict[Expr, bool]):
    """Whether conditions hold in one binding."""

    def __init__(self, binding: Binding) -> None:
        super().__init__()
        self._binding = binding

    def __missing__(self, condition: Expr) -> bool:
        self[condition] = holds(condition, self._binding)
        return self[condition]


class Labels(dict[Signature, int]):
    """Signature -> bits of the labels that it has, filled in as signatures turn up."""

    def __init__(self, opset: int) -> None:
        """Begin without labels; ``opset`` is the version of the default domain."""
        super().__init__()
        self._opset = opset
        self._bits: dict[Label, int] = {}
        self._of: dict[Operator, dict[Pattern, list[tuple[Label, int]]]] = {}

    def bit(self, label: Label) -> int:
        """Return the bit of a label; all labels are entered before the first signature is asked for."""
        if label not in self._bits:
            bit = self._bits[label] = 1 << len(self._bits)
            self._of.setdefault(label.pattern.nodes[0].op, {}).setdefault(label.pattern, []).append((label, bit))
        return self._bits[label]

    def __missing__(self, sig: Signature) -> int:
        """Find the bits of a signature; labels that differ in their conditions only share the binding."""
        bits = 0
        for labels in self._of.get(sig.op, {}).values() if isinstance(sig.op, Operator) else ():
            binding = labels[0][0].binding(sig, self._opset)
            if binding is not None:
                known = _Truths(binding)
                fitting = [(label, bit) for label, bit in labels if not (label.root and sig.const)]
                bits += sum([bit for label, bit in fitting if all(map(known.__getitem__, label.conditions))])
        self[sig] = bits
        return bits
