"""Labels: what a pattern node asks of a signature alone, one bit each, found once per signature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from taso_gym.errors import TypeInferenceError
from taso_gym.ops import Operator
from taso_gym.rules.conditions import Binding, evaluate
from taso_gym.rules.functions import Undefined
from taso_gym.rules.pattern import Pattern, PatternNode
from taso_gym.rules.rule import Absent, Expr
from taso_gym.signature import Signature


@dataclass(frozen=True)
class Label:
    """A predicate on signatures.

    Attributes:
        op: the operator.
        absent: for each fixed operand whether it must be absent; an operand that isn't absent must be there.
        spread: position of the operand that stands for any number of inputs, or None.
        attrs: attributes with the value that they must have.
        free: names of attributes that may have any value here; those in neither have their ONNX default.
        root: one of its outputs is replaced, so it mustn't be constant (constants are folded and cost nothing).
    """

    op: Operator
    absent: tuple[bool, ...]
    spread: int | None
    attrs: tuple[tuple[str, Any], ...]
    free: frozenset[str]
    root: bool

    def __call__(self, sig: Signature) -> bool:
        """Whether a signature has the label."""
        return sig.op is self.op and not (self.root and sig.const) and self._operands(sig) and self._attributes(sig)

    def _operands(self, sig: Signature) -> bool:
        absent = tuple(t is None for t in sig.inputs)
        if self.spread is None:
            return absent == self.absent
        head, tail = self.absent[: self.spread], self.absent[self.spread + 1 :]
        if len(absent) < len(head) + len(tail):
            return False
        end = len(absent) - len(tail)
        return absent[: len(head)] == head and absent[end:] == tail and not any(absent[len(head) : end])

    def _attributes(self, sig: Signature) -> bool:
        actual = dict(sig.attrs)
        given = {**self.op.defaults, **dict(self.attrs)}
        given |= {name: actual[name] for name in self.free if name in actual}
        try:
            expected = self.op.normalize(given, sig.inputs)  # pyright: ignore[reportArgumentType]
        except (TypeInferenceError, TypeError, IndexError):
            return False
        return all(name in self.free or expected.get(name) == value for name, value in actual.items())


def label_of(pattern: Pattern, number: int) -> Label:
    """Return the label of a pattern node."""
    node = pattern.nodes[number]
    literals, free = _literals(node)
    return Label(
        node.op,
        tuple(isinstance(operand, Absent) for operand in node.operands),
        node.spread,
        literals,
        free | node.held,
        any(root.node == number for root in pattern.roots),
    )


def _literals(node: PatternNode) -> tuple[tuple[tuple[str, Any], ...], frozenset[str]]:
    """Return attributes with a fixed value, and the names of those that depend on variables."""
    fixed: list[tuple[str, Any]] = []
    free: set[str] = set()
    for name, expr in node.attrs:
        if is_closed(expr):
            fixed.append((name, evaluate(expr, Binding({}))))
        else:
            free.add(name)
    return tuple(fixed), frozenset(free)


def is_closed(expr: Expr) -> bool:
    """Whether an expression has a value without any binding."""
    try:
        evaluate(expr, Binding({}))
    except (Undefined, KeyError):
        return False
    return "name" not in kinds(expr)


def kinds(expr: Expr) -> set[str]:
    """Return the kinds of expression that occur in one."""
    return {expr.kind}.union(*map(kinds, expr.args))


class Labels(dict[Signature, int]):
    """Signature -> bits of the labels that it has, filled in as signatures turn up."""

    def __init__(self) -> None:
        super().__init__()
        self._labels: list[Callable[[Signature], bool]] = []
        self._bits: dict[Label, int] = {}

    def bit(self, label: Label) -> int:
        """Return the bit of a label; all labels are known before the first signature is asked for."""
        if label not in self._bits:
            self._bits[label] = 1 << len(self._labels)
            self._labels.append(label)
        return self._bits[label]

    def __missing__(self, sig: Signature) -> int:
        """Find the bits of a signature."""
        bits = sum(1 << i for i, label in enumerate(self._labels) if label(sig))
        self[sig] = bits
        return bits
