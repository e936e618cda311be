"""What a rule's text says about its variables, read once for the sampler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from taso_gym.rules.pattern import held_attributes
from taso_gym.rules.rule import AllOutputs, Call, Constant, Expr, Output, Root, Rule, Var

Key = tuple[str, str, Any]
"""("shape", "a", None), ("rank", "a", None), ("size", "a", None), ("dim", "a", 0), ("field", "k", "group") or
("attr", "p", None)."""
SPATIAL = 3
"""Least rank of what a window slides over."""
SLIDES = frozenset({"Conv", "ms.FusedConv", "AveragePool", "MaxPool"})
"""Operators whose first two operands have spatial axes, as far as they have two."""
BEYOND = (5, 64)
"""Least and largest number for which larger sizes than the usual ones are drawn, too."""
KEEPS_RANK = frozenset({"Concat", "Pad", "Relu", "Sigmoid", "Slice", "Tanh", "Transpose"})
"""Operators whose operands all have the rank of the result."""


@dataclass(frozen=True)
class Facts:
    """Facts about a rule.

    Attributes:
        conditions: each with the variables that it reads.
        definitions: what something equals by a condition, as in ``shape(a) == …`` or ``k.group == …``.
        const, variable: tensors that are, and that aren't, constant.
        valued: tensors whose value is asked for; they are constant.
        dims: tensor -> those of its dimensions that are defined.
        held: ``k`` of ``**k`` -> attributes that it stands for.
        outputs: call -> number of its outputs that the left side mentions; 0 for all of them, however many.
        narrower: tensor -> shape that it doesn't widen, as in ``broadcast(shape(a), shape(b)) == shape(b)``.
        least: tensor -> least rank that it has by a condition or by what reads it.
        divisors: numbers that a condition divides a size by, as in ``dim(a, 0) % 2 == 0``.
        bounds: numbers beyond the usual sizes that positions and sizes are compared with.
    """

    conditions: list[tuple[frozenset[str], Expr]] = field(default_factory=list[tuple[frozenset[str], Expr]])
    definitions: dict[Key, list[Expr]] = field(default_factory=dict[Key, list[Expr]])
    dims: dict[str, list[Key]] = field(default_factory=dict[str, "list[Key]"])
    const: set[str] = field(default_factory=set[str])
    variable: set[str] = field(default_factory=set[str])
    valued: set[str] = field(default_factory=set[str])
    held: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    outputs: dict[Call, int] = field(default_factory=dict[Call, int])
    narrower: dict[str, Expr] = field(default_factory=dict[str, Expr])
    least: dict[str, int] = field(default_factory=dict[str, int])
    divisors: set[int] = field(default_factory=set[int])
    bounds: set[int] = field(default_factory=set[int])


def facts_of(rule: Rule) -> Facts:
    """Read the facts of a rule."""
    facts = Facts(held=held_attributes(rule))
    for condition in rule.conditions:
        facts.conditions.append((frozenset(names_in(condition)), condition))
        _read_condition(condition, facts)
    for expr in (*rule.conditions, *expressions_of(rule)):
        facts.valued.update(_valued(expr))
    facts.const.update(facts.valued)
    for root in rule.lhs:
        _count_outputs(root, facts)
    for call in calls_in(rule.lhs):
        if call.op in SLIDES:
            _read_rank(call.args[:2], SPATIAL, facts)
    for expr in (*rule.conditions, *_positions(rule)):
        facts.bounds.update(n for n in _whole_numbers(expr) if BEYOND[0] <= n <= BEYOND[1])
    return facts


def names_in(expr: Expr) -> set[str]:
    """Return the variables that an expression reads."""
    own = {str(expr.value)} if expr.kind == "name" and expr.value != "opset" else set[str]()
    return own.union(*(names_in(arg) for arg in expr.args))


def calls_in(roots: Iterable[Root]) -> Iterator[Call]:
    """Yield every call of a side, operands before the operators that read them."""
    for root in roots:
        call = root.call if isinstance(root, Output | AllOutputs) else root
        if isinstance(call, Call):
            yield from calls_in(call.args)
            yield call


def expressions_of(rule: Rule) -> Iterator[Expr]:
    """Yield the attributes and the literals of both sides."""
    for call in calls_in((*rule.lhs, *rule.rhs)):
        yield from (expr for _, expr in call.attrs)
        yield from (arg.value for arg in call.args if isinstance(arg, Constant))


def is_call(expr: Expr, *names: str) -> bool:
    """Whether an expression calls one of these functions; a variable may have the same name."""
    return expr.kind == "call" and expr.value in names


def _positions(rule: Rule) -> Iterator[Expr]:
    for call in calls_in((*rule.lhs, *rule.rhs)):
        yield from (expr for name, expr in call.attrs if name in ("starts", "ends", "split"))


def _whole_numbers(expr: Expr) -> Iterator[int]:
    if expr.kind == "number" and type(expr.value) is int:
        yield expr.value
    for arg in expr.args:
        yield from _whole_numbers(arg)


def _read_condition(condition: Expr, facts: Facts) -> None:
    if condition.kind == "==":
        for subject, expr in (condition.args, condition.args[::-1]):
            key = _key(subject)
            if not key:
                continue
            if key[0] == "dim" and key not in facts.definitions:
                facts.dims.setdefault(key[1], []).append(key)
            facts.definitions.setdefault(key, []).append(expr)
        _read_remainder(condition.args[0], facts)
        _read_broadcast(condition.args[0], condition.args[1], facts)
    elif condition.kind == ">=" and is_call(condition.args[0], "rank"):
        least = condition.args[1].value
        if isinstance(least, int):
            _read_rank([Var(str(condition.args[0].args[0].value))], least, facts)
    elif is_call(condition, "const"):
        facts.const.add(str(condition.args[0].value))
    elif condition.kind == "not" and is_call(condition.args[0], "const"):
        facts.variable.add(str(condition.args[0].args[0].value))


def _read_rank(terms: Iterable[Root], least: int, facts: Facts) -> None:
    """Read that tensors have a least rank, and so those that they are made of."""
    for term in terms:
        if isinstance(term, Var):
            facts.least[term.name] = max(least, facts.least.get(term.name, 0))
        elif isinstance(term, Call) and term.op in KEEPS_RANK:
            _read_rank(term.args, least, facts)


def _read_broadcast(expr: Expr, widest: Expr, facts: Facts) -> None:
    if is_call(expr, "broadcast") and len(expr.args) == 2 and expr.args[1] == widest:
        key = _key(expr.args[0])
        if key and key[0] == "shape":
            facts.narrower[key[1]] = widest


def _read_remainder(expr: Expr, facts: Facts) -> None:
    if expr.kind == "%" and is_call(expr.args[0], "dim") and isinstance(expr.args[1].value, int):
        facts.divisors.add(expr.args[1].value)


def _key(expr: Expr) -> Key | None:
    if expr.kind == "name" and expr.value != "opset":
        return "attr", str(expr.value), None
    if expr.kind == "field":
        return "field", str(expr.args[0].value), expr.value
    if is_call(expr, "shape", "rank", "size"):
        return str(expr.value), str(expr.args[0].value), None
    if is_call(expr, "dim"):
        return "dim", str(expr.args[0].value), expr.args[1]
    return None


def _valued(expr: Expr) -> Iterator[str]:
    if is_call(expr, "value"):
        yield str(expr.args[0].value)
    for arg in expr.args:
        yield from _valued(arg)


def _count_outputs(term: Root, facts: Facts) -> None:
    match term:
        case Output(call, index):
            facts.outputs[call] = max(facts.outputs.get(call, 1), index + 1)
        case AllOutputs(call):
            facts.outputs[call] = 0
        case _:
            call = term
    if isinstance(call, Call):
        for arg in call.args:
            _count_outputs(arg, facts)
