"""What a try at an instance has bound so far, and what the rule's conditions say about the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from taso_gym.graph import Weight
from taso_gym.rules.conditions import Binding, evaluate, holds
from taso_gym.rules.functions import Operand
from taso_gym.rules.lists import Undefined
from taso_gym.rules.rule import Call, Expr, Rule
from taso_gym.signature import Signature
from taso_gym.tensor import TensorType, numpy_dtype
from taso_gym.weights import ArrayWeight
from taso_substitutions.verify.draw import LARGEST, Draw, Unfit
from taso_substitutions.verify.facts import Facts, Key
from taso_substitutions.verify.instance import LITERAL_SHAPES, Instance, Side
from taso_substitutions.verify.operands import Shape

OPSET = 23
"""Of the instances: every operator exists."""
CONSTANT = 0.15
"""Share of constants among tensors of which no condition says whether they are."""


class Bindings:
    """Variables of a rule and what they are bound to in one try at an instance.

    Args:
        rule, facts: the rule and what it says about its variables.
        draw: source of randomness.
        dtype: element type of the rule in this try.
    """

    def __init__(self, rule: Rule, facts: Facts, draw: Draw, dtype: str) -> None:
        self.rule, self.facts, self.draw, self.dtype = rule, facts, draw, dtype
        self.tensors: dict[str, TensorType | tuple[TensorType, ...]] = {}
        self.operands: dict[str, Operand | tuple[Operand, ...]] = {}
        self.attrs: dict[str, Any] = {}
        self.weights: dict[str, Weight] = {}
        self.signatures: dict[Call, Signature] = {}
        self.held: dict[int, None] = {}
        self.literals: str = draw.pick(LITERAL_SHAPES)

    def save(self) -> tuple[dict[Any, Any], ...]:
        """Return what is bound, to be put back by `restore`."""
        kept = (self.tensors, self.operands, self.attrs, self.weights, self.signatures, self.held)
        return tuple(dict(mapping) for mapping in kept)

    def restore(self, saved: tuple[dict[Any, Any], ...]) -> None:
        """Forget what was bound since `save`."""
        self.tensors, self.operands, self.attrs, self.weights, self.signatures, self.held = map(dict, saved)

    def instance(self) -> Instance:
        """Return what is bound so far."""
        return Instance(dict(self.tensors), dict(self.attrs), dict(self.weights), self.literals, OPSET, self.dtype)

    def side(self) -> Side:
        """Return the left side for what is bound so far; it must not be used after the next `restore`."""
        instance = Instance(self.tensors, self.attrs, self.weights, self.literals, OPSET, self.dtype)
        return Side(instance, left=True, signatures=self.signatures)

    def binding(self) -> Binding:
        """Return what is bound so far as expressions read it; it must not be used after the next `restore`."""
        return Binding(self.operands, self.attrs, OPSET)

    def check(self) -> None:
        """Raise `Unfit` if a condition whose variables are all bound doesn't hold."""
        bound, binding = {*self.tensors, *self.attrs}, self.binding()
        for number, (names, condition) in enumerate(self.facts.conditions):
            if number in self.held or not names <= bound:
                continue
            if not holds(condition, binding):
                raise Unfit("a condition that doesn't hold")
            self.held[number] = None

    def defined(self, key: Key) -> Any:
        """Return the value that a condition gives to something, or None where none does yet."""
        values = map(self._value, self.facts.definitions.get(key, ()))
        return next((value for value in values if value is not None), None)

    def widest(self, name: str) -> Shape | None:
        """Return the shape that a condition says a tensor doesn't widen; None where there is none yet."""
        return self._value(self.facts.narrower.get(name))

    def bind_tensor(self, name: str, dtype: str, shape: Shape) -> None:
        """Bind a tensor variable to a shape, changed to what conditions define."""
        shape = self._conform(name, shape)
        if math.prod(shape) > LARGEST:
            raise Unfit(f"{shape} is too large")
        const = name in self.facts.const or (name not in self.facts.variable and self.draw.chance(CONSTANT))
        self.tensors[name] = type_ = TensorType(dtype, shape, const)
        self.draw.shapes.append(shape)
        if name in self.facts.valued:
            self.weights[name] = self._weight(dtype, shape)
        self.operands[name] = Operand(type_, self.weights.get(name))

    def bind_rest(self, name: str, shapes: Iterable[Shape]) -> None:
        """Bind ``*xs`` to tensors of these shapes."""
        self.tensors[name] = types = tuple(TensorType(self.dtype, s) for s in shapes)
        self.operands[name] = tuple(map(Operand, types))

    def _value(self, expr: Expr | None) -> Any:
        """Return what an expression is so far; None where that isn't known yet."""
        try:
            return expr and evaluate(expr, self.binding())
        except (Undefined, KeyError):
            return None

    def _conform(self, name: str, shape: Shape) -> Shape:
        whole, rank, size = (self.defined((kind, name, None)) for kind in ("shape", "rank", "size"))
        if whole is not None:
            return whole
        if (widest := self.widest(name)) is not None:
            shape = widest if self.draw.chance(0.5) else self.draw.narrower(widest)
        if isinstance(rank, int) and rank != len(shape):
            shape = shape[len(shape) - rank :] if rank < len(shape) else self.draw.shape(rank, rank)
        elif (lacking := self.facts.least.get(name, 0) - len(shape)) > 0:
            shape = (*self.draw.shape(lacking, lacking + 2), *shape)
        if size == 1:
            shape = (1,) * self.draw.integer(0, len(shape) + 1)
        dims = list(shape)
        for key in self.facts.dims.get(name, ()):
            self._set_dim(dims, key[2], self.defined(key))
        return tuple(dims)

    def _set_dim(self, dims: list[int], index: Expr, value: Any) -> None:
        try:
            at = evaluate(index, self.binding())
        except (Undefined, KeyError):
            return
        if isinstance(value, int) and isinstance(at, int) and -len(dims) <= at < len(dims):
            dims[at] = value

    def _weight(self, dtype: str, shape: Shape) -> ArrayWeight:
        rng = self.draw.rng
        normal, share, above = rng.normal(size=shape), rng.uniform(0, 1, shape), rng.uniform(1, 3, shape)
        values = self.draw.pick([normal, share, above, np.full(shape, rng.uniform(-1, 2)), np.zeros(shape)])
        return ArrayWeight(np.asarray(values, numpy_dtype(dtype)), dtype)
