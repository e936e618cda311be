"""What a try at an instance has bound so far, and what the rule's conditions say about the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from taso_gym.graph import Weight
from taso_gym.rules.conditions import Binding, evaluate, holds
from taso_gym.rules.functions import Undefined
from taso_gym.rules.rule import Expr, Rule
from taso_gym.tensor import TensorType, numpy_dtype
from taso_gym.weights import ArrayWeight
from taso_substitutions.verify.draw import Draw, Unfit
from taso_substitutions.verify.facts import Facts, Key, names_in
from taso_substitutions.verify.instance import LITERAL_SHAPES, Instance, binding_of
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
        self.attrs: dict[str, Any] = {}
        self.weights: dict[str, Weight] = {}
        self.literals: str = draw.pick(LITERAL_SHAPES)

    def save(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Return what is bound, to be put back by `restore`."""
        return dict(self.tensors), dict(self.attrs), dict(self.weights)

    def restore(self, saved: tuple[dict[str, Any], dict[str, Any], dict[str, Any]]) -> None:
        """Forget what was bound since `save`."""
        self.tensors, self.attrs, self.weights = map(dict, saved)

    def instance(self) -> Instance:
        """Return what is bound so far."""
        return Instance(*self.save(), self.literals, OPSET)

    def binding(self) -> Binding:
        """Return what is bound so far as expressions read it."""
        return binding_of(self.tensors, self.attrs, self.weights, OPSET)

    def check(self) -> None:
        """Raise `Unfit` if a condition whose variables are all bound doesn't hold."""
        bound, binding = {*self.tensors, *self.attrs}, self.binding()
        for condition in self.rule.conditions:
            if names_in(condition) <= bound and not holds(condition, binding):
                raise Unfit("a condition that doesn't hold")

    def defined(self, key: Key) -> Any:
        """Return the value that a condition gives to something, or None where none does yet."""
        for expr in self.facts.definitions.get(key, ()):
            try:
                return evaluate(expr, self.binding())
            except (Undefined, KeyError):
                continue
        return None

    def bind_tensor(self, name: str, dtype: str, shape: Shape) -> None:
        """Bind a tensor variable to a shape, changed to what conditions define."""
        shape = self._conform(name, shape)
        const = name in self.facts.const or (name not in self.facts.variable and self.draw.chance(CONSTANT))
        self.tensors[name] = TensorType(dtype, shape, const)
        self.draw.shapes.append(shape)
        if name in self.facts.valued:
            self.weights[name] = self._weight(dtype, shape)

    def _conform(self, name: str, shape: Shape) -> Shape:
        whole, rank, size = (self.defined((kind, name, None)) for kind in ("shape", "rank", "size"))
        if whole is not None:
            return whole
        if isinstance(rank, int) and rank != len(shape):
            shape = shape[len(shape) - rank :] if rank < len(shape) else self.draw.shape(rank, rank)
        if size == 1:
            shape = (1,) * self.draw.integer(0, len(shape) + 1)
        dims = list(shape)
        for kind, subject, index in self.facts.definitions:
            if kind == "dim" and subject == name:
                self._set_dim(dims, index, self.defined((kind, subject, index)))
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
