"""Joins: matching terms against all applications of a fragment at once, modulo equality of operands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.rules.rule import Call, Output, Root, Var
from taso_substitutions.enumeration.enumerate import pack
from taso_substitutions.enumeration.fingerprint import Evaluator
from taso_substitutions.equalities.candidates import Classes
from taso_substitutions.equalities.terms import call_of

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Step:
    """Matches of a part of a left side, row by row.

    Attributes:
        roots: application at which each one begins, (M,).
        values: what each tensor variable stands for, (M,).
        inner: operators of the largest application inside, (M,).
        calls: operator instances of the calls so far, with an application that each is matched at, (M,).
    """

    roots: Ints
    values: dict[str, Ints]
    inner: Ints
    calls: tuple[tuple[Call, int, Ints], ...] = ()

    def taken(self, rows: Any) -> Step:
        """Return some of the rows."""
        values = {name: column[rows] for name, column in self.values.items()}
        calls = tuple((call, number, column[rows]) for call, number, column in self.calls)
        return Step(self.roots[rows], values, self.inner[rows], calls)


class Joins:
    """Looks up applications by what they compute and by their operands.

    Nodes are the applications, numbered as in the table, and after them one for each value: its representative.

    Attributes:
        roots: applications that take part, each of a class that others are renamings of.
    """

    def __init__(self, classes: Classes, evaluator: Evaluator) -> None:
        self.table, self.fragment, self.kinds = classes.table, classes.fragment, evaluator.kinds
        self.kind = evaluator.kind
        self.classes = classes
        table, value = self.table, self.table.value
        self.roots = np.flatnonzero(classes.ordered[value] & ~classes.trivial[value])
        self._by_value: list[Ints] = []
        self._values: list[Ints] = []
        for number in range(len(self.fragment.instances)):
            rows = np.flatnonzero((table.instance == number) & (table.size < table.size.max(initial=0)))
            rows = rows[np.argsort(value[rows], kind="stable")]
            self._by_value.append(rows)
            self._values.append(value[rows])
        keys = np.zeros(len(table), np.int64)
        for number, instance in enumerate(self.fragment.instances):
            rows = table.instance == number
            keys[rows] = pack(number, table.operands[rows][:, : instance.arity])
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        self._names = {name: number for number, name in enumerate(self.fragment.inputs)}

    def matches(self, root: Root, rows: Ints) -> Iterator[Step]:
        """Yield matches of a term whose outermost operator is one of some applications."""
        call = call_of(root)
        assert call is not None
        for number in self._instances(root):
            here = rows[self.table.instance[rows] == number]
            if len(here):
                yield from self._entered(call, number, here, Step(here, {}, np.zeros(len(here), np.int64)), [])

    def _instances(self, term: Root) -> list[int]:
        """Return the operator instances that a term's outermost operator may be."""
        call, output = call_of(term), term.index if isinstance(term, Output) else 0
        assert call is not None
        return [
            n
            for n, i in enumerate(self.fragment.instances)
            if i.key == call.op and i.output == output and len(call.args) == i.arity + len(i.extra)
        ]

    def _entered(
        self, call: Call, number: int, rows: Ints, step: Step, waiting: list[tuple[Root, Ints]]
    ) -> Iterator[Step]:
        """Match the operands of a call at applications, and then what is waiting."""
        instance = self.fragment.instances[number]
        step = replace(step, calls=(*step.calls, (call, number, rows)))
        operands = self.table.operands[rows]
        orders = permutations(range(2)) if instance.swaps else [tuple(range(instance.arity))]
        chosen, extra = instance.parted(call.args)
        for order in orders:
            pairs = [(arg, operands[:, place]) for arg, place in zip(chosen, order, strict=True)]
            fixed = zip(extra, instance.extra, strict=True)
            pairs += [(arg, np.full(len(rows), self._names[name])) for arg, name in fixed]
            # Variables first: they leave fewer rows
            pairs.sort(key=lambda pair: not isinstance(pair[0], Var))
            yield from self._walk(step, [*pairs, *waiting])

    def _walk(self, step: Step, waiting: list[tuple[Root, Ints]]) -> Iterator[Step]:
        """Match terms against values, one by one."""
        if not len(step.roots):
            return
        if not waiting:
            yield step
            return
        (term, column), rest = waiting[0], waiting[1:]
        if isinstance(term, Var):
            known = step.values.get(term.name)
            if known is None:
                yield from self._walk(replace(step, values={**step.values, term.name: column}), rest)
                return
            rows = np.flatnonzero(known == column)
            yield from self._walk(step.taken(rows), [(t, c[rows]) for t, c in rest])
            return
        call = call_of(term)
        if call is None:  # a constant, of which the fragment has none
            return
        for number in self._instances(term):
            rows, found = self._members(number, column)
            if len(rows):
                inner = np.maximum(step.inner[rows], self.table.size[found])
                taken = replace(step.taken(rows), inner=inner)
                yield from self._entered(call, number, found, taken, [(t, c[rows]) for t, c in rest])

    def _members(self, number: int, values: Ints) -> tuple[Ints, Ints]:
        """Return (row, application) for each application of an instance that computes a row's value."""
        begin = np.searchsorted(self._values[number], values, "left")
        count = np.searchsorted(self._values[number], values, "right") - begin
        rows = np.repeat(np.arange(len(values)), count)
        place = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(begin, count)
        return rows, self._by_value[number][place]

    def value(self, nodes: Ints) -> Ints:
        """Return the values of nodes."""
        count = len(self.table)
        return np.where(nodes < count, self.table.value[np.minimum(nodes, count - 1)], nodes - count)

    def size(self, nodes: Ints) -> Ints:
        """Return the operators of nodes; of a value that stands for itself none."""
        count = len(self.table)
        return np.where(nodes < count, self.table.size[np.minimum(nodes, count - 1)], 0)

    def found(self, keys: Ints) -> tuple[Ints, Ints]:
        """Return which applications, packed, are in the table, and their numbers."""
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        rows = np.flatnonzero(self._keys[place] == keys)
        return rows, self._order[place[rows]]
