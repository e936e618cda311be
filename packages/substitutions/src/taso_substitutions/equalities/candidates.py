"""Candidates: two terms with one fingerprint, each an equality that a proof has still to decide.

A class is all applications that compute one value; its representative, of the smallest one with fewest inputs, stands
for it wherever it is an operand. So an equality is one application against its class's representative, both over
representatives: by congruence every other equality of the enumerated DAGs follows from these, and common subgraphs
never differ.

Modulo renaming of inputs. A term is in order if inputs of one shape occur first in the order of their names. Renaming
is an automorphism of the enumeration: if it takes the representative of a class to a term in order, it takes the class
to one whose representative is in order too, since such terms are preferred. So classes whose representative isn't in
order give nothing new.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.rules.rule import Call, Expr, Output, Term, Var
from taso_substitutions.enumeration.enumerate import Table
from taso_substitutions.enumeration.fragment import Fragment
from taso_substitutions.equalities.terms import Equality, call_of, canonical

Ints = NDArray[np.int64]
SLOT = 5
"""Bits of an input's number in a packed order of first use: up to 12 inputs are followed, later ones are forgotten."""
SLOTS = 12


class Orders:
    """The order in which terms first use the inputs, packed: 5 bits for each, first use lowest."""

    def __init__(self, fragment: Fragment) -> None:
        shapes = list(fragment.inputs.values())
        extra = {name for instance in fragment.instances for name in instance.extra}
        self.before = np.zeros(len(shapes) + 1, np.int64)  # input + 1 -> input + 1 that has to be used first, or 0
        free = [i for i, name in enumerate(fragment.inputs) if name not in extra]
        for i in free:
            earlier = [j for j in free if j < i and shapes[j] == shapes[i]]
            self.before[i + 1] = earlier[-1] + 1 if earlier else 0

    @staticmethod
    def join(first: Ints, second: Ints) -> Ints:
        """Return the order of a term whose operands have these orders."""
        joined, length, seen = first.copy(), np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
        for slot in range(SLOTS):
            item = (first >> (SLOT * slot)) & 31
            length += item > 0
            seen |= np.where(item > 0, np.int64(1) << item, 0)
        for slot in range(SLOTS):
            item = (second >> (SLOT * slot)) & 31
            fresh = (item > 0) & ((seen >> item) & 1 == 0) & (length < SLOTS)
            joined |= np.where(fresh, item << (SLOT * length), 0)
            seen |= np.where(fresh, np.int64(1) << item, 0)
            length += fresh
        return joined

    def in_order(self, orders: Ints) -> NDArray[np.bool_]:
        """Return which orders use inputs of one shape by name."""
        result, seen = np.ones(len(orders), np.bool_), np.ones(len(orders), np.int64)
        for slot in range(SLOTS):
            item = (orders >> (SLOT * slot)) & 31
            result &= (seen >> self.before[item]) & 1 == 1
            seen |= np.int64(1) << item
        return result


class Classes:
    """The classes of equal applications, with a representative each.

    Attributes:
        representative: application that stands for a value; -1 for inputs and for values of other levels, (V,).
        trivial: values of which no equalities are made: those whose elements are all the same, and those in each of
            whose terms an input cancels, as y does in (y - x) - y, so that no rule can be made of two of them, (V,).
    """

    def __init__(self, fragment: Fragment, table: Table, trivial: NDArray[np.bool_]) -> None:
        self.fragment, self.table = fragment, table
        values = len(trivial)
        self.inputs = len(fragment.inputs)
        self.representative = np.full(values, -1, np.int64)
        self.ordered = np.zeros(values, np.bool_)
        """Whether a value's representative is in order, (V,)."""
        self.swapped = np.zeros(len(table), np.bool_)
        """Applications whose operands are in order only when they are swapped, (N,)."""
        orders = Orders(fragment)
        order_of = np.zeros(values + 1, np.int64)  # last: no operand
        order_of[: self.inputs] = np.arange(self.inputs) + 1
        self.ordered[: self.inputs] = orders.in_order(np.arange(self.inputs) + 1)
        held = np.zeros(values + 1, np.int64)  # inputs of the representative, a bit for each
        held[: self.inputs] = 1 << np.arange(self.inputs)
        holds = np.zeros(len(table), np.int64)  # of each application
        swaps = np.array([instance.swaps for instance in fragment.instances])
        for size in range(1, int(table.size.max(initial=0)) + 1):
            rows = np.flatnonzero(table.size == size)
            operands, value = order_of[table.operands[rows]], table.value[rows]
            found = orders.join(orders.join(operands[:, 0], operands[:, 1]), operands[:, 2])
            turned = orders.join(operands[:, 1], operands[:, 0])
            better = swaps[table.instance[rows]] & orders.in_order(turned) & ~orders.in_order(found)
            self.swapped[rows] = better
            found = np.where(better, turned, found)
            fine = orders.in_order(found)
            holds[rows] = np.bitwise_or.reduce(held[table.operands[rows]], axis=1) | self._extra()[table.instance[rows]]
            sort = np.lexsort((rows, ~fine, np.bitwise_count(holds[rows]), value))
            first = sort[np.append(True, value[sort][1:] != value[sort][:-1])]
            new = first[(self.representative[value[first]] < 0) & (value[first] >= self.inputs)]
            self.representative[value[new]] = rows[new]
            order_of[value[new]], self.ordered[value[new]] = found[new], fine[new]
            held[value[new]] = holds[rows[new]]
        self.trivial = trivial | self._cancelling(holds)

    def _extra(self) -> Ints:
        """Return the inputs that are further operands of each operator instance, a bit for each."""
        names = list(self.fragment.inputs)
        return np.array([sum({1 << names.index(name) for name in i.extra}) for i in self.fragment.instances], np.int64)

    def _cancelling(self, holds: Ints) -> NDArray[np.bool_]:
        """Return the values that depend on fewer inputs than each of their terms holds, (V,)."""
        value = self.table.value
        common = np.full(len(self.representative), -1, np.int64)
        np.bitwise_and.at(common, value, holds)
        depends = np.zeros(len(common), np.bool_)
        depends[value[holds == common[value]]] = True
        depends[: self.inputs] = True
        return ~depends

    @cached_property
    def is_pair(self) -> NDArray[np.bool_]:
        """Which applications make an equality with their class's representative, modulo renaming of inputs."""
        value = self.table.value
        return self.ordered[value] & ~self.trivial[value] & (self.representative[value] != np.arange(len(value)))

    def pairs(self) -> Ints:
        """Return the applications that make an equality with the representative and have another root than it."""
        return np.flatnonzero(self.is_pair & ~self._common_root())

    def _common_root(self) -> NDArray[np.bool_]:
        """Return where an application and the representative are one operator and differ in at most one operand."""
        other = self.representative[self.table.value]
        same = (other >= 0) & (self.table.instance == self.table.instance[other])
        a, b = self.table.operands, self.table.operands[other]
        crossed = np.stack([a[:, 1], a[:, 0], a[:, 2]], axis=1)
        arity = np.array([instance.arity for instance in self.fragment.instances])[self.table.instance]
        swaps = np.array([instance.swaps for instance in self.fragment.instances])[self.table.instance]
        differing = np.minimum((a != b).sum(axis=1), np.where(swaps, (crossed != b).sum(axis=1), 3))
        return same & (differing <= 1) & (arity >= differing)


class Terms:
    """Writes applications as terms over the representatives of their operands."""

    def __init__(self, classes: Classes) -> None:
        self.classes, self.table = classes, classes.table
        self.fragment = classes.fragment
        self.names = list(self.fragment.inputs)
        self.attrs = [tuple((k, expression(v)) for k, v in i.attrs) for i in self.fragment.instances]
        self._memo: dict[int, Term] = {}

    def of_value(self, value: int) -> Term:
        """Return the representative term of a value."""
        if value < len(self.names):
            return Var(self.names[value])
        if value not in self._memo:
            self._memo[value] = self.of(int(self.classes.representative[value]))
        return self._memo[value]

    def of(self, number: int) -> Term:
        """Return the term of an application."""
        index = int(self.table.instance[number])
        instance = self.fragment.instances[index]
        operands = [self.of_value(v) for v in self.table.operands[number, : instance.arity].tolist()]
        if self.classes.swapped[number]:
            operands.reverse()
        call = Call(instance.key, tuple(instance.arranged(operands, map(Var, instance.extra))), self.attrs[index])
        return Output(call, instance.output) if instance.output else call  # a bare call is its output 0


def expression(value: Any) -> Expr:
    """Return an attribute's value as a rule writes it; one that holds letters is a variable named after them."""
    if isinstance(value, tuple):
        if all(isinstance(v, int) for v in value):
            return Expr("list", None, tuple(expression(v) for v in value))
        return Expr("name", size_variable(value))
    return Expr("number", value) if value >= 0 else Expr("-", None, (Expr("number", -value),))


def size_variable(value: Any) -> str:
    """Return the attribute variable that stands for a tuple of sizes."""
    return "s_" + "_".join(str(d).replace("*", "") for d in value)


def candidates(classes: Classes, most: int) -> Iterator[tuple[int, Equality]]:
    """Yield the equalities of a fragment, each once modulo renaming of inputs, with the operators of the DAGs.

    Args:
        classes: of the applications of a fragment.
        most: operators of a DAG.
    """
    fragment, table = classes.fragment, classes.table
    terms, types, sizes = Terms(classes), fragment.types, size_attributes(fragment)
    seen: set[str] = set()
    pairs = classes.pairs()
    for number in pairs[table.size[pairs] <= most].tolist():
        left, right = terms.of(number), terms.of_value(int(table.value[number]))
        if call_of(left) is None:
            continue
        equality = canonical(left, right, types, sizes.items())
        if equality.key not in seen:
            seen.add(equality.key)
            yield int(table.size[number]), equality


def size_attributes(fragment: Fragment) -> dict[str, Any]:
    """Return the attribute variables of a fragment, which hold sizes, and what they stand for."""
    values = (v for instance in fragment.instances for _, v in instance.attrs if isinstance(v, tuple))
    return {size_variable(v): v for v in values if not all(isinstance(d, int) for d in v)}
