"""Rules with several results: what equals a Concat is divided into what was joined."""

from __future__ import annotations

from taso_gym.rules.rule import Rule, Term
from taso_gym.rules.unparse import unparse_term
from taso_gym.symbolic import Dim, Poly
from taso_substitutions.equalities.generalise import General, Generaliser
from taso_substitutions.equalities.sizes import ATOM, dimensions, equalities, ranks_of
from taso_substitutions.equalities.statement import first_that_passes
from taso_substitutions.equalities.terms import Equality, call_of, literal, variables


def split_rule(general: General, generaliser: Generaliser, name: str) -> Rule | None:
    """Return the rule with several results that follows from a Concat: ``f, g => *Split(F)``; None where there is none.

    The sizes of the parts are those of f and g along the axis, over the inputs' dimensions.
    """
    for equality in (general.equality, general.equality.flipped()):
        concat = call_of(equality.left)
        if concat is None or concat.op != "Concat" or call_of(equality.right) is None:
            continue
        axis = int(literal(dict(concat.attrs)["axis"]))
        inner = [unparse_term(a) for a in concat.args]
        calls = [a for a in concat.args if call_of(a)]
        if len(calls) < len(inner) or len(set(inner)) < len(inner):
            continue
        parts = [_size(arg, equality, generaliser, axis) for arg in calls]  # pyright: ignore[reportArgumentType]
        if None in parts:
            continue
        split = f"*Split({unparse_term(equality.right)}, axis={axis}, split=[{', '.join(map(str, parts))}])"
        body = f"{', '.join(inner)} => {split}"
        rule = first_that_passes(name, body, iter([_typing(equality, generaliser)]))
        if rule:
            return rule
    return None


def _typing(equality: Equality, generaliser: Generaliser) -> list[str]:
    """Return the conditions that make the parts fit: all ranks, and what the Concat's own typing needs."""
    proof = generaliser.prove(Equality(equality.left, equality.left, equality.types, equality.attrs))
    facts = equalities(proof.typing) if proof else None
    names = set(variables(equality.left))
    return [r for r in ranks_of(equality) if r[5:].partition(")")[0] in names] + (facts or [])


def _size(term: Term, equality: Equality, generaliser: Generaliser, axis: int) -> str | None:
    proof = generaliser.prove(Equality(term, term, equality.types, equality.attrs))
    return None if proof is None else _expression(proof.results[0][axis])


def _expression(dim: Dim) -> str | None:
    if isinstance(dim, int):
        return str(dim)
    assert isinstance(dim, Poly)
    return dimensions(str(dim)) if all(ATOM.match(s) for s in dim.symbols) else None
