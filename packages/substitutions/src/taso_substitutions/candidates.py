"""Candidates: two terms with one fingerprint, each an equality that a proof has still to decide.

A class is all applications that compute one value; its smallest stands for it wherever it is an operand. So an equality
is one application against its class's representative, both over representatives: by congruence every other equality of
the enumerated DAGs follows from these, and common subgraphs never differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from taso_gym.rules.rule import Call, Expr, Rule, Term, Var
from taso_gym.rules.unparse import unparse_term
from taso_gym.tensor import TensorType
from taso_substitutions.enumerate import Table
from taso_substitutions.fingerprint import Evaluator
from taso_substitutions.fragments import Fragment


@dataclass(frozen=True)
class Equality:
    """Two terms that computed the same.

    Attributes:
        left, right: terms over variables ``x0``, ``x1``, … in order of first use.
        types: type of each variable, over the fragment's letters.
        attrs: values of the attribute variables ``s0``, …, which hold sizes.
    """

    left: Term
    right: Term
    types: tuple[TensorType, ...]
    attrs: tuple[tuple[str, Any], ...] = ()

    @property
    def size(self) -> int:
        """Operators on both sides."""
        return count(self.left) + count(self.right)

    @cached_property
    def key(self) -> str:
        """The equality as text; the same modulo renaming of variables."""
        return f"{unparse_term(self.left)} = {unparse_term(self.right)} {self.types}"

    def rule(self, name: str, conditions: tuple[Expr, ...] = ()) -> Rule:
        """Return it as a rule, left to right."""
        return Rule(name, (self.left,), (self.right,), conditions)

    def flipped(self) -> Equality:
        """Return it with its sides exchanged."""
        types = dict(zip(variables(self.left, self.right), self.types, strict=True))
        return canonical(self.right, self.left, types, self.attrs)


def count(term: Term) -> int:
    """Return the number of distinct operators of a term."""
    return len(set(subterms(term)))


def subterms(term: Term) -> Iterator[Call]:
    """Yield every call in a term, outermost first."""
    if isinstance(term, Call):
        yield term
        for arg in term.args:
            yield from subterms(arg)  # pyright: ignore[reportArgumentType]


def variables(*terms: Term) -> list[str]:
    """Return the variables of terms in order of first use."""
    found: dict[str, None] = {}

    def visit(term: Any) -> None:
        if isinstance(term, Var):
            found.setdefault(term.name)
        elif isinstance(term, Call):
            for arg in term.args:
                visit(arg)

    for term in terms:
        visit(term)
    return list(found)


def substitute(term: Term, mapping: dict[Term, Term]) -> Term:
    """Replace subterms, outermost first."""
    if term in mapping:
        return mapping[term]
    if not isinstance(term, Call):
        return term
    args = tuple(substitute(a, mapping) for a in term.args)  # pyright: ignore[reportArgumentType]
    return Call(term.op, args, term.attrs, term.others)


def canonical(left: Term, right: Term, types: dict[str, TensorType], attrs: Any = ()) -> Equality:
    """Name the variables in order of first use."""
    names = variables(left, right)
    renaming: dict[Term, Term] = {Var(old): Var(f"x{i}") for i, old in enumerate(names)}
    chosen = tuple(types[n] for n in names)
    return Equality(substitute(left, renaming), substitute(right, renaming), chosen, tuple(attrs))


class Terms:
    """Writes applications as terms over the representatives of their operands."""

    def __init__(self, fragment: Fragment, table: Table, evaluator: Evaluator) -> None:
        self.fragment, self.table, self.evaluator = fragment, table, evaluator
        self.names = list(fragment.inputs)
        order = np.lexsort((np.arange(len(table)), table.size))
        first = np.unique(table.value[order], return_index=True)
        self.representative = dict(zip(first[0].tolist(), order[first[1]].tolist(), strict=True))
        self._memo: dict[int, Term] = {}

    def of_value(self, value: int) -> Term:
        """Return the representative term of a value."""
        if value not in self._memo:
            is_input = value < len(self.names)
            self._memo[value] = Var(self.names[value]) if is_input else self.of(self.representative[value])
        return self._memo[value]

    def of(self, number: int) -> Term:
        """Return the term of an application."""
        instance = self.fragment.instances[int(self.table.instance[number])]
        operands = [int(self.table.first[number]), int(self.table.second[number])][: instance.arity]
        attrs = tuple((k, expression(v)) for k, v in instance.attrs)
        return Call(instance.key, tuple(self.of_value(v) for v in operands), attrs)


def expression(value: Any) -> Expr:
    """Return an attribute's value as a rule writes it; one that holds letters is a variable named after them."""
    if isinstance(value, tuple) and all(isinstance(v, int) for v in value):
        return Expr("list", None, tuple(expression(v) for v in value))
    if isinstance(value, int | float):
        return Expr("number", value) if value >= 0 else Expr("-", None, (Expr("number", -value),))
    return Expr("name", size_variable(value))


def size_variable(value: Any) -> str:
    """Return the attribute variable that stands for a tuple of sizes."""
    return "s_" + "_".join(str(d).replace("*", "") for d in value)


def candidates(fragment: Fragment, table: Table, evaluator: Evaluator) -> Iterator[Equality]:
    """Yield the equalities of a fragment, each once modulo renaming of inputs."""
    terms = Terms(fragment, table, evaluator)
    types = fragment.types()
    sizes = _size_attributes(fragment)
    seen: set[str] = set()
    inputs = len(fragment.inputs)
    repeated = np.bincount(table.value, minlength=inputs)
    repeated[:inputs] += 1
    for number in np.flatnonzero(repeated[table.value] > 1).tolist():
        value = int(table.value[number])
        if value >= inputs and terms.representative[value] == number:
            continue
        left, right = terms.of(number), terms.of_value(value)
        used = {str(e.value) for t in (left, right) for c in subterms(t) for _, e in c.attrs if e.kind == "name"}
        equality = canonical(left, right, types, ((name, sizes[name]) for name in sorted(used)))
        if equality.key not in seen and not _common_root(equality):
            seen.add(equality.key)
            yield equality


def _size_attributes(fragment: Fragment) -> dict[str, Any]:
    """Return the attribute variables of a fragment, which hold sizes, and what they stand for."""
    values = (v for instance in fragment.instances for _, v in instance.attrs if isinstance(v, tuple))
    return {size_variable(v): v for v in values if not all(isinstance(d, int) for d in v)}


def _common_root(equality: Equality) -> bool:
    """Whether the sides are one operator whose operands differ in at most one place."""
    a, b = equality.left, equality.right
    if not isinstance(a, Call) or not isinstance(b, Call) or (a.op, a.attrs) != (b.op, b.attrs):
        return False
    return sum(x != y for x, y in zip(a.args, b.args, strict=True)) <= 1
