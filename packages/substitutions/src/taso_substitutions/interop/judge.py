"""Judging rules of others: each is proved, given the precondition that it lacks, or refuted by a counterexample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Literal, NamedTuple, get_args

from taso_gym.errors import EquivalenceError, ModelError, RuleError, TasoError
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.pattern import calls_of
from taso_gym.rules.rule import Call, Rule, Var
from taso_gym.rules.taso_pb import rule_of, text_of
from taso_gym.rules.taso_wire import TasoRule
from taso_substitutions.equalities.sizes import equalities
from taso_substitutions.verify.coverage import Coverage, RefutedError, cover
from taso_substitutions.verify.facts import is_call
from taso_substitutions.verify.levels import assess
from taso_substitutions.verify.prover import UnprovableError, prove
from taso_substitutions.verify.sampling import sample_instances
from taso_substitutions.verify.testing import FEW_TRIES, check_rule, simplest
from taso_substitutions.verify.trial import Counterexample

FIRST = 4
"""Instances that are tested before a proof is tried; a rule that isn't proved is tested with more."""
INSTANCES = 8
PROBES = 3
"""Instances that tell whether it may help to add preconditions."""
EXAMPLES = 3
ROUNDS = 2
"""How often preconditions are added to a rule before it counts as refuted."""

MORE = 48
"""Instances of a rule that isn't proved at once."""

Outcome = Literal["proved", "bounded", "analytic", "tested", "refuted", "undecided"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""From what is shown best to what isn't shown at all."""


@dataclass(frozen=True)
class Verdict:
    """What became of a rule.

    Attributes:
        name: of the rule.
        outcome: "proved" for all sizes, ranks and broadcasts, at sampled attributes; "bounded", "analytic" or "tested"
            as in a certificate; "refuted"; "undecided" if it can't be said in our notation, or has hardly any instance.
        rule: a rule that holds, if there is one; with its added preconditions.
        added: the preconditions that it lacked.
        counterexample: where the rule as it was given is false, or why nothing was decided.
    """

    name: str
    outcome: Outcome
    rule: Rule | None = None
    added: tuple[str, ...] = ()
    counterexample: str = ""


class TasoWork(NamedTuple):
    """Argument of `judge_taso`: a record and its place in the file."""

    taso: TasoRule
    number: int
    where: str


def judge_taso(work: TasoWork) -> Verdict:
    """Judge a record of TASO: as TASO means it, with groups that the channels say, and with one group."""
    name = f"taso-{work.number}"
    try:
        rules = as_rules(work)
        meant = as_rules(work, explicit=False)
    except RuleError as error:
        return Verdict(name, "undecided", None, (), str(error))
    verdicts = [judge(rule) for rule in rules]
    verdict = max(verdicts, key=lambda v: OUTCOMES.index(v.outcome))
    stated = rule_of(work.taso, name, work.where)
    usable = verdict.rule if isinstance(stated, Rule) and len(rules) == 1 else None
    verdict = replace(verdict, rule=usable, added=tuple(dict.fromkeys(c for v in verdicts for c in v.added)))
    if verdict.outcome not in ("refuted", "undecided") and any(call.op == "Conv" for call in calls_of(rules[0].lhs)):
        grouped = next(filter(None, map(_counterexample, meant)), None)
        if grouped is not None:
            return replace(verdict, added=("group == 1", *verdict.added), counterexample=str(grouped))
    return verdict


def as_rules(work: TasoWork, *, explicit: bool = True) -> list[Rule]:
    """Return what to check of a record: outputs needn't be connected, and either side may be the left one.

    It is one rule, or one for each output where both sides compute constants, which a left side can't bind.

    Args:
        work: the record.
        explicit: a convolution has one group, rather than as many as the channels say.
    """
    name = f"taso-{work.number}"
    rule = _oriented(work.taso, name, work.where, explicit=explicit)
    if len(work.taso.outputs) == 1 or not _computes_constants(rule):
        return [rule]
    parts = [TasoRule(work.taso.source, work.taso.target, (pair,)) for pair in work.taso.outputs]
    return [_oriented(part, name, work.where, explicit=explicit) for part in parts]


def _oriented(taso: TasoRule, name: str, where: str, *, explicit: bool) -> Rule:
    """Return a record as a rule, turned round if its left side computes constants and its right side doesn't."""
    found: list[Rule] = []
    fault = RuleError("expected a rule, found none")
    for record in (taso, TasoRule(taso.target, taso.source, tuple((b, a) for a, b in taso.outputs))):
        try:
            text = text_of(record, explicit_groups=explicit, joined=True)
            found += parse_rules(f"{name}: {text}", where)
        except RuleError as error:
            fault = error
        except (LookupError, ValueError, ArithmeticError) as error:  # an operator without its parameters or operands
            fault = RuleError(f"{where}: expected a rule of TASO as record {name}, found a damaged one: {error!r}")
    if not found:
        raise fault
    rule = min(found, key=_computes_constants)
    left, right = rule.lhs[0], rule.rhs[0]
    if len(taso.outputs) > 1 and isinstance(left, Call) and isinstance(right, Call):
        return replace(rule, lhs=left.args, rhs=right.args)
    return rule


def _computes_constants(rule: Rule) -> bool:
    """Whether the left side computes a constant of TASO's from sizes."""
    return any(call.op == "Expand" for call in calls_of(rule.lhs))


def judge(rule: Rule, rounds: int = ROUNDS) -> Verdict:
    """Judge a rule, adding what equalities of sizes it lacks.

    Args:
        rule: the rule.
        rounds: how often preconditions may be added.
    """
    first, added = "", []
    for attempt in range(rounds + 1):
        try:
            found = check_rule(rule, instances=FIRST, draws=1)
            found = found if isinstance(found, Counterexample) else _proof_of(rule)
            if isinstance(found, Coverage) and not found.numbers:
                return Verdict(rule.name, "proved", rule, tuple(added), first)
            if not isinstance(found, Counterexample):
                found = assess(rule, instances=INSTANCES if found else MORE, draws=1)
        except (EquivalenceError, ModelError) as error:
            return Verdict(rule.name, "undecided", None, tuple(added), first or str(error))
        if not isinstance(found, Counterexample):
            return Verdict(rule.name, found.status, rule, tuple(added), first)
        first = first or str(simplest(found))
        if attempt == rounds:
            break
        lacking = [c for c in dict.fromkeys(_lacking(rule)) if c not in added] or _equal_sizes(rule)
        if not lacking:
            break
        added += lacking
        for condition in lacking:
            rule = _with(rule, condition)
    return Verdict(rule.name, "refuted", None, (), first)


def _proof_of(rule: Rule) -> Coverage | Counterexample | None:
    """Return the size-generic proofs of a rule, for every rank and broadcast; None where one is lacking.

    Sizes that are numbers in them are no others: such a rule isn't proved for all sizes.
    """
    try:
        found = cover(rule, list(sample_instances(rule, EXAMPLES, 0)), EXAMPLES, prove)
    except RefutedError as error:
        return error.found
    except TasoError:
        return None
    return found if all(p.complete for p in found.proofs) else None


def _lacking(rule: Rule) -> Iterator[str]:
    """Yield preconditions that the prover says a rule lacks, but sizes that are numbers of the one instance."""
    for instance in sample_instances(rule, INSTANCES, 0):
        try:
            proof = prove(rule, instance.binding())
        except (UnprovableError, TasoError):
            continue
        facts = equalities(proof.lacking) or []
        yield from (fact for fact in facts if not fact.split()[-1].isdigit() and _can_be_said(rule, fact))


def _can_be_said(rule: Rule, condition: str) -> bool:
    """Whether a condition is one of the rule's variables: what begins with s is taken for a list of sizes."""
    try:
        _with(rule, condition)
    except RuleError:
        return False
    return True


def _equal_sizes(rule: Rule) -> list[str]:
    """Return fewest equal sizes of variables of one rank under which a rule holds; none if it doesn't under all."""
    ranks = {c.args[0].args[0].value: c.args[1].value for c in rule.conditions if c.args and is_call(c.args[0], "rank")}
    names = [name for name in sorted(_tensors(rule)) if name in ranks]
    pairs = [(a, b) for a, b in pairwise(names) if ranks[a] == ranks[b]]
    alike = [f"dim({a}, {i}) == dim({b}, {i})" for a, b in pairs for i in range(int(ranks[a] or 0))]
    square = [f"dim({a}, 0) == dim({a}, 1)" for a in names if int(ranks[a] or 0) > 1]
    whole = [] if ranks else [f"shape({a}) == shape({b})" for a, b in combinations(sorted(_tensors(rule)), 2)]
    wanted = next((found for found in (alike, square, whole) if found and _holds_with(rule, found, PROBES)), [])
    for condition in list(wanted):
        fewer = [c for c in wanted if c != condition]
        if _holds_with(rule, fewer):
            wanted = fewer
    return wanted


def _holds_with(rule: Rule, conditions: Sequence[str], instances: int = INSTANCES) -> bool:
    for condition in conditions:
        rule = _with(rule, condition)
    try:
        return not isinstance(check_rule(rule, instances=instances, draws=1, tries=FEW_TRIES), Counterexample)
    except EquivalenceError:
        return False


def _counterexample(rule: Rule) -> Counterexample | None:
    """Return where a rule is false; None if that isn't seen."""
    try:
        found = check_rule(rule, instances=INSTANCES, draws=1)
    except EquivalenceError:  # hardly any instance
        return None
    return found if isinstance(found, Counterexample) else None


def _with(rule: Rule, condition: str) -> Rule:
    """Return a rule with one condition more."""
    probe = f"probe: Sum({', '.join(_tensors(rule))}) => Sum({', '.join(_tensors(rule))}) if {condition}"
    (parsed,) = parse_rules(probe)
    text = f"{rule.text} {'and' if rule.conditions else 'if'} {condition}"
    return replace(rule, conditions=(*rule.conditions, *parsed.conditions), text=text)


def _tensors(rule: Rule) -> Sequence[str]:
    found = {a.name: None for call in calls_of(rule.lhs) for a in call.args if isinstance(a, Var)}
    return list(found)
