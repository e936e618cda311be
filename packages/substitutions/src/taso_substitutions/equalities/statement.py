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
from taso_gym.rules.pattern import calls_of
from taso_gym.rules.rule import Root, Rule
from taso_gym.rules.ruleset import operators_of
from taso_substitutions.equalities.generalise import General, shown
from taso_substitutions.equalities.terms import Equality, type_of, variables
from taso_substitutions.verify.coverage import variants
from taso_substitutions.verify.prover import Proof
from taso_substitutions.verify.sampling import sample_instances
from taso_substitutions.verify.testing import Counterexample, check_rule, type_fault

INSTANCES = 6
"""Instances that T1 proves a rule on."""
FEW = 2
"""Instances that are sampled first."""
TRIES = 50
"""How often each of these is drawn on average: conditions that allow so few instances are no use."""
CERTIFIED = 24
"""Instances of a certificate's tests."""
ROUNDS_ONCE = frozenset(
    {"Concat", "Split", "Transpose", "Reshape", "Slice", "Pad", "Relu", "MaxPool", "Sigmoid", "Exp"}
    | {"Add", "Sub", "Mul", "Div"}
)
"""Operators without sums, whose order an implementation may choose: only rules among them may keep every bit."""
BROADCASTING = frozenset({"Add", "Sub", "Mul", "Div", "Gemm"})
CONTRACTING = frozenset({"MatMul", "Gemm"})
"""Operators that mean something else for vectors."""
POINTWISE = frozenset({"Add", "Sub", "Mul", "Div", "Relu", "Sigmoid", "Exp"})
ELEMENTWISE = POINTWISE | {"Transpose"}
ATOM = re.compile(r"([a-z]\w*)\.(\d+)$")
NAMED = re.compile(r"\b([a-z]\w*)\.(\d+)\b")


def state(general: General, name: str) -> list[Rule]:
    """Return the rules of an equality: one for each direction that holds."""
    found = (statement_of(equality, proof, f"{name}{end}") for equality, proof, end in general.directions())
    return [rule for rule in found if rule]


def statement_of(equality: Equality, proof: Proof, name: str) -> Rule | None:
    """Return an equality as a rule from left to right; None where it can't be stated."""
    return first_that_passes(name, equality.body, attempts(equality, proof))


def first_that_passes(name: str, body: str, conditions: Iterator[list[str]], instances: int = INSTANCES) -> Rule | None:
    """Return a rule under the first set of conditions with which it passes; None where none does."""
    for wanted in map(dict.fromkeys, conditions):
        suffix = f" if {' and '.join(wanted)}" if wanted else ""
        rule = parsed(f"{name}: {body}{suffix}")
        if rule is None or not is_sampled(rule):
            continue
        exact = parsed(f"{name} [exact]: {body}{suffix}")
        keeps = exact and operators_of((*rule.lhs, *rule.rhs)) <= ROUNDS_ONCE
        found = exact if exact and keeps and survives(exact) else rule if survives(rule) else None
        if found and is_proved(found, instances):
            return found
    return None


def attempts(equality: Equality, proof: Proof) -> Iterator[list[str]]:
    """Yield sets of conditions, weaker ones first; sizes that are numbers come last."""
    ranks, needs, facts = ranks_of(equality), equalities(proof.lacking), equalities(proof.typing)
    if needs is None:
        return
    shapes = equal_shapes(equality, proof)
    scalars = scalars_of(equality)
    ranked = [(n, len(t.shape or ())) for n, t in equality.named().items()]
    least = [*scalars, *(f"rank({n}) >= {rank}" for n, rank in ranked if rank > 1)]
    matrices = [*scalars, *(f"rank({n}) >= 2" for n, rank in ranked if rank > 1)]
    weak = [matrices] if operators_of((equality.left, equality.right)) & CONTRACTING else [scalars]  # no vectors
    weak += [least] if least not in weak else []
    free, wide = shapes_are_free(equality), _no_wider(equality)
    open_shapes = weak if free and not proof.lacking else []
    open_shapes = [wide, *open_shapes] if pointwise(equality) and not proof.lacking else open_shapes
    for sizes in _needed_sizes(equality):
        yield from ([*wanted, *sizes] for wanted in open_shapes)
        if shapes:
            yield from ([*wanted, *shapes, *sizes] for wanted in weak)
        if free or not facts:
            yield [*ranks, *sizes]
        if shapes:
            yield [*ranks, *shapes, *sizes]
        if needs and (free or not facts):
            yield [*ranks, *needs, *sizes]
        if facts:
            yield [*ranks, *needs, *facts, *sizes]


def _needed_sizes(equality: Equality) -> list[list[str]]:
    """Return what may have to be said of sizes that are numbers: nothing, those of one variable, or all."""
    numbers = sizes_of(equality)
    if not numbers or _cuts_joints(equality):
        return [numbers]
    single = [[n for n in numbers if n.startswith(f"dim({name},")] for name in equality.named()]
    return [[], *(s for s in single if s and s != numbers), numbers]


def shapes_are_free(equality: Equality) -> bool:
    """Whether typing makes sizes equal: nothing but scalars is broadcast, or all operators work element by element."""
    calls = calls_of((equality.left, equality.right))
    broadcasts = [c for c in calls if c.op in BROADCASTING and not any(_is_scalar(a, equality) for a in c.args)]
    kept = set(variables(equality.left)) == set(variables(equality.right))  # what vanishes no longer broadcasts
    return not _cuts_joints(equality) and (
        not broadcasts or (kept and operators_of((equality.left, equality.right)) <= ELEMENTWISE)
    )


def pointwise(equality: Equality) -> bool:
    """Whether each element of both sides is a function of one element of each variable."""
    return operators_of((equality.left, equality.right)) <= POINTWISE


def _no_wider(equality: Equality) -> list[str]:
    """Return the condition that variables that vanish have no axis larger than those that stay make it."""
    stay = [f"shape({name})" for name in variables(equality.right)]
    shapes = [f"shape({name})" for name in variables(equality.left)]
    if len(shapes) == len(stay):
        return []
    result = stay[0] if len(stay) == 1 else f"broadcast({', '.join(stay)})"
    return [f"broadcast({', '.join(shapes)}) == {result}"]


def _cuts_joints(equality: Equality) -> bool:
    """Whether pieces are cut along an axis along which tensors are joined: where the cut is depends on their sizes."""
    calls = list(calls_of((equality.left, equality.right)))
    joined = {dict(c.attrs)["axis"] for c in calls if c.op == "Concat"}
    return any(joined & set(dict(c.attrs)["axes"].args) for c in calls if c.op == "Slice")


def scalars_of(equality: Equality) -> list[str]:
    """Return the conditions that scalars are scalars."""
    return [f"rank({n}) == 0" for n, t in equality.named().items() if t.shape == ()]


def _is_scalar(term: Root, equality: Equality) -> bool:
    type_ = type_of(term, equality)
    return type_ is not None and type_.shape == ()


def sizes_of(equality: Equality) -> list[str]:
    """Return the sizes that are numbers, those of kernels and of axes that a reduction left, as conditions."""
    dims = ((n, i, d) for n, t in equality.named().items() for i, d in enumerate(t.shape or ()))
    return [f"dim({n}, {i}) == {d}" for n, i, d in dims if isinstance(d, int)]


def equal_shapes(equality: Equality, proof: Proof) -> list[str]:
    """Return which variables a proof makes equal on every axis, as conditions."""
    group: dict[str, str] = {}

    def root(size: str) -> str:
        while size in group:
            size = group[size]
        return size

    for fact in (*proof.typing, *proof.lacking):
        left, _, right = fact.partition(" = ")
        if ATOM.match(left) and ATOM.match(right) and root(left) != root(right):
            group[root(left)] = root(right)
    axes = {
        n: tuple(str(d) if isinstance(d, int) else root(f"{n}.{i}") for i, d in enumerate(t.shape or ()))
        for n, t in equality.named().items()
    }
    first: dict[tuple[str, ...], str] = {}
    return [f"shape({first[a]}) == shape({n})" for n, a in axes.items() if a and first.setdefault(a, n) != n]


def ranks_of(equality: Equality) -> list[str]:
    """Return the ranks of an equality's variables as conditions."""
    return [f"rank({n}) == {len(t.shape or ())}" for n, t in equality.named().items()]


def equalities(facts: Sequence[str]) -> list[str] | None:
    """Return what a proof needed, as conditions; None where a size isn't one of an input's."""
    result: list[str] = []
    for fact in facts:
        left, _, right = fact.partition(" = ")
        sides = [left, *re.split(r" [+] |[*]", right)]
        if any(not ATOM.match(s) and not s.isdigit() for s in sides):
            return None
        result.append(" == ".join(dimensions(s) for s in (left, right.replace("*", " * "))))
    return result


def dimensions(text: str) -> str:
    """Return a size over axes, as proofs write it, as a condition does."""
    return NAMED.sub(lambda m: f"dim({m[1]}, {m[2]})" if m[1][0] != "s" else f"{m[1]}[{m[2]}]", text)


def parsed(line: str) -> Rule | None:
    """Return the rule of a line; None where the notation has no such rule."""
    try:
        (rule,) = parse_rules(line)
    except TasoError:
        return None
    return rule


def is_sampled(rule: Rule) -> bool:
    """Whether instances are found easily; where they aren't, conditions contradict each other or what is matched."""
    try:
        return bool(list(sample_instances(rule, FEW, 0, tries=TRIES)))
    except TasoError:
        return False


def survives(rule: Rule) -> bool:
    """Whether a rule passes T3 on the instances on which it is certified."""
    try:
        return not isinstance(check_rule(rule, instances=CERTIFIED, draws=1), Counterexample)
    except TasoError:
        return False


def is_proved(rule: Rule, instances: int = INSTANCES) -> bool:
    """Whether T1 proves a rule, with nothing lacking, on its first instances, however their axes broadcast.

    What the right side drops may be what was the largest on the left, so variants have to have the same types.
    """
    try:
        for instance in sample_instances(rule, instances, 0):
            proof = shown(rule, instance.binding())
            if not proof.complete or any(type_fault(rule, v) for v in variants(rule, instance, proof)):
                return False
    except TasoError:
        return False
    return True
