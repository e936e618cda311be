"""Stating a proved equality as rules: the weakest conditions under which it holds for every match.

The prover decides an equality at one typing. A matcher also meets other ranks and operands that broadcast, so a rule is
first stated without conditions and tried on sampled instances; conditions are added only where it fails: the ranks,
what the right side needs, and at last the whole typing. Every rule that comes out has passed T1 and T3 on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from taso_gym.errors import TasoError
from taso_gym.rules.conditions import holds
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.pattern import calls_of
from taso_gym.rules.rule import Root, Rule
from taso_gym.rules.ruleset import operators_of
from taso_substitutions.equalities.generalise import General, shown
from taso_substitutions.equalities.narrowing import BROADCASTING, narrowings
from taso_substitutions.equalities.sizes import equal_shapes, equal_sizes, equalities, ranks_of, scalars_of, sizes_of
from taso_substitutions.equalities.terms import Equality, type_of, variables
from taso_substitutions.verify.coverage import uniform, variants
from taso_substitutions.verify.facts import SLIDES
from taso_substitutions.verify.instance import Instance
from taso_substitutions.verify.prover import Proof
from taso_substitutions.verify.sampling import sample_instances
from taso_substitutions.verify.testing import Passed, check_rule, type_fault
from taso_substitutions.verify.trial import Counterexample

INSTANCES = 6
"""Instances that T1 proves a rule on."""
RANKS = 100
"""Most combinations of ranks for which the types of a rule's sides are compared."""
FEW = 2
"""Instances that are sampled first."""
TRIES = 50
"""How often each of these is drawn on average: conditions that allow so few instances are no use."""
CERTIFIED = 24
"""Instances of a certificate's tests."""
LAST_SEED = 1
"""Seed of as many other instances, on which a rule that is proved on the first is tested at last."""
RARELY = 200
"""How often an instance is drawn on average: what is found less often isn't stated."""
ROUNDS_ONCE = frozenset(
    {"Concat", "Split", "Transpose", "Reshape", "Slice", "Pad", "Relu", "MaxPool", "Sigmoid", "Exp"}
    | {"Add", "Sub", "Mul", "Div"}
)
"""Operators without sums, whose order an implementation may choose: only rules among them may keep every bit."""
CONTRACTING = frozenset({"MatMul", "Gemm"})
"""Operators that mean something else for vectors."""
POINTWISE = frozenset({"Add", "Sub", "Mul", "Div", "Relu", "Sigmoid", "Exp"})
ELEMENTWISE = POINTWISE | {"Transpose"}


def state(general: General, name: str) -> list[Rule]:
    """Return the rules of an equality: one for each direction that holds."""
    found = (statement_of(equality, proof, f"{name}{end}") for equality, proof, end in general.directions())
    return [rule for rule in found if rule]


def statement_of(equality: Equality, proof: Proof, name: str) -> Rule | None:
    """Return an equality as a rule from left to right; None where it can't be stated."""
    return first_that_passes(name, equality.body, attempts(equality, proof))


def first_that_passes(name: str, body: str, conditions: Iterator[list[str]]) -> Rule | None:
    """Return a rule under the first set of conditions with which it passes; None where none does."""
    refuting: list[Instance] = []
    for wanted in map(dict.fromkeys, conditions):
        suffix = f" if {' and '.join(wanted)}" if wanted else ""
        rule = parsed(f"{name}: {body}{suffix}")
        if rule is None or any(_allows(rule, instance) for instance in refuting) or not is_sampled(rule):
            continue
        outcome = None
        for tagged in filter(None, (parsed(f"{name}{tag}: {body}{suffix}") for tag in _tags(rule))):
            outcome = outcome_of(tagged)
            if isinstance(outcome, Passed):
                break
        if isinstance(outcome, Counterexample):
            refuting.append(outcome.instance)
        elif outcome and is_proved(outcome.rule) and isinstance(outcome_of(outcome.rule, LAST_SEED), Passed):
            return outcome.rule
    return None


def _tags(rule: Rule) -> list[str]:
    """Return the tags with which a rule is tried, strictest first.

    A rule that makes an Exp keeps every bit, or is ``fast``: an Exp overflows from 89 on in float32 (12 in float16),
    while a Softmax, or an Exp of a sum, is finite there.
    """
    exact = [" [exact]"] if operators_of((*rule.lhs, *rule.rhs)) <= ROUNDS_ONCE else []
    made = {call for call in calls_of(rule.rhs) if call.op == "Exp"} - set(calls_of(rule.lhs))
    return [*exact, " [fast]" if made else ""]


def _allows(rule: Rule, instance: Instance) -> bool:
    """Whether the conditions of a rule hold for an instance of the same rule under others."""
    return all(holds(condition, instance.binding()) for condition in rule.conditions)


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
        for narrow in narrowings(equality, equal_sizes(proof), {}):
            if not slides(equality):
                yield from ([*narrow.about_others([*wanted, *sizes]), *narrow.conditions] for wanted in weak)
            known = [*ranks, *needs, *(facts or []), *narrow.equal, *sizes]
            yield [*narrow.about_others(known), *narrow.conditions]
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


def slides(equality: Equality) -> bool:
    """Whether windows slide over an operand, whose axes have their meaning by their number."""
    return not SLIDES.isdisjoint(operators_of((equality.left, equality.right)))


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


def _is_scalar(term: Root, equality: Equality) -> bool:
    type_ = type_of(term, equality)
    return type_ is not None and type_.shape == ()


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


def outcome_of(rule: Rule, seed: int = 0) -> Passed | Counterexample | None:
    """Return how a rule passes or fails T3 on as many instances as it is certified on, None where there are too few."""
    try:
        return check_rule(rule, instances=CERTIFIED, draws=1, seed=seed, tries=RARELY, either=True)
    except TasoError:
        return None


def is_proved(rule: Rule) -> bool:
    """Whether T1 proves a rule, with nothing lacking, on its first instances, however their axes broadcast.

    What the right side drops may be what was the largest on the left, and what it says of axes may be wrong for other
    ranks, so the types of both sides are compared for variants of these instances and for other ranks, too.
    """
    try:
        for instance in sample_instances(rule, INSTANCES, 0, tries=RARELY):
            proof = shown(rule, instance.binding())
            if not proof.complete or any(type_fault(rule, v) for v in variants(rule, instance, proof)):
                return False
        return not any(type_fault(rule, other) for other in islice(uniform(rule), RANKS))
    except TasoError:
        return False
