"""Rules of which larger ranks follow from small ones: they treat each further leading axis as they do the first.

Take an index along all leading axes but some: what is left of the tensors has a small rank, and the rule holds for it.
That takes operators that map over leading axes, and expressions that are the same for what is left.
"""

from __future__ import annotations

from collections.abc import Iterable

from taso_gym.rules.rule import Expr, Rule
from taso_substitutions.verify.facts import calls_in, expressions_of, is_call

MAPPED_RANK = 3
"""Rank up to which such a rule is proved."""
MAPPING = frozenset(
    {
        *("Abs", "Add", "Ceil", "Clip", "Cos", "Div", "Elu", "Equal", "Erf", "Exp", "Floor"),
        *("Gelu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Less", "Log", "MatMul", "Max", "Min", "Mish"),
        *("Mul", "Neg", "Not", "PRelu", "Pow", "Reciprocal", "Relu", "Selu", "Sigmoid", "Sign", "Sin"),
        *("Softplus", "Sqrt", "Sub", "Sum", "Tanh", "Where"),
    }
)
"""Operators without attributes that name axes: leading axes broadcast, and are mapped over."""
READING = ("shape", "rank", "dim", "dims", "size")
"""Functions that tell the leading axes of a tensor apart, or count them."""
COMPARISONS = ("==", "<=", "<", ">=", ">")


def maps(rule: Rule) -> bool:
    """Whether what is proved of a rule up to `MAPPED_RANK` holds for all larger ranks."""
    if not all(call.op in MAPPING for call in calls_in((*rule.lhs, *rule.rhs))):
        return False
    low = frozenset(name for c in rule.conditions if (name := _lowered(c)) is not None)
    return not any(_reads(e, low) for e in expressions_of(rule)) and all(_stays(c, low) for c in rule.conditions)


def _lowered(condition: Expr) -> str | None:
    """Return the tensor whose rank a condition limits to `MAPPED_RANK`: no axis of it is left out."""
    if condition.kind == "==" and is_call(condition.args[0], "shape") and condition.args[1].kind == "list":
        return str(condition.args[0].args[0].value) if len(condition.args[1].args) <= MAPPED_RANK else None
    bound = _rank_bound(condition)
    if bound is None or condition.kind in (">=", ">"):
        return None
    limit = bound - (condition.kind == "<")
    return str(condition.args[0].args[0].value) if limit <= MAPPED_RANK else None


def _rank_bound(condition: Expr) -> int | None:
    """Return ``n`` of ``rank(x) == n``, or of another comparison of these."""
    if condition.kind not in COMPARISONS or not is_call(condition.args[0], "rank"):
        return None
    bound = condition.args[1].value
    return bound if isinstance(bound, int) and condition.args[1].kind == "number" else None


def _reads(expr: Expr, low: frozenset[str]) -> bool:
    """Whether an expression may have another value for what is left of tensors."""
    if is_call(expr, "dim") and _trailing(expr.args[1]):
        return False
    if is_call(expr, *READING) and expr.args[0].value not in low:
        return True
    return any(_reads(arg, low) for arg in expr.args)


def _trailing(index: Expr) -> int:
    """Return from which axis, counted from the end, an index is: 1, 2 or 3, which are never left out; 0 for others."""
    number = index.args[0].value if index.kind == "-" and len(index.args) == 1 else None
    return number if isinstance(number, int) and 1 <= number <= MAPPED_RANK else 0


def _stays(condition: Expr, low: frozenset[str]) -> bool:
    """Whether a condition, where it holds, holds for what is left of tensors, too."""
    if not _reads(condition, low):
        return True
    if condition.kind in ("and", "or"):
        return all(_stays(arg, low) for arg in condition.args)
    if condition.kind == "==" and (all(map(_is_shape, condition.args)) or _is_one(condition.args)):
        return True
    if condition.kind in ("==", "<=", ">=") and all(is_call(arg, "rank") for arg in condition.args):
        return True
    bound = _rank_bound(condition)
    if bound is None:
        return False
    return condition.kind in ("<=", "<") or bound + (condition.kind == ">") <= MAPPED_RANK


def _is_shape(expr: Expr) -> bool:
    """Whether an expression is a shape that loses its leading axes with the tensors: last sizes may be ones instead."""
    if expr.kind == "+" and expr.args[0].kind == "[:]":
        shape, begin, end = expr.args[0].args
        trailing = [arg.value for arg in expr.args[1].args]
        cut = _trailing(end)
        return is_call(shape, "shape") and begin.kind == "none" and cut > 0 and trailing == [1] * cut
    return is_call(expr, "shape") or (is_call(expr, "broadcast") and all(map(_is_shape, expr.args)))


def _is_one(args: Iterable[Expr]) -> bool:
    size, one = args
    return is_call(size, "size") and one.kind == "number" and one.value == 1
