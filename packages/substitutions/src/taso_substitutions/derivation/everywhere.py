"""What a rule says of operands of given types, though a fragment's graphs may have none to which it applies so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from taso_gym.rules.conditions import Binding, holds
from taso_gym.rules.functions import Operand
from taso_gym.rules.rule import Constant, Root, Rule, Term
from taso_gym.rules.ruleset import operators_of
from taso_gym.tensor import TensorType
from taso_substitutions.enumeration.fragment import Fragment
from taso_substitutions.equalities.statement import POINTWISE
from taso_substitutions.equalities.terms import Equality, call_of, canonical, literal, subterms, type_of, variables

OPSET = 20


def everywhere(rule: Rule, types: Sequence[TensorType]) -> Iterator[Equality]:
    """Yield what a rule between pointwise operators says for each choice of the types of its variables.

    Args:
        rule: the rule; of others than pointwise operators nothing is said.
        types: what a variable may be.
    """
    if operators_of((*rule.lhs, *rule.rhs)) <= POINTWISE:
        yield from typed(rule, types)


def typed(rule: Rule, types: Sequence[TensorType]) -> Iterator[Equality]:
    """Yield a rule of one result, without constants, as equalities for each choice of the types of its variables."""
    if len(rule.lhs) != 1 or any(map(_has_constant, (*rule.lhs, *rule.rhs))):
        return
    left, right = rule.lhs[0], rule.rhs[0]
    assert isinstance(left, Term) and isinstance(right, Term)
    names = variables(left)
    for chosen in product(types, repeat=len(names)):
        named = dict(zip(names, chosen, strict=True))
        equality = canonical(left, right, named)
        result = type_of(equality.left, equality)
        if result is None or result != type_of(equality.right, equality):
            continue
        binding = Binding({name: Operand(type_) for name, type_ in named.items()}, {}, OPSET)
        if all(holds(condition, binding) for condition in rule.conditions):
            yield equality


def is_of(equality: Equality, fragment: Fragment) -> bool:
    """Whether every operator of an equality is one of a fragment, on operands that it takes there."""
    for call in (*subterms(equality.left), *subterms(equality.right)):
        types = [type_of(arg, equality) for arg in call.args]
        attrs = {name: literal(value) for name, value in call.attrs}
        if not any(
            i.key == call.op
            and dict(i.attrs) == attrs
            and len(types) == i.arity + len(i.extra)
            and i.takes([t for t in i.parted(types)[0] if t])
            for i in fragment.instances
        ):
            return False
    return True


def _has_constant(term: Root) -> bool:
    call = call_of(term)
    return isinstance(term, Constant) or (call is not None and any(map(_has_constant, call.args)))
