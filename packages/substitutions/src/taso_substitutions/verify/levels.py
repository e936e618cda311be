"""What is shown about a rule: the size-generic prover, z3 and the tester, put together to one level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import prod
from typing import Literal

import numpy as np

from taso_gym.rules.covered import about_images
from taso_gym.rules.rule import Rule
from taso_substitutions.verify.analytic import prove_analytic
from taso_substitutions.verify.bounded import BoundedProof, Model, prove_bounded
from taso_substitutions.verify.coverage import Coverage, Prove, RefutedError, cover, uniform
from taso_substitutions.verify.instance import Instance
from taso_substitutions.verify.normal.factors import WorkExhaustedError
from taso_substitutions.verify.prover import Proof, UnprovableError, prove
from taso_substitutions.verify.sampling import sample_instances
from taso_substitutions.verify.testing import Passed, check_rule, simplest
from taso_substitutions.verify.trial import Counterexample, Trial

Status = Literal["proved", "bounded", "analytic", "tested"]
ORDERED = frozenset({"literal", "max", "piecewise", "scale", "case"})
"""Axioms that a proof may use and be ``proved``: laws of ordered fields, and what a literal is rounded from."""
EXAMPLES = 6
"""Instances that the size-generic prover generalises for the sake of their attributes, besides those of other ranks.

Of rules about images, which have many attributes, it generalises all that were sampled, if these are in general.
"""
BOUNDED = 3
"""Instances that z3 decides where the size-generic prover doesn't."""
TOO_LARGE = 400
"""Elements of all inputs that it never has, if there is one with fewer."""
LARGEST = 150
"""Elements of all inputs that an instance for z3 has at most, if there is one as small."""


@dataclass(frozen=True)
class Symbolic:
    """What the size-generic prover showed (T1).

    Attributes:
        digest: hash of the normal forms of all examples.
        examples: how many kinds of instances were proved.
        ranks: of each tensor in these; every combination that the left side and the conditions allow was.
        every_rank: larger ranks follow from these.
        windows: sizes of kernels, which are numbers in each example, as attributes are.
        numbers: other sizes that are numbers in some, and what the rule computes with that is one in each
            (`taso_substitutions.verify.sampled`); the proof covers these numbers only.
    """

    digest: str
    examples: int
    ranks: Mapping[str, tuple[int, ...]]
    every_rank: bool
    windows: tuple[str, ...]
    numbers: tuple[str, ...]


@dataclass(frozen=True)
class Bounded:
    """What z3 showed (T2).

    Attributes:
        solver: name and version.
        shapes: of the variables in each instance.
        elements: how many elements were compared in all.
        at_bound: whether all sizes are at least the small-model bound, where that is known.
    """

    solver: str
    shapes: tuple[dict[str, tuple[int, ...]], ...]
    elements: int
    at_bound: bool


@dataclass(frozen=True)
class Evidence:
    """All that was shown about a rule.

    Attributes:
        status: the level.
        axioms: names of the axioms that the size-generic proof used; what z3 showed uses none.
        small_model: size from which on equality at that size means equality at all sizes; 0 where it isn't known.
        symbolic, bounded, tested: the three ways; None where one failed.
        draws: sets of values that each instance was tested with.
    """

    status: Status
    axioms: tuple[str, ...]
    small_model: int
    symbolic: Symbolic | None
    bounded: Bounded | None
    tested: Passed
    draws: int


def assess(rule: Rule, *, instances: int = 24, draws: int = 2, seed: int = 0) -> Evidence | Counterexample:
    """Show a rule as well as can be.

    Args:
        rule: the rule.
        instances: how many are sampled for each rule.
        draws: sets of values for each instance, in each arithmetic.
        seed: of instances and values.

    Raises:
        EquivalenceError: it can't be tested.
    """
    tested = check_rule(rule, instances=instances, draws=draws, seed=seed)
    if isinstance(tested, Counterexample):
        return simplest(tested)
    try:
        return _evidence(rule, list(sample_instances(rule, instances, seed)), tested, draws)
    except RefutedError as error:
        return simplest(error.found)


def _evidence(rule: Rule, samples: Sequence[Instance], tested: Passed, draws: int) -> Evidence | Counterexample:
    """Return what the provers show of a rule that passed its tests.

    Raises:
        RefutedError: the sides have different types for a kind of instance.
    """
    plain = _covered(prove, rule, samples)
    general = plain is not None and not plain.numbers
    least = _small_model(plain.proofs) if plain else 0
    small = _small(rule, samples, least, fewest=plain is not None and not general)
    bounded = _bounded(rule, small[: 1 if plain else BOUNDED], least)
    if isinstance(bounded, Counterexample):
        return bounded
    found = plain or _covered(prove_analytic, rule, samples)
    proofs = found.proofs if found else ()
    axioms = tuple(sorted({axiom for p in proofs for axiom in p.axioms}))
    status: Status = "bounded" if bounded else "analytic" if axioms else "tested"
    if bounded and found and ORDERED.issuperset(axioms) and not found.numbers:
        status = "proved"
    return Evidence(status, axioms, _small_model(proofs), _symbolic(found), bounded, tested, draws)


def _covered(method: Prove, rule: Rule, samples: Sequence[Instance]) -> Coverage | None:
    """Return the proofs of a rule for all kinds of instances; None where one of them fails.

    Raises:
        RefutedError: the sides have different types for one kind.
    """
    try:
        found = cover(rule, samples, EXAMPLES, method)
        if about_images(rule) and not found.numbers:
            found = cover(rule, samples, len(samples), method)
    except (UnprovableError, WorkExhaustedError):
        return None
    return found if all(p.complete for p in found.proofs) else None


def _bounded(rule: Rule, instances: Sequence[Instance], least: int) -> Bounded | Counterexample | None:
    """Return what z3 shows; what it refutes counts where the numbers that it names do differ."""
    proofs: list[BoundedProof] = []
    for instance in instances:
        found = prove_bounded(rule, instance)
        if isinstance(found, Model):
            error = Trial(rule, found.instance, np.random.default_rng(0)).error_at(found.arrays)
            return error if isinstance(error, Counterexample) else None
        if isinstance(found, str):
            return None
        proofs.append(found)
    sizes = [d for p in proofs for shape in p.shapes.values() for d in shape]
    shapes = tuple(dict(p.shapes) for p in proofs)
    return Bounded(proofs[0].solver, shapes, sum(p.elements for p in proofs), 0 < least <= min(sizes, default=least))


def _small(rule: Rule, samples: Sequence[Instance], least: int, fewest: bool) -> list[Instance]:
    """Order instances for z3: those not too large whose sizes are at least the small-model bound first.

    Where there is a bound, instances all of whose sizes are the bound are among them. Instances with fewer sizes of 1
    come first, unless the ``fewest`` elements are asked for.
    """
    at_bound = list(uniform(rule, max(least, 2))) if least else []

    def key(instance: Instance) -> tuple[bool, bool, bool, bool, int, int]:
        shapes = [[d for d in t.shape or () if isinstance(d, int)] for _, t in instance.leaves()]
        elements = sum(map(prod, shapes))
        small = any(d < least for shape in shapes for d in shape)
        ones = 0 if fewest else sum(shape.count(1) for shape in shapes)
        return (elements > TOO_LARGE, [] in shapes, small, elements > LARGEST, ones, elements)

    return sorted([*samples, *at_bound], key=key)


def _small_model(proofs: Sequence[Proof]) -> int:
    return max((p.small_model for p in proofs), default=0)


def _symbolic(found: Coverage | None) -> Symbolic | None:
    if found is None:
        return None
    digest = blake2b(" ".join(p.digest for p in found.proofs).encode(), digest_size=16).hexdigest()
    windows = {fact.partition(" ")[0] for p in found.proofs for fact in p.fixed} - found.numbers
    return Symbolic(
        digest, len(found.proofs), found.ranks, found.every_rank, tuple(sorted(windows)), tuple(sorted(found.numbers))
    )
