"""Testing a rule on sampled instances (T3): both sides are evaluated with the operators' own bodies and compared.

Over integers modulo a prime p, in which non-linear functions are opaque hashes, agreement is exact: one scalar test of
an identity of degree d that is false holds with probability at most d / p. Where a rule needs more than field
arithmetic (a property of exp, max, …) both sides are compared in float64, with the error stated. Besides: the right
side must be well-typed whenever the left one is, with the same types, and a rule that claims to keep every bit must.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from taso_gym.checks import check_kind, check_positive, check_seed
from taso_gym.errors import EquivalenceError
from taso_gym.ops.modular import MERSENNE_31
from taso_gym.rules.rule import Rule
from taso_substitutions.verify.instance import Instance
from taso_substitutions.verify.sampling import TRIES_PER_INSTANCE, sample_instances
from taso_substitutions.verify.trial import Counterexample, Trial
from taso_substitutions.verify.values import STYLES

FEW_TRIES = 25
"""How often an instance is drawn on average where it may well be that there is none."""
OTHERS = 24
"""Instances that are sampled in search of a simpler counterexample."""


@dataclass(frozen=True)
class Passed:
    """How a rule passed.

    Attributes:
        rule: the rule.
        method: "field" where both sides agree modulo the prime, else "float64".
        prime: p.
        instances, tests: number of instances, and of comparisons over them.
        seed: of instances and values.
        error: largest relative error seen in float64.
        ranks: smallest and largest rank of a tensor.
        sizes: sizes of axes that occurred.
    """

    rule: Rule
    method: str
    prime: int
    instances: int
    tests: int
    seed: int
    error: float
    ranks: tuple[int, int]
    sizes: tuple[int, ...]


def check_rule(
    rule: Rule,
    *,
    instances: int = 16,
    draws: int = 2,
    seed: int = 0,
    tries: int = TRIES_PER_INSTANCE,
    either: bool = False,
) -> Passed | Counterexample:
    """Test a rule on sampled instances.

    Args:
        rule: the rule.
        instances: how many are sampled.
        draws: sets of values for each instance, in each arithmetic.
        seed: of instances and values; the same seed tests the same.
        tries: how often an instance is drawn on average before giving up.
        either: an instance on which both sides agree modulo the prime isn't compared in float64, too.

    Raises:
        EquivalenceError: not enough instances were found, or none whose left side is finite.
        OptionError: it is no rule, or a number is of a wrong kind.
    """
    check_kind("rule", rule, (Rule,), "a Rule (parse_rules reads text)")
    check_positive(instances=instances, draws=draws, tries=tries)
    check_seed(seed)
    rng = np.random.default_rng([seed, 1])
    samples: list[Instance] = []
    errors: list[float] = []
    exact = True
    for instance in sample_instances(rule, instances, seed, tries=tries):
        samples.append(instance)
        trial = Trial(rule, instance, rng)
        fault = trial.fault()
        settled = either and exact and not fault and trial.agrees_in_field(draws)
        found = 0.0 if settled else fault or trial.error(draws, len(samples))
        if isinstance(found, Counterexample):
            return found
        errors += [] if found is None else [found]
        exact = settled or (exact and not either and trial.agrees_in_field(draws))
    if 2 * len(errors) < len(samples):
        raise EquivalenceError(
            f"{rule.where}: expected finite values on the left of {rule.name}, found some in {len(errors)} of "
            f"{len(samples)} instances with seed {seed} only"
        )
    shapes = [t.shape for instance in samples for _, t in instance.leaves() if t.shape is not None]
    ranks = [len(shape) for shape in shapes]
    sizes = sorted({d for shape in shapes for d in shape if isinstance(d, int)})
    tests = instances * draws * (2 if exact else 1)
    method = "field" if exact else "float64"
    return Passed(
        rule, method, MERSENNE_31, instances, tests, seed, max(errors), (min(ranks), max(ranks)), tuple(sizes)
    )


def simplest(found: Counterexample) -> Counterexample:
    """Return the counterexample with fewest elements that `OTHERS` give; they are tried in order of their size."""
    rng = np.random.default_rng([0, 2])
    others = sorted(sample_instances(found.rule, OTHERS, 0, least=0, tries=FEW_TRIES), key=_elements)
    for instance in others:
        if _elements(instance) >= _elements(found.instance):
            break
        trial = Trial(found.rule, instance, rng)
        fault = trial.fault() or trial.error(len(STYLES))
        if isinstance(fault, Counterexample):
            return fault
    return found


def _elements(instance: Instance) -> int:
    return sum(prod(d for d in t.shape or () if isinstance(d, int)) for _, t in instance.leaves())


def type_fault(rule: Rule, instance: Instance) -> Counterexample | None:
    """Return what is wrong with the types of the right side for an instance."""
    return Trial(rule, instance, np.random.default_rng(0)).type_fault()
