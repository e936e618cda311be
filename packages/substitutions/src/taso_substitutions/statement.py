"""Stating a proved equality as rules: the weakest conditions under which it holds for every match.

The prover decides an equality at one typing. A matcher also meets other ranks and operands that broadcast, so a rule is
first stated without conditions and tried on sampled instances; conditions are added only where it fails: the ranks,
what the right side needs, and at last the whole typing. Every rule that comes out has passed T1 and T3 on them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from taso_gym.errors import TasoError
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.rule import Call, Rule, Term
from taso_gym.rules.unparse import unparse_term
from taso_gym.tensor import Dim, Poly
from taso_substitutions.candidates import Equality, variables
from taso_substitutions.generalise import General, Generaliser
from taso_substitutions.verify.prover import Proof, prove
from taso_substitutions.verify.sampling import sample_instances
from taso_substitutions.verify.testing import Tested, check_rule

INSTANCES = 6
ATOM = re.compile(r"(x\d+)\.(\d+)$")


def state(general: General, name: str) -> list[Rule]:
    """Return the rules of an equality: one for each direction that holds, or for both."""
    forward = _direction(general.equality, general.forward, name)
    backward = _direction(general.equality.flipped(), general.backward, f"{name}-back")
    return [rule for rule in (forward, backward) if rule]


def _direction(equality: Equality, proof: Proof | None, name: str) -> Rule | None:
    """Return a direction under the first set of conditions that passes; None where none does."""
    if proof is None:
        return None
    body = f"{unparse_term(equality.left)} => {unparse_term(equality.right)}"
    for conditions in _attempts(equality, proof):
        suffix = f" if {' and '.join(conditions)}" if conditions else ""
        for tag in (" [exact]", ""):
            (rule,) = parse_rules(f"{name}{tag}: {body}{suffix}")
            if passes(rule):
                return rule
    return None


def _attempts(equality: Equality, proof: Proof) -> Iterator[list[str]]:
    names = variables(equality.left, equality.right)
    ranks = [f"rank({n}) == {len(t.shape or ())}" for n, t in zip(names, equality.types, strict=True)]
    needs, facts = equalities(proof.lacking), equalities(proof.typing)
    if needs is None:
        return
    if not proof.lacking:
        yield []
    yield ranks
    if needs:
        yield [*ranks, *needs]
    if facts is not None:
        yield [*ranks, *needs, *facts]


def equalities(facts: Sequence[str]) -> list[str] | None:
    """Return what a proof needed, as conditions; None where a size isn't one of an input's."""
    result: list[str] = []
    for fact in facts:
        left, _, right = fact.partition(" = ")
        sides = [left, *re.split(r" [+] |[*]", right)]
        if any(not ATOM.match(s) and not s.isdigit() for s in sides):
            return None
        written = right.replace("*", " * ")
        result.append(" == ".join(re.sub(r"(x\d+)\.(\d+)", r"dim(\1, \2)", s) for s in (left, written)))
    return result


def passes(rule: Rule, instances: int = INSTANCES) -> bool:
    """Whether a rule passes T3, and T1 on the same instances."""
    try:
        if not isinstance(check_rule(rule, instances=instances), Tested):
            return False
        return all(prove(rule, instance.binding()).complete for instance in sample_instances(rule, instances, 0))
    except TasoError:
        return False


def split_rule(general: General, generaliser: Generaliser, name: str) -> Rule | None:
    """Return the rule with several results that follows from a Concat: ``f, g => *Split(F)``; None where there is none.

    The sizes of the parts are those of f and g along the axis, over the inputs' dimensions.
    """
    for equality in (general.equality, general.equality.flipped()):
        concat = equality.left
        if not isinstance(concat, Call) or concat.op != "Concat" or not isinstance(equality.right, Call):
            continue
        axis = dict(concat.attrs)["axis"].value
        parts = [_size(arg, equality, generaliser, axis) for arg in concat.args]  # pyright: ignore[reportArgumentType]
        inner = [unparse_term(a) for a in concat.args]
        if None in parts or not all(isinstance(a, Call) for a in concat.args) or inner[0] == inner[1]:
            continue
        split = f"*Split({unparse_term(equality.right)}, axis={axis}, split=[{', '.join(map(str, parts))}])"
        try:
            (rule,) = parse_rules(f"{name}: {', '.join(inner)} => {split}{_typing(equality, generaliser)}")
        except TasoError:
            continue
        if passes(rule):
            return rule
    return None


def _typing(equality: Equality, generaliser: Generaliser) -> str:
    """Return the conditions that make the parts fit: all ranks, and what the Concat's own typing needs."""
    proof = generaliser.prove(Equality(equality.left, equality.left, equality.types, equality.attrs))
    facts = equalities(proof.typing) if proof else None
    names = variables(equality.left, equality.right)
    ranks = [f"rank({n}) == {len(t.shape or ())}" for n, t in zip(names, equality.types, strict=True)]
    return f" if {' and '.join([*ranks, *(facts or [])])}"


def _size(term: Term, equality: Equality, generaliser: Generaliser, axis: object) -> str | None:
    proof = generaliser.prove(Equality(term, term, equality.types, equality.attrs))
    if proof is None or not isinstance(axis, int):
        return None
    return _expression(proof.results[0][axis])


def _expression(dim: Dim) -> str | None:
    if isinstance(dim, int):
        return str(dim)
    assert isinstance(dim, Poly)
    if not all(ATOM.match(s) for s in dim.symbols):
        return None
    return re.sub(r"(x\d+)\.(\d+)", r"dim(\1, \2)", str(dim))
