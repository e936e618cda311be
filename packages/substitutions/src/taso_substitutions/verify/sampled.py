"""What a rule computes with that proofs take from samples: lengths of lists, the opset, element types.

A proof is for the number of tensors that ``*xs`` stands for in its example, and so on. That is no loss where a rule
passes these on; where it computes with them, a larger number may make it false, as ``max(1, count(xs) - 2)`` does.
"""

from __future__ import annotations

from collections.abc import Iterator

from taso_gym.rules.pattern import bound_names
from taso_gym.rules.rule import Constant, Expr, Rule
from taso_gym.rules.unparse import unparse_expr
from taso_substitutions.verify.facts import calls_in, is_call, names_in

PER_AXIS = frozenset({"dilations", "kernel_shape", "pads", "perm", "strides"})
"""Attributes whose length follows from a rank, and all ranks are proved."""


def sampled(rule: Rule) -> tuple[str, ...]:
    """Return what a rule computes with on its right side, or where a condition weakens another, of these."""
    listed = _listed(rule)
    pinned = {c.args[0] for c in rule.conditions if c.kind == "==" and c.args[1].kind in ("number", "string")}
    found = [
        *(e for expr in _computed(rule) for e in _readings(expr, listed)),
        *(e for c in rule.conditions for e in _weakening(c, listed)),
    ]
    return tuple(sorted({unparse_expr(e) for e in found if e not in pinned}))


def _listed(rule: Rule) -> frozenset[str]:
    """Return the attribute variables that are lists of a length which no rank decides, as far as is known."""
    found: set[str] = set()
    for call in calls_in(rule.lhs):
        found.update(v for name, expr in call.attrs if name not in PER_AXIS for v in bound_names(expr))
    return frozenset(found)


def _computed(rule: Rule) -> Iterator[Expr]:
    """Yield the right side's attributes and literals; an element type may be an attribute as it is."""
    for call in calls_in(rule.rhs):
        yield from (expr for _, expr in call.attrs if not is_call(expr, "dtype"))
        yield from (arg.value for arg in call.args if isinstance(arg, Constant))


def _readings(expr: Expr, listed: frozenset[str]) -> Iterator[Expr]:
    opset = expr.kind == "name" and expr.value == "opset"
    if opset or is_call(expr, "count", "dtype") or (is_call(expr, "len") and _has_any_length(expr.args[0], listed)):
        yield expr
    for arg in expr.args:
        yield from _readings(arg, listed)


def _has_any_length(expr: Expr, listed: frozenset[str]) -> bool:
    if expr.kind == "field":
        return expr.value not in PER_AXIS
    return is_call(expr, "dims") or bool(names_in(expr) & listed) or any(_has_any_length(a, listed) for a in expr.args)


def _weakening(condition: Expr, listed: frozenset[str]) -> Iterator[Expr]:
    """Yield what is read in alternatives: for other numbers another one may hold. Alone, a condition only restricts."""
    if condition.kind == "and":
        for arg in condition.args:
            yield from _weakening(arg, listed)
    elif condition.kind == "not" and condition.args[0].kind in ("and", "or", "not"):
        yield from _readings(condition.args[0], listed)
    elif condition.kind == "or" and not all(is_call(e, "dtype") for arg in condition.args for e in arg.args[:1]):
        yield from _readings(condition, listed)
