"""What rules say of graphs that a fragment hasn't: with constants, or on operands of other types.

A rule is bound to numeric types and to attributes that occur, and what it computes from sizes to its value; then
equality saturation decides. Like all of derivation this measures what rules cover, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from taso_gym.errors import TypeInferenceError
from taso_gym.ops.floating import FLOAT64
from taso_gym.rules.conditions import holds
from taso_gym.rules.lists import Undefined
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.pattern import calls_of, held_attributes
from taso_gym.rules.rule import AllOutputs, Call, Constant, Expr, Output, Root, Rule, Term, Var
from taso_gym.tensor import TensorType
from taso_substitutions.derivation.derive import Deriver
from taso_substitutions.derivation.everywhere import OPSET
from taso_substitutions.equalities.terms import (
    Equality,
    attribute_variables,
    call_of,
    canonical,
    subterms,
    type_of,
    variables,
)
from taso_substitutions.verify.instance import Evaluation, Instance, Side

KNOWN = Path(__file__).with_name("known.rules")
"""What is known besides; of these rules ``Exp(a) => Exp(b)`` says that a is b, since Exp is injective."""
KEPT = 16
"""Derivers of types and attributes that are kept: one takes tens of megabytes."""
Used = frozenset[tuple[str, tuple[tuple[str, Any], ...]]]
"""Operators with all their attributes."""


class Elsewhere:
    """Derives rules at whatever types they are about.

    Args:
        rules: what is known.
        types: numeric types that a variable of a rule that is asked about may have.
    """

    def __init__(self, rules: Iterable[Rule], types: Sequence[TensorType]) -> None:
        self.rules = [*rules, *parse_rules(KNOWN.read_text(encoding="utf-8"), KNOWN.name)]
        self.types = types
        self._deriver = lru_cache(KEPT)(self._made)

    def derives(self, rule: Rule) -> bool:
        """Whether all results of a rule follow at all of these types to which it applies, if there are any."""
        cases = list(bound(rule, self.types, frozenset()))
        return bool(cases) and all(map(self._follow, cases))

    def _follow(self, goals: Sequence[Equality]) -> bool:
        """Whether all results follow at one choice of types."""
        types, used = set[TensorType](), set[tuple[str, Any]]()
        for goal in goals:
            calls, values = [*subterms(goal.left), *subterms(goal.right)], dict(goal.attrs)
            types.update(t for c in calls for t in (type_of(c, goal), *(type_of(a, goal) for a in c.args)) if t)
            used.update((c.op, tuple((k, values[str(e.value)]) for k, e in c.attrs)) for c in calls)
        return all(self._deriver(frozenset(types), frozenset(used)).derives(goals))

    def _made(self, types: frozenset[TensorType], used: Used) -> Deriver:
        ordered = sorted(types, key=str)
        every = (e for rule in self.rules for case in bound(rule, ordered, used) for e in case)
        return Deriver(map(_arguments, every))


def _arguments(equality: Equality) -> Equality:
    left, right = call_of(equality.left), call_of(equality.right)
    if not (left and right and left.op == right.op == "Exp"):
        return equality
    (a,), (b,) = left.args, right.args
    return replace(equality, left=a, right=b)


def bound(rule: Rule, types: Sequence[TensorType], used: Used) -> Iterator[list[Equality]]:
    """Yield what a rule says of its results for each choice of the types of its variables and of its attributes.

    Args:
        rule: the rule.
        types: numeric types of variables.
        used: attributes that its attribute variables may have.
    """
    lefts, rights = (list(_results(side, len(rule.lhs))) for side in (rule.lhs, rule.rhs))
    choices, names = list(_attributes(rule, used)), variables(*lefts)
    for chosen in product(types, repeat=len(names)):
        tensors = dict(zip(names, chosen, strict=True))
        for attrs in choices:
            instance = Instance(tensors, attrs, {}, "scalar", OPSET)
            binding = instance.binding()
            try:
                if all(holds(condition, binding) for condition in rule.conditions):
                    found = _Bound(instance)
                    yield [found.equality(a, b) for a, b in zip(lefts, rights, strict=True)]
            except (TypeInferenceError, Undefined):
                continue


def _results(side: Sequence[Root], count: int) -> Iterator[Term]:
    """Yield the results of a side, of which all outputs of a call are as many as there are."""
    for root in side:
        if isinstance(root, AllOutputs):
            yield from (Output(root.call, i) for i in range(count))
        else:
            yield root


def _attributes(rule: Rule, used: Used) -> Iterator[dict[str, Any]]:
    """Yield what the attribute variables of a rule may be."""
    held = held_attributes(rule)
    choices: dict[str, list[Any]] = {}
    for call in calls_of(rule.lhs):
        if call.others:
            own = [dict(attrs) for op, attrs in used if op == call.op]
            choices.setdefault(call.others, [{k: a[k] for k in held[call.others] if k in a} for a in own])
        for name, expr in call.attrs:
            if expr.kind == "name":  # an axis may be that of another operator
                values = {value: None for _, attrs in used for key, value in attrs if key == name}
                choices.setdefault(str(expr.value), list(values))
    yield from (dict(zip(choices, chosen, strict=True)) for chosen in product(*choices.values()))


class _Bound:
    """Writes both sides of a rule for an instance; variables stand for constants and attributes, each for one value."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.types: dict[str, TensorType] = {k: t for k, t in instance.tensors.items() if isinstance(t, TensorType)}
        self.attrs: dict[str, Any] = {}

    def equality(self, lhs: Term, rhs: Term) -> Equality:
        """Return what two terms say as an equality.

        Raises:
            TypeInferenceError: it says nothing of this instance.
        """
        left, right = (self._term(side, Side(self.instance, left=side is lhs)) for side in (lhs, rhs))
        found = canonical(left, right, self.types, self.attrs.items())
        types = [type_of(side, found) for side in (found.left, found.right)]
        if types[0] != types[1]:
            raise TypeInferenceError(f"expected sides of one type, found {types[0]} and {types[1]}")
        places = [*enumerate(variables(left, right)), *enumerate(attribute_variables(left, right))]
        fixed = {f"x{i}" if n in self.types else f"s{i}": n for i, n in places if n not in self.instance.tensors}
        return replace(found, fixed=tuple(fixed.items()))

    def _term(self, term: Root, side: Side) -> Term:
        if isinstance(term, Var):
            return term
        assert not isinstance(term, AllOutputs)
        call = call_of(term)
        if call is None or not variables(term):
            return self._constant(term, side)
        attrs = tuple((name, Expr("name", self._attribute(name, value))) for name, value in side.sign(call).attrs)
        found = Call(call.op, tuple(self._term(arg, side) for arg in call.args), attrs)
        return Output(found, term.index) if isinstance(term, Output) else found

    def _constant(self, term: Root, side: Side) -> Var:
        call = Call("Identity", (term,)) if isinstance(term, Constant) else term
        (array,) = Evaluation(side, FLOAT64, {}).outputs([call])
        name = f"c{_digest(array.shape, np.round(array, 9).tolist())}"
        self.types[name] = TensorType("float", array.shape)
        return Var(name)

    def _attribute(self, name: str, value: Any) -> str:
        key = f"a{_digest(name, value)}"
        self.attrs[key] = value
        return key


def _digest(*parts: object) -> str:
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()
