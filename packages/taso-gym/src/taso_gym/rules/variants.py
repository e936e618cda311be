"""The orders in which a left side is matched: operands of commutative operators swapped, symmetric orders left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from taso_gym.rules.pattern import Pattern, bound_names, operator_named, pattern_of
from taso_gym.rules.rule import AllOutputs, Call, Constant, Expr, Output, Rest, Root, Rule, Var, kept
from taso_gym.rules.unparse import unparse_expr, unparse_term

_SYMMETRIC = frozenset({"==", "!=", "and", "or"})


@kept
def variants_of(rule: Rule) -> tuple[Pattern, ...]:
    """Return the patterns of a rule, one for each order of commutative operands that finds something new.

    Two orders are the same if renaming variables turns one rule into the other; roots that a renaming swaps are
    matched in ascending order of their ids only.
    """
    orders = _orders(rule.lhs)
    ascending = tuple(_interchangeable(rule, orders))
    seen: set[tuple[str, ...]] = set()
    patterns: list[Pattern] = []
    for lhs in orders:
        text = _text(rule, lhs, rule.rhs, loose=False) if len(orders) > 1 else ()
        if text not in seen:
            seen.add(text)
            patterns.append(pattern_of(rule, lhs, ascending))
    return tuple(patterns)


def _orders(lhs: tuple[Root, ...]) -> list[tuple[Root, ...]]:
    """Return the left side with every choice of swapped operands, the one as written first."""
    calls: dict[Call, None] = {}
    for root in lhs:
        _commutative(root, calls)
    orders = [frozenset[Call]()]
    for call in calls:
        orders += [order | {call} for order in orders]
    return [tuple(_swap(root, order) for root in lhs) for order in orders]


def _commutative(term: Root, found: dict[Call, None]) -> None:
    if isinstance(term, Output | AllOutputs):
        term = term.call
    if not isinstance(term, Call):
        return
    pair = term.args[:2]
    if operator_named(term.op).commutative and len(set(pair)) == 2 and not any(isinstance(t, Rest) for t in pair):
        found[term] = None
    for arg in term.args:
        _commutative(arg, found)


def _swap(term: Root, chosen: frozenset[Call]) -> Root:
    if isinstance(term, Output | AllOutputs):
        call = _swap(term.call, chosen)
        assert isinstance(call, Call)
        return replace(term, call=call)
    if not isinstance(term, Call):
        return term
    args = tuple(_swap(arg, chosen) for arg in term.args)
    return replace(term, args=(args[1], args[0], *args[2:]) if term in chosen else args)


def _interchangeable(rule: Rule, orders: Sequence[tuple[Root, ...]]) -> list[tuple[int, int]]:
    """Return the pairs of root nodes that a renaming of variables swaps."""
    if len(rule.lhs) == 1:
        return []
    pattern = pattern_of(rule)
    own = _text(rule, rule.lhs, rule.rhs, loose=True)
    pairs: list[tuple[int, int]] = []
    for a, b in combinations(range(len(rule.lhs)), 2):
        nodes = pattern.roots[a].node, pattern.roots[b].node
        swapped = ([lhs[{a: b, b: a}.get(i, i)] for i in range(len(lhs))] for lhs in orders)
        if nodes[0] != nodes[1] and any(_text(rule, lhs, rule.rhs, loose=True) == own for lhs in swapped):
            pairs.append(nodes)
    return pairs


def _text(rule: Rule, lhs: Sequence[Root], rhs: Sequence[Root], loose: bool) -> tuple[str, ...]:
    """Return a rule's parts with variables named in the order in which the left side mentions them.

    ``loose`` forgets, on the right, the order of outputs, of operands of Concat, and of items of lists.
    """
    names: dict[str, str] = {}
    for root in lhs:
        _number(root, names)
    left = [unparse_term(_rename(root, names, False, False)) for root in lhs]
    right = [unparse_term(_rename(root, names, True, loose)) for root in rhs]
    conditions = _conditions([_rename_expr(c, names, False) for c in rule.conditions])
    return (*left, "=>", *(sorted(right) if loose else right), "if", *conditions)


def _conditions(conditions: Sequence[Expr]) -> list[str]:
    """Return the texts of conditions in an order of their own; what is equal to the same is one class of equals."""
    classes: list[set[str]] = []
    others: list[str] = []
    for condition in conditions:
        if condition.kind != "==":
            others.append(unparse_expr(condition))
            continue
        equal = set(map(unparse_expr, condition.args))
        classes = [c for c in classes if c.isdisjoint(equal)] + [
            equal.union(*(c for c in classes if not c.isdisjoint(equal)))
        ]
    return sorted([*others, *(" == ".join(sorted(c)) for c in classes)])


def _number(term: Root, names: dict[str, str]) -> None:
    match term:
        case Var(name) | Rest(name):
            names.setdefault(name, f"v{len(names)}")
        case Output(call) | AllOutputs(call):
            _number(call, names)
        case Call(_, args, attrs, others):
            for arg in args:
                _number(arg, names)
            for name in [n for _, e in attrs for n in bound_names(e)] + ([others] if others else []):
                names.setdefault(name, f"v{len(names)}")
        case _:
            pass


def _rename(term: Root, names: Mapping[str, str], right: bool, loose: bool) -> Root:
    match term:
        case Var(name):
            return Var(names[name])
        case Rest(name):
            return Rest(names[name])
        case Constant(value):
            return Constant(_rename_expr(value, names, loose))
        case Output(call, index):
            inner = _rename(call, names, right, loose)
            assert isinstance(inner, Call)
            return Output(inner, 0 if loose else index)
        case AllOutputs(call):
            inner = _rename(call, names, right, loose)
            assert isinstance(inner, Call)
            return AllOutputs(inner)
        case Call(op, args, attrs, others):
            operands = [_rename(arg, names, right, loose) for arg in args]
            if right and (operator_named(op).commutative or (loose and op == "Concat")):
                operands.sort(key=unparse_term)
            renamed = tuple((k, _rename_expr(v, names, loose)) for k, v in attrs)
            return Call(op, tuple(operands), renamed, names[others] if others else None)
        case _:
            return term


def _rename_expr(expr: Expr, names: Mapping[str, str], loose: bool) -> Expr:
    if expr.kind == "name":
        return Expr("name", names.get(str(expr.value), expr.value))
    if not expr.args:
        return expr
    args = [_rename_expr(arg, names, loose) for arg in expr.args]
    if expr.kind in _SYMMETRIC or (loose and expr.kind == "list"):
        args.sort(key=unparse_expr)
    return Expr(expr.kind, expr.value, tuple(args))
