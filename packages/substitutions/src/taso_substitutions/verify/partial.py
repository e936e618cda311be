"""Operators that have no value somewhere, which a rule's right side brings in and the normal forms lost.

In a normal form 0 times an element is 0 and an element minus itself, too, whether or not it has a value: 0 * Log(y)
vanishes, while it is NaN for a negative y. Where a function is still in the forms, both sides have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from taso_gym.rules.rule import AllOutputs, Call, Constant, Output, Root, Rule
from taso_substitutions.verify.facts import calls_in

DIVIDE, ROOT, POWER = ("inv", "1/n"), ("sqrt",), ("pow", "sqrt", "inv")
PARTIAL: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "Div": (1, DIVIDE),
    "Log": (0, ("log",)),
    "Pow": (0, POWER),
    "Reciprocal": (0, DIVIDE),
    "Sqrt": (0, ROOT),
}
"""Operator -> its operand that must be positive, or not 0, and what it may be in normal forms."""
INSIDE: Mapping[str, tuple[tuple[str, ...], ...]] = {
    **dict.fromkeys(("Attention", "Softmax", "ms.Attention", "ms.MultiHeadAttention"), (DIVIDE,)),
    **dict.fromkeys(("GroupNormalization", "InstanceNormalization", "LayerNormalization"), (DIVIDE, ROOT)),
    **dict.fromkeys(("LpNormalization", "RMSNormalization", "ms.SkipLayerNormalization"), (DIVIDE, ROOT)),
    "LRN": (DIVIDE, ROOT, POWER),
    "LogSoftmax": (DIVIDE, ("log",)),
}
"""Operators that do so themselves; along axes of size 1 they lose it, too."""


def lost(rule: Rule, forms: str) -> Iterator[str]:
    """Yield what must have a value besides, where the left side hasn't such an operator.

    Args:
        rule: the rule.
        forms: the normal forms that both sides have, as text.
    """
    known = {PARTIAL[call.op][1] for call in calls_in(rule.lhs) if call.op in PARTIAL}
    known.update(*(INSIDE.get(call.op, ()) for call in calls_in(rule.lhs)))
    for op in sorted({call.op for call in calls_in(rule.rhs) if call.op in PARTIAL and not _is_total(call)}):
        functions = PARTIAL[op][1]
        if functions not in known and not any(re.search(rf"(?<!\w){re.escape(name)}\(", forms) for name in functions):
            yield f"a value of {op}"


def _is_total(call: Call) -> bool:
    """Whether an operator has a value for all elements: by a number, or to the power of a whole one."""
    if call.op == "Pow" and isinstance(call.args[1], Constant):
        exponent = call.args[1].value
        if exponent.kind == "number" and isinstance(exponent.value, int | float) and exponent.value % 1 == 0:
            return True
    return _is_number(call.args[PARTIAL[call.op][0]])


def _is_number(term: Root) -> bool:
    """Whether a term is computed from literals only."""
    call = term.call if isinstance(term, Output | AllOutputs) else term
    return isinstance(call, Constant) or (isinstance(call, Call) and all(map(_is_number, call.args)))
