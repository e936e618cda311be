"""Right sides of rules, evaluated for many matches at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from taso_gym.errors import TypeInferenceError
from taso_gym.rules.conditions import Binding, evaluate
from taso_gym.rules.lists import Undefined
from taso_gym.rules.rule import Call, Output, Root, Var
from taso_gym.signature import signature
from taso_substitutions.derivation.joins import Joins
from taso_substitutions.enumeration.enumerate import pack
from taso_substitutions.enumeration.fragment import BY_KEY
from taso_substitutions.equalities.terms import call_of

Ints = NDArray[np.int64]


class RightSide:
    """Evaluates a right side for matches whose variables have the same kinds."""

    def __init__(self, joins: Joins, binding: Binding, values: dict[str, Ints]) -> None:
        self.joins, self.binding, self.values = joins, binding, values
        self.rows = np.arange(len(next(iter(values.values()))))
        self.numbers: dict[Call, int] = {}
        self.inner = np.zeros(len(self.rows), np.int64)

    def root(self, term: Root) -> tuple[Ints, Ints, Ints] | None:
        """Return (row, node, operators of the largest inner term) where the right side is in the table."""
        found = self._node(term)
        return None if found is None else (self.rows, found, self.inner)

    def _node(self, term: Root) -> Ints | None:
        joins = self.joins
        if isinstance(term, Var):
            return self.values[term.name][self.rows] + len(joins.table)
        call, output = call_of(term), term.index if isinstance(term, Output) else 0
        if call is None:  # a constant, of which the fragment has none
            return None
        operands: list[Ints] = []
        for arg in call.args:
            before = self.rows
            node = self._node(arg)
            if node is None:
                return None
            kept = np.searchsorted(before, self.rows)  # rows that are left, among those before
            operands = [column[kept] for column in operands]
            self.inner = np.maximum(self.inner, joins.size(node))
            operands.append(joins.value(node))
        number = self._instance(call, output, operands)
        if number is None:
            return None
        self.numbers[call] = number
        instance = joins.fragment.instances[number]
        chosen, extra = instance.parted(operands)
        own = np.stack(chosen, axis=1)
        fitting = np.ones(len(own), np.bool_)
        for column, name in zip(extra, instance.extra, strict=True):
            fitting &= column == list(joins.fragment.inputs).index(name)
        keys = pack(number, np.sort(own, axis=1) if instance.swaps else own)
        rows, applications = joins.found(np.where(fitting, keys, -1))
        self.rows, self.inner = self.rows[rows], self.inner[rows]
        return applications if len(rows) else None

    def _instance(self, call: Call, output: int, operands: Sequence[Ints]) -> int | None:
        """Return the operator instance of the fragment that a call is."""
        joins = self.joins
        if not len(operands[0]):
            return None
        kinds = [int(joins.kind[column[0]]) for column in operands]
        try:
            attrs = dict(self.binding.attrs[call.others]) if call.others else {}
            attrs |= {name: evaluate(expr, self.binding) for name, expr in call.attrs}
            wanted = signature(BY_KEY[call.op], attrs, [joins.kinds.types[k] for k in kinds])
        except (TypeInferenceError, Undefined, KeyError):
            return None
        for number, instance in enumerate(joins.fragment.instances):
            same = instance.key == call.op and instance.output == output
            fits = same and len(kinds) == instance.arity + len(instance.extra)
            if fits and joins.kinds.signature(number, tuple(instance.parted(kinds)[0])) is wanted:
                return number
        return None
