"""Random changes of true rules: what the size-generic prover shows of the result, tests must find to hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np

from taso_gym.errors import TasoError
from taso_gym.rules.notation import unparse
from taso_gym.rules.pattern import calls_of
from taso_gym.rules.rule import AllOutputs, Call, Expr, Output, Root, Rule, Var
from taso_gym.rules.ruleset import RuleSet
from taso_substitutions.verify.analytic import prove_analytic
from taso_substitutions.verify.instance import Instance
from taso_substitutions.verify.normal.factors import WorkExhaustedError
from taso_substitutions.verify.prover import UnprovableError, prove
from taso_substitutions.verify.sampling import sample_instances
from taso_substitutions.verify.trial import Counterexample, Trial

SETS = ("default", "basis")
SHOWN = ("proved", "analytic")
FAMILIES = (
    ("Add", "Sub", "Mul", "Div", "MatMul", "Max", "Min"),
    ("Relu", "Neg", "Abs", "Exp", "Sqrt", "Sigmoid", "Tanh", "Reciprocal", "Identity"),
    ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"),
)
"""Operators that stand in for one another."""
BEYOND_RINGS = frozenset(("Relu", "Clip", "Abs", "Max", "Min", "LeakyRelu", "PRelu", "HardSwish", "HardSigmoid", "Exp"))
"""Operators of which the analytic prover knows more than the plain one."""
POOL = 4
"""Instances of each rule that its mutants are tried on."""


@dataclass
class Tally:
    """What became of mutants.

    Attributes:
        mutants: how many there were.
        proved: of these, shown by the prover, with and without axioms.
        refuted: those that a test refutes, and the prover doesn't show.
        undecided: those that neither shows nor refutes at their instance.
        ill_formed: those that aren't rules at all.
        disagreements: shown and refuted; each as text.
    """

    mutants: int = 0
    proved: int = 0
    refuted: int = 0
    undecided: int = 0
    ill_formed: int = 0
    disagreements: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


@cache
def true_rules() -> Sequence[Rule]:
    """Return the rules that are changed: those that the size-generic provers show."""
    sets = [RuleSet.load(name, numerics="fast") for name in SETS]
    return [rule for found in sets for rule in found if found.certificates.get(rule.name) in SHOWN]


def rules_digest() -> str:
    """Return a hash of the rules that are changed, which also depends on how they were shown."""
    return blake2b("\n".join(map(unparse, true_rules())).encode(), digest_size=16).hexdigest()


def mutants(seed: int) -> Iterator[tuple[int, Rule]]:
    """Yield the number of a rule and what it was changed to, without end; the same ones for the same seed."""
    rng, rules = np.random.default_rng(seed), true_rules()
    while True:
        number = int(rng.integers(len(rules)))
        rule = rules[number]
        rhs = list(rule.rhs)
        at = int(rng.integers(len(rhs)))
        changed = change(rhs[at], rule, rng)
        if changed != rhs[at]:
            rhs[at] = changed
            text = f"mutant of {unparse(rule)}"
            yield number, replace(rule, name=f"{rule.name}-mutant", rhs=tuple(rhs), text=text)


def change(term: Root, rule: Rule, rng: np.random.Generator) -> Root:
    """Return a term changed at one place, or as it was."""
    match term:
        case AllOutputs(call):
            inner = change(call, rule, rng)
            return AllOutputs(inner) if isinstance(inner, Call) else term
        case Output(call, index):
            inner = change(call, rule, rng)
            return Output(inner, index) if isinstance(inner, Call) else term
        case Call():
            return _changed_call(term, rule, rng)
        case Var(name):
            names = [a.name for call in calls_of(rule.lhs) for a in call.args if isinstance(a, Var)]
            return Var(str(rng.choice(names or [name])))
        case _:
            return term


def _changed_call(call: Call, rule: Rule, rng: np.random.Generator) -> Root:
    kind = rng.choice(["inside", "inside", "order", "operator", "number", "drop"])
    if kind == "order" and len(call.args) > 1:
        return replace(call, args=tuple(call.args[i] for i in rng.permutation(len(call.args))))
    if kind == "operator":
        family = next((f for f in FAMILIES if call.op in f), (call.op,))
        return replace(call, op=str(rng.choice(family)))
    if kind == "number" and call.attrs:
        at = int(rng.integers(len(call.attrs)))
        name, expr = call.attrs[at]
        return replace(call, attrs=(*call.attrs[:at], (name, _shifted(expr, rng)), *call.attrs[at + 1 :]))
    if kind == "drop" and call.args and isinstance(call.args[0], Var | Call):
        return call.args[0]
    if not call.args:
        return call
    at = int(rng.integers(len(call.args)))
    return replace(call, args=(*call.args[:at], change(call.args[at], rule, rng), *call.args[at + 1 :]))


def _shifted(expr: Expr, rng: np.random.Generator) -> Expr:
    if expr.kind == "number" and not isinstance(expr.value, bool):
        return replace(expr, value=(expr.value or 0) + int(rng.integers(-1, 2)))  # type: ignore[operator]
    if not expr.args:
        return expr
    if expr.kind == "list" and rng.random() < 0.5:
        return replace(expr, args=tuple(expr.args[i] for i in rng.permutation(len(expr.args))))
    at = int(rng.integers(len(expr.args)))
    return replace(expr, args=(*expr.args[:at], _shifted(expr.args[at], rng), *expr.args[at + 1 :]))


def tally(count: int, seed: int) -> Tally:
    """Show and test some mutants; an instance of a rule is one of each of its mutants' left sides."""
    found, rng = Tally(), np.random.default_rng([seed, 1])
    pools: dict[int, list[Instance]] = {}
    for number, rule in islice(mutants(seed), count):
        if number not in pools:
            pools[number] = list(sample_instances(true_rules()[number], POOL, seed, least=1))
        instance = pools[number][int(rng.integers(len(pools[number])))]
        found.mutants += 1
        try:
            holds, fault = _holds(rule, instance, seed)
            proved = _proved(rule, instance)
        except TasoError:  # no such operator, or none with such operands or attributes
            found.ill_formed += 1
            continue
        if proved and not holds:
            found.disagreements.append(f"{unparse(rule)}\n  proved, but refuted for {instance}: {fault}")
        found.proved += proved
        found.refuted += not proved and not holds
        found.undecided += not proved and holds
    return found


def _holds(rule: Rule, instance: Instance, seed: int) -> tuple[bool, object]:
    trial = Trial(rule, instance, np.random.default_rng(seed))
    fault = trial.type_fault()
    fault = fault or (None if trial.agrees_in_field(1) else trial.error(1))
    return not isinstance(fault, Counterexample), fault


def _proved(rule: Rule, instance: Instance) -> bool:
    ops = {call.op for call in calls_of((*rule.lhs, *rule.rhs))}
    for method in (prove, prove_analytic) if ops & BEYOND_RINGS else (prove,):
        try:
            if method(rule, instance.binding()).complete:
                return True
        except (UnprovableError, WorkExhaustedError):
            continue
    return False
