"""The right side of a rule for one match: its nodes, their signatures and wiring, with all types inferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

from taso_gym.errors import ModelError
from taso_gym.graph import OUTPUT_BITS
from taso_gym.ops import MICROSOFT, Operator
from taso_gym.ops.onnx_form import conforms, to_onnx
from taso_gym.rules.conditions import Binding, evaluate
from taso_gym.rules.pattern import operator_named
from taso_gym.rules.rule import Absent, AllOutputs, Call, Constant, Output, Rest, Root, Var
from taso_gym.signature import Signature, signature
from taso_gym.symbolic import Poly
from taso_gym.tensor import TensorType, ValueType, numpy_dtype

Ref = int | None
"""An operand of the right side: slot number, or ~(new node << OUTPUT_BITS | output), or None for an absent one."""


class LiteralValue(NamedTuple):
    """A scalar, or a tensor of one axis, that the right side adds.

    Attributes:
        value: it, or its elements.
        dtype: of the elements.
        text: the elements, which tells 0.0 and -0.0 apart.
    """

    value: float | int | tuple[float | int, ...]
    dtype: str
    text: str


class Refused(Exception):  # noqa: N818 - the answer is "no such rewrite here"
    """The right side doesn't exist for these types."""


class RightSide:
    """Builds the right side; equal subterms are one node."""

    def __init__(
        self,
        binding: Binding,
        opsets: Mapping[str, int],
        spans: Mapping[str, range],
        types: Sequence[ValueType | None],
        same: Sequence[int],
        dtype: str,
    ) -> None:
        """Begin with the bound values only; ``dtype`` is of literals that have no tensor beside them."""
        self.binding, self.opsets, self.spans, self.types, self.same = binding, opsets, spans, list(types), same
        self.dtype = dtype
        self.literals: list[LiteralValue] = []
        self.nodes: dict[tuple[Signature, tuple[Ref, ...]], int] = {}
        self.sigs: list[Signature] = []
        self._made: dict[int, int] = {}

    def type_of(self, ref: Ref) -> ValueType | None:
        """Return the type of an operand."""
        if ref is None:
            return None
        if ref >= 0:
            return self.types[ref]
        node, output = divmod(~ref, 1 << OUTPUT_BITS)
        return self.sigs[node].outputs[output]

    def refs(self, term: Root, beside: str = "") -> list[Ref]:
        """Return the operands that a term stands for; a literal takes the element type ``beside`` it."""
        match term:
            case Var(name) | Rest(name):
                return [self.same[i] for i in self.spans[name]]
            case Absent():
                return [None]
            case Constant(value):
                return [self._literal(evaluate(value, self.binding), beside)]
            case Call():
                return [~(self.call(term) << OUTPUT_BITS)]
            case Output(call, index):
                node = self.call(call)
                if index >= len(self.sigs[node].outputs):
                    raise Refused(f"no output {index}")
                return [~(node << OUTPUT_BITS | index)]
            case AllOutputs(call):
                node = self.call(call)
                return [~(node << OUTPUT_BITS | i) for i in range(len(self.sigs[node].outputs))]

    def call(self, call: Call) -> int:
        """Return the number of the node that a call stands for, which a rule may have in many places."""
        if id(call) not in self._made:
            self._made[id(call)] = self._make(call)
        return self._made[id(call)]

    def _make(self, call: Call) -> int:
        tensors = [None if isinstance(arg, Constant) else self.refs(arg) for arg in call.args]
        dtypes = [self._dtype(refs) for refs in tensors]
        operands: list[Ref] = []
        for i, refs in enumerate(tensors):
            operands += self.refs(call.args[i], _nearest(dtypes, i) or self.dtype) if refs is None else refs
        attrs = dict(self.binding.attrs[call.others]) if call.others else {}
        attrs |= {name: evaluate(expr, self.binding) for name, expr in call.attrs}
        if any(isinstance(value, np.ndarray) for value in attrs.values()):
            raise Refused("an attribute from the value of a tensor whose elements differ")
        op = operator_named(call.op)
        sig = self._signature(op, attrs, operands)
        if not _is_writable(sig, self.opsets.get(op.domain, 1 if op.domain == MICROSOFT else 0)):
            raise Refused(f"{sig} can't be written to a file of these opsets")
        return self._node(sig, tuple(operands[: len(sig.inputs)]))

    def _signature(self, op: Operator, attrs: dict[str, Any], operands: list[Ref]) -> Signature:
        try:
            return signature(op, attrs, [self.type_of(ref) for ref in operands])
        except TypeError as error:
            # Only operators that can write symbolic sizes down expect them in attributes.
            if not any(map(_is_symbolic, attrs.values())):
                raise
            raise Refused(f"{op} with a symbolic attribute") from error

    def _node(self, sig: Signature, operands: tuple[Ref, ...]) -> int:
        number = self.nodes.setdefault((sig, operands), len(self.sigs))
        if number == len(self.sigs):
            self.sigs.append(sig)
        return number

    def _dtype(self, refs: list[Ref] | None) -> str:
        types = [self.type_of(ref) for ref in refs or ()]
        found = [t.dtype for t in types if isinstance(t, TensorType) and t.dtype != "bool"]
        return found[0] if found else ""

    def _literal(self, value: Any, dtype: str) -> int:
        items = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
        if not items or not all(isinstance(item, int | float) for item in items) or not dtype:
            raise Refused(f"a literal {value} of type {dtype or 'unknown'}")
        literal = LiteralValue(value, literal_dtype(value, dtype), repr(tuple(map(float, items))))
        if not _fits(items, literal.dtype):
            raise Refused(f"a literal {value} of type {literal.dtype}, which doesn't hold it")
        begin = len(self.types) - len(self.literals)
        if literal not in self.literals:
            self.literals.append(literal)
            shape = (len(items),) if isinstance(value, tuple) else ()
            self.types.append(TensorType(literal.dtype, shape, const=True))
        return begin + self.literals.index(literal)


def _fits(items: tuple[Any, ...], dtype: str) -> bool:
    """Whether an element type holds numbers to two digits and more: in float16 1e-12 is 0, 1e-6 is off by 1.3 %."""
    try:
        found = np.asarray(items, numpy_dtype(dtype)).astype(np.float64)
    except OverflowError:
        return False
    given = np.asarray(items, np.float64)
    finite = np.isfinite(given)
    close = np.abs(found[finite] - given[finite]) <= np.abs(given[finite]) / 256
    return bool(np.all(np.isfinite(found) == finite) and np.all(close))


def literal_dtype(value: Any, beside: str) -> str:
    """Return the element type of a literal: that of the tensors beside it, int64 for a list of whole numbers."""
    if not isinstance(value, tuple):
        return beside
    return "int64" if all(isinstance(item, int) for item in cast("tuple[Any, ...]", value)) else beside


def _nearest(dtypes: Sequence[str], index: int) -> str:
    """Return the element type of the nearest operand: first those before, then those after."""
    order = [*reversed(range(index)), *range(index + 1, len(dtypes))]
    return next((dtypes[i] for i in order if dtypes[i]), "")


@lru_cache(maxsize=65536)
def _is_writable(sig: Signature, opset: int) -> bool:
    """Whether a file of an opset can hold an operator: its operands, and attributes without symbolic sizes."""
    assert isinstance(sig.op, Operator)
    if not conforms(sig, opset):
        return False
    attrs = sig.op.export(dict(sig.attrs), sig.inputs, sig.outputs, opset)  # pyright: ignore[reportArgumentType]
    if any(map(_is_symbolic, attrs.values())):
        return False
    try:
        to_onnx(sig, opset)
    except (ModelError, ValueError, OverflowError):  # or a number is too large for a file
        return False
    return True


def _is_symbolic(value: object) -> bool:
    return isinstance(value, Poly) or (isinstance(value, tuple) and any(map(_is_symbolic, value)))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
