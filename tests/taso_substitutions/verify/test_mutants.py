"""Negative control: true rules are changed at random, and what T1 proves of the result, T3 must find to hold."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from taso_gym.errors import TasoError
from taso_gym.rules.notation import unparse
from taso_gym.rules.rule import AllOutputs, Call, Expr, Output, Root, Rule, Var
from taso_gym.rules.ruleset import RuleSet
from taso_substitutions.verify.facts import calls_in
from taso_substitutions.verify.normal.factors import WorkExhaustedError
from taso_substitutions.verify.prover import UnprovableError, prove
from taso_substitutions.verify.sampling import sample_instances
from taso_substitutions.verify.testing import Counterexample, Trial

RULES = list(RuleSet.load("default", numerics="fast"))
FAMILIES = (
    ("Add", "Sub", "Mul", "Div", "MatMul", "Max", "Min"),
    ("Relu", "Neg", "Abs", "Exp", "Sqrt", "Sigmoid", "Tanh", "Reciprocal", "Identity"),
    ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"),
)


def mutants(seed: int) -> Iterator[Rule]:
    rng = np.random.default_rng(seed)
    while True:
        rule = RULES[rng.integers(len(RULES))]
        rhs = list(rule.rhs)
        at = int(rng.integers(len(rhs)))
        changed = change(rhs[at], rule, rng)
        if changed != rhs[at]:
            rhs[at] = changed
            yield replace(rule, name=f"{rule.name}-mutant", rhs=tuple(rhs), text=f"mutant of {unparse(rule)}")


def change(term: Root, rule: Rule, rng: np.random.Generator) -> Root:
    match term:
        case AllOutputs(call):
            inner = change(call, rule, rng)
            return AllOutputs(inner) if isinstance(inner, Call) else term
        case Output(call, index):
            inner = change(call, rule, rng)
            return Output(inner, index) if isinstance(inner, Call) else term
        case Call():
            return change_call(term, rule, rng)
        case Var(name):
            names = [a.name for call in calls_in(rule.lhs) for a in call.args if isinstance(a, Var)]
            return Var(str(rng.choice(names or [name])))
        case _:
            return term


def change_call(call: Call, rule: Rule, rng: np.random.Generator) -> Root:
    kind = rng.choice(["inside", "inside", "order", "operator", "number", "drop"])
    if kind == "order" and len(call.args) > 1:
        return replace(call, args=tuple(call.args[i] for i in rng.permutation(len(call.args))))
    if kind == "operator":
        family = next((f for f in FAMILIES if call.op in f), (call.op,))
        return replace(call, op=str(rng.choice(family)))
    if kind == "number" and call.attrs:
        at = int(rng.integers(len(call.attrs)))
        name, expr = call.attrs[at]
        return replace(call, attrs=(*call.attrs[:at], (name, shifted(expr, rng)), *call.attrs[at + 1 :]))
    if kind == "drop" and call.args and isinstance(call.args[0], Var | Call):
        return call.args[0]
    if not call.args:
        return call
    at = int(rng.integers(len(call.args)))
    return replace(call, args=(*call.args[:at], change(call.args[at], rule, rng), *call.args[at + 1 :]))


def shifted(expr: Expr, rng: np.random.Generator) -> Expr:
    if expr.kind == "number" and not isinstance(expr.value, bool):
        return replace(expr, value=(expr.value or 0) + int(rng.integers(-1, 2)))  # type: ignore[operator]
    if not expr.args:
        return expr
    if expr.kind == "list" and rng.random() < 0.5:
        return replace(expr, args=tuple(expr.args[i] for i in rng.permutation(len(expr.args))))
    at = int(rng.integers(len(expr.args)))
    return replace(expr, args=(*expr.args[:at], shifted(expr.args[at], rng), *expr.args[at + 1 :]))


def proved(rule: Rule, instance: Any) -> bool:
    try:
        return prove(rule, instance.binding()).complete
    except (UnprovableError, WorkExhaustedError):
        return False


def run(count: int, seed: int) -> tuple[int, int]:
    """Return how many mutants both show and how many both don't; fail where T1 proves what T3 refutes."""
    both = neither = 0
    for rule in islice(mutants(seed), count):
        try:
            instance = next(iter(sample_instances(rule, 1, seed, least=1)))
            trial = Trial(rule, instance, np.random.default_rng(seed))
            fault = trial.type_fault()
            fault = fault or (None if trial.agrees_in_field(1) else trial.error(1))
            holds = not isinstance(fault, Counterexample)
        except TasoError:  # a mutant that isn't well formed at all
            continue
        if proved(rule, instance):
            assert holds, f"{unparse(rule)}\nproved, but refuted for {instance}: {fault}"
            both += 1
        else:
            neither += not holds
    return both, neither


def test_no_mutant_is_proved_that_the_tester_refutes() -> None:
    both, neither = run(300, seed=0)
    assert both > 5
    assert neither > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 101))
def test_no_mutant_among_many_is_proved_that_the_tester_refutes(seed: int) -> None:
    run(1000, seed)
