"""What rules say of graphs that a fragment hasn't: with constants, or on operands of other types.

A rule is bound to numeric types and to attributes that occur, and what it computes from sizes to its value; then
equality saturation decides. Like all of derivation this measures what rules cover, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from taso_gym.errors import TypeInferenceError
from taso_gym.ops.floating import FLOAT64
from taso_gym.rules.conditions import holds
from taso_gym.rules.functions import Undefined
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.pattern import calls_of, held_attributes
from taso_gym.rules.rule import AllOutputs, Call, Constant, Expr, Output, Root, Rule, Term, Var
from taso_gym.tensor import TensorType
from taso_substitutions.derivation.derive import Deriver
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

OPSET = 20
CONSTANTS = Path(__file__).with_name("constants.rules")
"""What is known of TASO's constants: rules ``Exp(a) => Exp(b)``, which say that a is b, since Exp is injective."""
Used = frozenset[tuple[str, tuple[tuple[str, Any], ...]]]
"""Operators with all their attributes."""


class Elsewhere:
    """Derives rules at whatever types they are about.

    Args:
        rules: what is known.
        types: numeric types that a variable of a rule that is asked about may have.
    """

    def __init__(self, rules: Iterable[Rule], types: Sequence[TensorType]) -> None:
        self.rules = [rule for rule in rules if len(rule.lhs) == len(rule.rhs) == 1]
        self.facts = parse_rules(CONSTANTS.read_text(encoding="utf-8"), CONSTANTS.name)
        self.types = types
        self._deriver = cache(self._made)

    def derives(self, rule: Rule) -> bool:
        """Whether a rule of one result follows at all of these types to which it applies, if there are any."""
        goals = list(bound(rule, self.types, frozenset()))
        return bool(goals) and all(self._follows(goal) for goal in goals)

    def _follows(self, goal: Equality) -> bool:
        calls = [call for side in (goal.left, goal.right) for call in subterms(side)]
        values = dict(goal.attrs)
        used = frozenset((c.op, tuple((k, values[str(e.value)]) for k, e in c.attrs)) for c in calls)
        found = {t for c in calls for t in (type_of(c, goal), *(type_of(a, goal) for a in c.args)) if t}
        return self._deriver(frozenset(found), used).derives([goal])[0]

    def _made(self, types: frozenset[TensorType], used: Used) -> Deriver:
        ordered = sorted(types, key=str)
        said = [e for rule in self.rules for e in bound(rule, ordered, used)]
        return Deriver([*said, *(_arguments(e) for fact in self.facts for e in bound(fact, ordered, used))])


def _arguments(equality: Equality) -> Equality:
    left, right = call_of(equality.left), call_of(equality.right)
    assert left and right and left.op == right.op == "Exp"
    (a,), (b,) = left.args, right.args
    return replace(equality, left=a, right=b)


def bound(rule: Rule, types: Sequence[TensorType], used: Used) -> Iterator[Equality]:
    """Yield what a rule of one result says for each choice of the types of its variables and of its attributes.

    Args:
        rule: the rule.
        types: numeric types of variables.
        used: attributes that its attribute variables may have.
    """
    (left,) = rule.lhs
    assert not isinstance(left, AllOutputs)
    choices, names = list(_attributes(rule, used)), variables(left)
    for chosen in product(types, repeat=len(names)):
        tensors = dict(zip(names, chosen, strict=True))
        for attrs in choices:
            instance = Instance(tensors, attrs, {}, "scalar", OPSET)
            binding = instance.binding()
            try:
                if all(holds(condition, binding) for condition in rule.conditions):
                    yield _Bound(instance).equality(rule)
            except (TypeInferenceError, Undefined):
                continue


def _attributes(rule: Rule, used: Used) -> Iterator[dict[str, Any]]:
    """Yield what the attribute variables of a rule may be."""
    held = held_attributes(rule)
    choices: dict[str, list[Any]] = {}
    for call in calls_of(rule.lhs):
        own = [dict(attrs) for op, attrs in used if op == call.op]
        if call.others:
            choices.setdefault(call.others, [{k: a[k] for k in held[call.others] if k in a} for a in own])
        for name, expr in call.attrs:
            if expr.kind == "name":
                choices.setdefault(str(expr.value), [a[name] for a in own if name in a])
    yield from (dict(zip(choices, chosen, strict=True)) for chosen in product(*choices.values()))


class _Bound:
    """Writes both sides of a rule for an instance; variables stand for constants and attributes, each for one value."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.types: dict[str, TensorType] = {k: t for k, t in instance.tensors.items() if isinstance(t, TensorType)}
        self.attrs: dict[str, Any] = {}

    def equality(self, rule: Rule) -> Equality:
        """Return a rule as an equality.

        Raises:
            TypeInferenceError: it says nothing of this instance.
        """
        left, right = (self._term(s[0], Side(self.instance, left=s is rule.lhs)) for s in (rule.lhs, rule.rhs))
        found = canonical(left, right, self.types, self.attrs.items())
        if type_of(found.left, found) != type_of(found.right, found):
            raise TypeInferenceError("expected sides of one type")
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
