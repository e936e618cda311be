"""Closure: which applications of a fragment a rule turns into which others, all at once by joins over the table.

A rule is applied as a matcher would, with its conditions, but modulo equality of smaller terms: where its left side has
an operator, any application that computes the operand's value and has fewer operators than the whole will do, and so
for its right side. By induction on the number of operators, applications that such steps connect are equal by the
rules alone. The table is finite, so that nothing is cut off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.errors import TypeInferenceError
from taso_gym.rules.conditions import Binding, evaluate, holds
from taso_gym.rules.functions import Operand
from taso_gym.rules.lists import Undefined
from taso_gym.rules.pattern import held_attributes
from taso_gym.rules.rule import Call, Output, Root, Rule, Term, Var
from taso_gym.signature import signature
from taso_substitutions.derivation.applied import RightSide
from taso_substitutions.derivation.joins import Joins, Step
from taso_substitutions.enumeration.fingerprint import Evaluator
from taso_substitutions.equalities.candidates import Classes, expression, size_attributes
from taso_substitutions.equalities.terms import Equality, call_of, canonical

Ints = NDArray[np.int64]
CHUNK = 10_000
"""Applications that a rule is matched at, at a time; bounds the memory."""
OPSET = 20


@dataclass(frozen=True)
class Edges:
    """Pairs of applications that a rule turns into each other.

    Attributes:
        ends: nodes of `Joins`, (M, 2).
        level: one more than the operators of the largest term inside them that stands for an equal one, (M,).
        instances: the rule as an equality of the fragment, for each choice of types and attributes that occurs.
    """

    ends: Ints
    level: Ints
    instances: tuple[Equality, ...]


class Closure:
    """Applies rules to the table of a fragment."""

    def __init__(self, classes: Classes, evaluator: Evaluator) -> None:
        self.joins = Joins(classes, evaluator)
        self.table, self.fragment, self.kinds = classes.table, classes.fragment, evaluator.kinds
        self.kind, self.roots = evaluator.kind, self.joins.roots
        self.written = [tuple((k, expression(v)) for k, v in i.attrs) for i in self.fragment.instances]
        self._sizes = size_attributes(self.fragment)
        self._known: dict[tuple[Any, ...], dict[str, Any]] = {}

    def edges(self, rule: Rule, rows: Ints | None = None) -> Edges:
        """Return what a rule with one result turns into what, or what some applications are turned into."""
        rows = self.roots if rows is None else rows
        ends, levels = [np.zeros((0, 2), np.int64)], [np.zeros(0, np.int64)]
        instances: dict[str, Equality] = {}
        if len(rule.lhs) == 1:
            for begin in range(0, len(rows), CHUNK):
                for step in self.joins.matches(rule.lhs[0], rows[begin : begin + CHUNK]):
                    for roots, found, level, equality in self._results(rule, step):
                        ends.append(np.stack([roots, found], axis=1))
                        levels.append(level)
                        instances[equality.key] = equality
        joined, level = np.concatenate(ends), np.concatenate(levels)
        kept = joined[:, 0] != joined[:, 1]
        return Edges(joined[kept], level[kept], tuple(instances.values()))

    def _results(self, rule: Rule, step: Step) -> Iterator[tuple[Ints, Ints, Ints, Equality]]:
        """Yield (root, result, level, equality) of matches for which the conditions hold, kinds by kinds."""
        names = list(step.values)
        code = np.zeros(len(step.roots), np.int64)
        for name in names:
            code = code * len(self.kinds) + self.kind[step.values[name]]
        order = np.argsort(code, kind="stable")
        begins = np.flatnonzero(np.append(True, code[order][1:] != code[order][:-1]))
        for rows in np.split(order, begins[1:]):
            part = step.taken(rows)
            binding = self._binding(rule, part)
            if binding is None or not all(holds(c, binding) for c in rule.conditions):
                continue
            right = RightSide(self.joins, binding, part.values)
            found = right.root(rule.rhs[0])
            if found is None:
                continue
            rows, result, inner = found
            roots = part.roots[rows]
            level = 1 + np.maximum(inner, part.inner[rows])
            kept = self.joins.value(result) == self.table.value[roots]
            if kept.any():
                numbers = {call: number for call, number, _ in step.calls}
                sides = self.concrete(rule.lhs[0], numbers), self.concrete(rule.rhs[0], right.numbers)
                types = {
                    name: operand.type for name, operand in binding.tensors.items() if isinstance(operand, Operand)
                }
                equality = canonical(*sides, types, self._sizes.items())
                yield roots[kept], result[kept], level[kept], equality

    def _binding(self, rule: Rule, step: Step) -> Binding | None:
        """Return what the variables stand for; None where attributes don't fit together."""
        tensors = {name: Operand(self.kinds.types[self.kind[column[0]]]) for name, column in step.values.items()}
        held, attrs = held_attributes(rule), dict[str, Any]()
        written: list[tuple[Any, Any]] = []
        for call, number, column in step.calls:
            actual = dict(self.attributes(number, int(column[0])))
            for name, expr in call.attrs:
                listed = expr.kind == "list" and isinstance(actual[name], tuple)
                items = actual[name] if listed else (actual[name],)
                for variable, item in zip(expr.args if listed else (expr,), items, strict=False):
                    if variable.kind == "name":
                        attrs.setdefault(str(variable.value), item)
                written.append((expr, actual[name]))
            own = held[call.others] if call.others else frozenset[str]()
            if call.others:
                mapping = {k: v for k, v in actual.items() if k in own}
                if attrs.setdefault(call.others, mapping) != mapping:
                    return None
            default = self._defaults(call, number, int(column[0]))
            rest = set(actual) - own - {name for name, _ in call.attrs}
            if any(actual[name] != default.get(name) for name in rest):
                return None
        binding = Binding(tensors, attrs, OPSET)
        try:
            fits = all(evaluate(expr, binding) == value for expr, value in written)
        except Undefined:
            return None
        return binding if fits else None

    def concrete(self, term: Root, numbers: Mapping[Call, int]) -> Term:
        """Return a side of a rule with the attributes of the operator instances that its calls are."""
        call = call_of(term)
        if call is None:
            assert isinstance(term, Var)
            return term
        number = numbers[call]
        args = tuple(self.concrete(arg, numbers) for arg in call.args)
        found = Call(call.op, args, self.written[number])
        return Output(found, self.fragment.instances[number].output) if isinstance(term, Output) else found

    def attributes(self, number: int, row: int) -> tuple[tuple[str, Any], ...]:
        """Return the normalised attributes of an application."""
        arity = self.fragment.instances[number].arity
        sig = self.kinds.signature(number, tuple(self.kind[self.table.operands[row, :arity]].tolist()))
        assert sig is not None
        return sig.attrs

    def _defaults(self, call: Call, number: int, row: int) -> dict[str, Any]:
        """Return the attributes that an operator would have with only those that a call writes."""
        instance = self.fragment.instances[number]
        kinds = self.kind[self.table.operands[row, : instance.arity]].tolist()
        case = (number, *kinds, *(name for name, _ in call.attrs))
        if case not in self._known:
            actual, inputs = dict(self.attributes(number, row)), self.fragment.types
            types = instance.arranged([self.kinds.types[k] for k in kinds], [inputs[name] for name in instance.extra])
            try:
                found = signature(instance.op, {name: actual[name] for name, _ in call.attrs}, types)
                self._known[case] = dict(found.attrs)
            except TypeInferenceError:
                self._known[case] = {}
        return self._known[case]
