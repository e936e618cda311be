"""Terms and equalities: what two sides of a rule compute, over variables that are named in order of first use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from taso_gym.errors import TypeInferenceError
from taso_gym.rules.rule import Call, Expr, Output, Root, Rule, Term, Var
from taso_gym.rules.unparse import unparse_term
from taso_gym.signature import signature
from taso_gym.tensor import TensorType
from taso_substitutions.enumeration.fragment import BY_KEY


@dataclass(frozen=True)
class Equality:
    """Two terms that computed the same.

    Attributes:
        left, right: terms over variables ``x0``, ``x1``, … in order of first use.
        types: type of each variable, over the fragment's letters.
        attrs: values of the attribute variables ``s0``, …, which hold sizes.
        fixed: variables of either kind that stand for one value, as constants do, and a name of that value.
    """

    left: Term
    right: Term
    types: tuple[TensorType, ...]
    attrs: tuple[tuple[str, Any], ...] = ()
    fixed: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        """Operators on both sides."""
        return count(self.left) + count(self.right)

    @cached_property
    def key(self) -> str:
        """The equality as text; the same modulo renaming of variables."""
        return f"{unparse_term(self.left)} = {unparse_term(self.right)} {[str(t) for t in self.types]}"

    @cached_property
    def body(self) -> str:
        """The equality as a rule writes it."""
        return f"{unparse_term(self.left)} => {unparse_term(self.right)}"

    @property
    def reorders(self) -> bool:
        """Whether both sides have the same operators with the same attributes."""
        sides = [sorted(repr((c.op, c.attrs)) for c in set(subterms(side))) for side in (self.left, self.right)]
        return sides[0] == sides[1]

    def rule(self, name: str) -> Rule:
        """Return it as a rule without conditions, left to right."""
        return Rule(name, (self.left,), (self.right,), ())

    def named(self) -> dict[str, TensorType]:
        """Return the variables with their types."""
        return {f"x{i}": t for i, t in enumerate(self.types)}

    def flipped(self) -> Equality:
        """Return it with its sides exchanged."""
        return canonical(self.right, self.left, self.named(), self.attrs)


def call_of(term: Root) -> Call | None:
    """Return the call that a term is or takes an output of."""
    return term.call if isinstance(term, Output) else term if isinstance(term, Call) else None


def count(term: Term) -> int:
    """Return the number of distinct operators of a term."""
    return len(set(subterms(term)))


def subterms(term: Root) -> Iterator[Call]:
    """Yield every call in a term, outermost first."""
    call = call_of(term)
    if call is not None:
        yield call
        for arg in call.args:
            yield from subterms(arg)


def names_of(expr: Expr) -> Iterator[str]:
    """Yield the attribute variables in an expression."""
    if expr.kind == "name":
        yield str(expr.value)
    for arg in expr.args:
        yield from names_of(arg)


def attribute_variables(*terms: Term) -> list[str]:
    """Return the attribute variables of terms in order of first use."""
    found = (name for t in terms for call in subterms(t) for _, e in call.attrs for name in names_of(e))
    return list(dict.fromkeys(found))


def variables(*terms: Term) -> list[str]:
    """Return the tensor variables of terms in order of first use."""
    found: dict[str, None] = {}

    def visit(term: Root) -> None:
        call = call_of(term)
        if isinstance(term, Var):
            found.setdefault(term.name)
        for arg in call.args if call else ():
            visit(arg)

    for term in terms:
        visit(term)
    return list(found)


def substitute(term: Root, mapping: Mapping[Root, Root], attrs: Mapping[str, str] | None = None) -> Any:
    """Replace subterms, outermost first, and rename attribute variables."""
    if term in mapping:
        return mapping[term]
    if isinstance(term, Output):
        return Output(substitute(term.call, mapping, attrs), term.index)
    if not isinstance(term, Call):
        return term
    args = tuple(substitute(a, mapping, attrs) for a in term.args)
    renamed = tuple((k, _renamed(e, attrs)) for k, e in term.attrs) if attrs else term.attrs
    return Call(term.op, args, renamed, term.others)


def _renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    if expr.kind == "name":
        return Expr("name", names[str(expr.value)])
    return Expr(expr.kind, expr.value, tuple(_renamed(a, names) for a in expr.args)) if expr.args else expr


def canonical(
    left: Term, right: Term, types: Mapping[str, TensorType], attrs: Iterable[tuple[str, Any]] = ()
) -> Equality:
    """Name tensor variables ``x0``, … and attribute variables ``s0``, … in order of first use."""
    names, values = variables(left, right), dict(attrs)
    sizes = attribute_variables(left, right) if values else []
    renaming: dict[Root, Root] = {Var(old): Var(f"x{i}") for i, old in enumerate(names)}
    renamed = {old: f"s{i}" for i, old in enumerate(sizes)}
    sides = [substitute(side, renaming, renamed) for side in (left, right)]
    chosen = tuple((renamed[name], values[name]) for name in sizes)
    return Equality(sides[0], sides[1], tuple(types[n] for n in names), chosen)


def type_of(term: Root, equality: Equality) -> TensorType | None:
    """Return the type of a term over the fragment's letters; None where it has none."""
    if isinstance(term, Var):
        return equality.named()[term.name]
    call, index = call_of(term), term.index if isinstance(term, Output) else 0
    assert call is not None
    types = [type_of(a, equality) for a in call.args]
    named = dict(equality.attrs)
    try:
        attrs = {k: named[str(e.value)] if e.kind == "name" else literal(e) for k, e in call.attrs}
        found = signature(BY_KEY[call.op], attrs, types).outputs[index]
    except TypeInferenceError:
        return None
    return found if isinstance(found, TensorType) else None


def literal(expr: Expr) -> Any:
    """Return the value of a literal attribute."""
    if expr.kind == "list":
        return tuple(literal(e) for e in expr.args)
    return -literal(expr.args[0]) if expr.kind == "-" else expr.value
