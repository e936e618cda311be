"""Instances: a rule with a shape for every tensor and a value for every attribute, and what its sides compute then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from taso_gym.errors import TypeInferenceError
from taso_gym.graph import Weight
from taso_gym.ops import OPERATORS, Operator
from taso_gym.ops.evaluate import evaluate as run_operator
from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.rules.conditions import Binding, evaluate
from taso_gym.rules.functions import Operand
from taso_gym.rules.lists import Undefined
from taso_gym.rules.rightside import literal_dtype
from taso_gym.rules.rule import Absent, AllOutputs, Call, Constant, Expr, Output, Rest, Root, Var
from taso_gym.signature import Signature, signature
from taso_gym.symbolic import Shape
from taso_gym.tensor import TensorType, numpy_dtype

KEYS = {op.key: op for op in OPERATORS.values()}
"""Operators by the name that rules write."""

LITERAL_SHAPES = ("scalar", "ones", "full")
"""Shapes that a literal of the left side is tried with: (), 1 on each axis of its neighbours, their broadcast shape."""


@dataclass(frozen=True)
class Instance:
    """Types and attributes for which a rule's left side is well-typed and its conditions hold.

    Attributes:
        tensors: tensor variable -> type; ``*xs`` -> types.
        attrs: attribute variable -> normalised value; ``**k`` -> attributes.
        weights: values of the constants that a condition or an attribute asks for by ``value(...)``.
        literals: one of `LITERAL_SHAPES`.
        opset: of the default domain.
        dtype: element type of the rule.
    """

    tensors: Mapping[str, TensorType | tuple[TensorType, ...]]
    attrs: Mapping[str, Any]
    weights: Mapping[str, Weight]
    literals: str
    opset: int
    dtype: str = "float"

    def binding(self) -> Binding:
        """Return it as conditions read it."""
        return binding_of(self.tensors, self.attrs, self.weights, self.opset)

    def leaves(self) -> Iterator[tuple[str, TensorType]]:
        """Yield the name and type of every tensor; those of ``*xs`` are called ``xs.0``, ``xs.1``, …."""
        for name, found in self.tensors.items():
            if isinstance(found, TensorType):
                yield name, found
            else:
                yield from ((f"{name}.{i}", t) for i, t in enumerate(found))

    def __str__(self) -> str:
        """Write it for people: ``x float[2, 3], k {group: 2}``."""
        tensors = [f"{name} {type_}" for name, type_ in self.leaves()]
        attrs = [f"{name} = {value}" for name, value in self.attrs.items()]
        weights = [f"{name} = {weight.array().tolist()}" for name, weight in self.weights.items()]
        return ", ".join(tensors + attrs + weights)


def binding_of(
    tensors: Mapping[str, TensorType | tuple[TensorType, ...]],
    attrs: Mapping[str, Any],
    weights: Mapping[str, Weight],
    opset: int,
) -> Binding:
    """Return what expressions read, from types, attribute values and constants."""
    operands: dict[str, Operand | tuple[Operand, ...]] = {
        name: Operand(found, weights.get(name)) if isinstance(found, TensorType) else tuple(map(Operand, found))
        for name, found in tensors.items()
    }
    return Binding(operands, attrs, opset)


class Side:
    """One side of a rule for an instance: the signature of each of its calls.

    Args:
        instance: types and attributes.
        left: whether this is the left side, whose literals have the instance's shape; on the right they are scalars.
        dtype: element type of a literal that has no tensor beside it; by default the instance's.
        signatures: of calls whose variables are all bound, where they are known; those of others are added.
    """

    def __init__(
        self,
        instance: Instance,
        *,
        left: bool,
        dtype: str | None = None,
        signatures: dict[Call, Signature] | None = None,
    ) -> None:
        self.instance, self.left, self.dtype = instance, left, dtype or instance.dtype
        self._signatures: dict[Call, Signature] = {} if signatures is None else signatures

    @cached_property
    def _binding(self) -> Binding:
        return self.instance.binding()

    def sign(self, call: Call) -> Signature:
        """Return the signature of a call.

        Raises:
            TypeInferenceError: it isn't well-typed, or an attribute has no value.
        """
        if call not in self._signatures:
            try:
                written = {name: self._value(expr) for name, expr in call.attrs}
            except Undefined as error:
                raise TypeInferenceError(f"expected a value for each attribute of {call.op}, found {error}") from error
            others = self.instance.attrs[call.others] if call.others else {}
            self._signatures[call] = signature(KEYS[call.op], {**others, **written}, self.operands(call.args))
        return self._signatures[call]

    def _value(self, expr: Expr) -> Any:
        value = evaluate(expr, self._binding)
        if isinstance(value, np.ndarray):
            raise Undefined("a tensor of several values")
        return value

    def unrounded(self, call: Call) -> dict[str, Any]:
        """Return the attributes of a call, of which a computed number has all its digits, not float32's only."""
        attrs = dict(self.sign(call).attrs)
        for name, expr in call.attrs:
            value = evaluate(expr, self._binding)
            if isinstance(value, float) and isinstance(attrs.get(name), float):
                attrs[name] = value
        return attrs

    def operands(self, args: Sequence[Root]) -> list[TensorType | None]:
        """Return the types of a call's operands."""
        found = [list(self._types(arg)) for arg in args]
        present = [t for types in found for t in types if t is not None]
        return [t for arg, types in zip(args, found, strict=True) for t in self._or_literal(arg, types, present)]

    def outputs(self, roots: Iterable[Root]) -> list[TensorType]:
        """Return the types of a side's outputs."""
        return [t for root in roots for t in self._types(root) if t is not None]

    def _types(self, term: Root) -> list[TensorType | None]:
        match term:
            case Var(name) | Rest(name):
                found = self.instance.tensors[name]
                return [found] if isinstance(found, TensorType) else list(found)
            case Absent():
                return [None]
            case Constant():
                return []
            case Call():
                return [tensor_type(self.sign(term), 0)]
            case Output(call, index):
                return [tensor_type(self.sign(call), index)]
            case AllOutputs(call):
                return [tensor_type(self.sign(call), i) for i in range(len(self.sign(call).outputs))]

    def _or_literal(
        self, arg: Root, types: list[TensorType | None], present: list[TensorType]
    ) -> list[TensorType | None]:
        if not isinstance(arg, Constant):
            return types
        shape = literal_shape(self.instance.literals if self.left else "scalar", [t.shape or () for t in present])
        beside = next((t.dtype for t in present if t.dtype != "bool"), self.dtype)
        value = None if self.left else evaluate(arg.value, self._binding)
        if isinstance(value, tuple):
            count = len(cast("tuple[Any, ...]", value))
            return [TensorType(literal_dtype(value, beside), (count,), const=True)]
        return [TensorType(beside, shape, const=True)]


def tensor_type(sig: Signature, index: int) -> TensorType:
    """Return the type of an output.

    Raises:
        TypeInferenceError: there is no such output.
    """
    if index >= len(sig.outputs):
        raise TypeInferenceError(f"expected output {index} of {sig.op.key}, found {len(sig.outputs)} outputs")
    found = sig.outputs[index]
    assert isinstance(found, TensorType)
    return found


def literal_shape(how: str, shapes: list[Shape]) -> Shape:
    """Return the shape of a literal among operands of these shapes; see `LITERAL_SHAPES`."""
    widest = max(shapes, key=len, default=())
    return () if how == "scalar" else (1,) * len(widest) if how == "ones" else widest


def operator_of(call: Call) -> Operator:
    """Return the operator that a call applies."""
    return KEYS[call.op]


class Evaluation:
    """Computes the outputs of a side on arrays.

    Args:
        side: types and attributes of its calls.
        xp: array module.
        arrays: leaf name (see `Instance.leaves`) -> NumPy array.
        rounded: literals have the precision of their element type, as in a model; else that of float64.
    """

    def __init__(self, side: Side, xp: ArrayModule, arrays: Mapping[str, Any], *, rounded: bool = False) -> None:
        self.side, self.xp, self.rounded = side, xp, rounded
        self._arrays = {name: xp.asarray(array) for name, array in arrays.items()}
        self._results: dict[Call, tuple[Array, ...]] = {}
        self._binding = side.instance.binding()

    def outputs(self, roots: Iterable[Root]) -> list[Any]:
        """Return the outputs of a side as NumPy arrays."""
        return [self.xp.to_numpy(array) for root in roots for array in self._values(root)]

    def _call(self, call: Call) -> tuple[Array, ...]:
        if call not in self._results:
            sig = self.side.sign(call)
            values: list[Array | None] = []
            for arg in call.args:
                literal = isinstance(arg, Constant)
                values += [self._literal(arg, sig.inputs[len(values)])] if literal else self._values(arg)
            attrs = dict(sig.attrs) if self.rounded else self.side.unrounded(call)
            self._results[call] = run_operator(operator_of(call), attrs, values[: len(sig.inputs)], self.xp)
        return self._results[call]

    def _values(self, term: Root) -> list[Array | None]:
        match term:
            case Var(name):
                return [self._arrays[name]]
            case Rest(name):
                return [self._arrays[f"{name}.{i}"] for i in range(len(self.side.instance.tensors[name]))]
            case Call():
                return [self._call(term)[0]]
            case Output(call, index):
                return [self._call(call)[index]]
            case AllOutputs(call):
                return list(self._call(call))
            case Absent() | Constant():
                return [None]

    def _literal(self, literal: Constant, type_: Any) -> Array:
        value = evaluate(literal.value, self._binding)
        kind = numpy_dtype(type_.dtype)
        exact = np.float64 if kind.kind == "f" and not self.rounded else kind
        return self.xp.asarray(np.full(type_.shape, value, exact))
