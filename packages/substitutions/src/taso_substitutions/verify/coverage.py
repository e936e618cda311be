"""Which ranks and broadcasts of its tensors a rule's proof is for: each kind of instance is proved.

A proof is for the ranks, attributes and sizes of 1 of its example; everything else is general. So examples are made of
every rank of every tensor, all sizes being equal, and where that isn't well-typed, of those that the sampler finds; and
of every way in which axes may have size 1 where others that they meet haven't. Both sides must have the same types for
each. Where operators only map over the axes that are 1, an example needs no proof: there a tensor of size 1 is read at
its only position in place of the common one, and the sides stay equal (docs/proofs.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from taso_gym.errors import EquivalenceError, TypeInferenceError
from taso_gym.rules.conditions import Binding, holds
from taso_gym.rules.covered import about_images, rank_limit
from taso_gym.rules.functions import Operand
from taso_gym.rules.lists import Undefined
from taso_gym.rules.rule import Call, Rest, Rule, Var
from taso_gym.tensor import TensorType
from taso_substitutions.verify.bindings import Bindings
from taso_substitutions.verify.draw import Draw, Unfit
from taso_substitutions.verify.facts import calls_in, facts_of
from taso_substitutions.verify.instance import Instance, Side
from taso_substitutions.verify.leading import MAPPED_RANK, maps
from taso_substitutions.verify.operands import DTYPES
from taso_substitutions.verify.prover import Dimension, Proof, UnprovableError, follows
from taso_substitutions.verify.sampled import sampled
from taso_substitutions.verify.site import CallSite
from taso_substitutions.verify.testing import type_fault
from taso_substitutions.verify.trial import Counterexample, Trial

SIZE = 6
"""Size of all axes of an example: the prover keeps apart what is equal by accident."""
LARGEST_SET = 7
"""Most axes, of those that meet each other, that are given size 1 at once; all subsets of at most so many are tried."""
TRIES = 4
"""Draws of a call's attributes for given shapes."""


class RefutedError(Exception):
    """An instance for which the sides of a rule have different types or values."""

    def __init__(self, found: Counterexample) -> None:
        super().__init__(str(found))
        self.found = found


Prove = Callable[[Rule, Binding], Proof]
Ranks = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Coverage:
    """What kinds of instances were proved.

    Attributes:
        proofs: of the kinds.
        ranks: of each tensor, those that were proved, in ascending order.
        every_rank: larger ranks follow from these: neither an operator nor an expression tells leading axes apart.
        numbers: what the proofs cover the examples' values of only, besides attributes and windows: sizes, and what
            the rule computes with.
    """

    proofs: tuple[Proof, ...]
    ranks: dict[str, tuple[int, ...]]
    every_rank: bool
    numbers: frozenset[str]


def cover(rule: Rule, samples: Sequence[Instance], examples: int, prove: Prove) -> Coverage:
    """Prove every kind of instance of a rule.

    Args:
        rule: the rule.
        samples: instances that the sampler found.
        examples: how many of these are proved in any case, for the sake of their attributes.
        prove: shows a rule for an example.

    Raises:
        RefutedError: the sides have different types for one, or different values for one that isn't shown.
        UnprovableError: a kind of instance isn't shown.
        WorkExhaustedError: its normal forms are too large.
    """
    ranks: dict[str, set[int]] = {}
    proofs: dict[str, Proof] = {}
    waiting = [*samples[:examples], *_of_other_ranks(samples), *uniform(rule)]
    while waiting:
        instance = waiting.pop()
        kind = _kind(instance)
        if kind in proofs:
            continue
        _compare_types(rule, instance)
        proof = proofs[kind] = _proved(rule, instance, prove)
        if not proof.complete:
            break
        waiting += narrowed(rule, instance, proof)
        for name, type_ in instance.leaves():
            ranks.setdefault(name.partition(".")[0], set()).add(len(type_.shape or ()))
    numbers = frozenset(sampled(rule)).union(*(proof.numbers for proof in proofs.values()))
    return Coverage(tuple(proofs.values()), {name: tuple(sorted(r)) for name, r in ranks.items()}, maps(rule), numbers)


def _proved(rule: Rule, instance: Instance, prove: Prove) -> Proof:
    """Prove a rule for an instance; where that fails it may be false, at a rank that the tester didn't draw."""
    try:
        return prove(rule, instance.binding())
    except UnprovableError:
        found = Trial(rule, instance, np.random.default_rng(0)).error(1)
        if isinstance(found, Counterexample):
            raise RefutedError(found) from None
        raise


def _kind(instance: Instance) -> str:
    """Return what a proof takes from an instance as it is: attributes, ranks, and where sizes are 1."""
    shapes = [f"{name} {[d == 1 for d in t.shape or ()]}" for name, t in instance.leaves()]
    return f"{dict(instance.attrs)} {shapes} {instance.literals}"


def _of_other_ranks(samples: Iterable[Instance]) -> list[Instance]:
    """Return an instance of each combination of ranks: the one with fewest sizes of 1."""
    found: dict[Ranks, Instance] = {}
    for instance in sorted(samples, key=_ones):
        found.setdefault(tuple((n, len(t.shape or ())) for n, t in instance.leaves()), instance)
    return list(found.values())


def _ones(instance: Instance) -> int:
    return sum((t.shape or ()).count(1) for _, t in instance.leaves())


def uniform(rule: Rule, size: int = SIZE) -> Iterator[Instance]:
    """Yield an instance of each combination of ranks, all sizes being this one, where that is well-typed.

    What mustn't widen a shape has the last of that shape's sizes.

    None for rules about images, whose sizes decide about types: the sampler finds those that fit.
    """
    if not about_images(rule):
        calls = list(calls_in(rule.lhs))
        highest = min(rank_limit(rule), MAPPED_RANK) if maps(rule) else rank_limit(rule)
        bindings = Bindings(rule, facts_of(rule), Draw(np.random.default_rng(2)), "float")
        yield from _extended(bindings, calls, highest, size)


def _extended(bindings: Bindings, calls: Sequence[Call], highest: int, size: int) -> Iterator[Instance]:
    """Bind the variables of the first call in every way, and then those of the others."""
    if not calls:
        yield bindings.instance()
        return
    call, saved = calls[0], bindings.save()
    new = [a for a in dict.fromkeys(calls[0].args) if isinstance(a, Var | Rest) and a.name not in bindings.tensors]
    for ranks in product(range(highest + 1), repeat=len(new)):
        try:
            for arg, rank in zip(new, ranks, strict=True):
                _bind(call, arg, bindings, (size,) * rank)
            _draw_attributes(call, bindings)
            yield from _extended(bindings, calls[1:], highest, size)
        except (Unfit, TypeInferenceError, Undefined, EquivalenceError):
            pass
        bindings.restore(saved)


def _bind(call: Call, arg: Var | Rest, bindings: Bindings, shape: tuple[int, ...]) -> None:
    if isinstance(arg, Rest):
        return bindings.bind_rest(arg.name, [shape, shape])
    if arg.name in bindings.facts.valued:
        raise Unfit("a constant whose value matters")
    widest = bindings.widest(arg.name)
    if widest is not None:
        shape = widest[len(widest) - len(shape) :] if len(shape) <= len(widest) else shape
    dtype = DTYPES.get((call.op, call.args.index(arg)), bindings.dtype)
    bindings.tensors[arg.name] = type_ = TensorType(dtype, shape, arg.name in bindings.facts.const)
    bindings.operands[arg.name] = Operand(type_)
    return None


def _draw_attributes(call: Call, bindings: Bindings) -> None:
    saved = bindings.save()
    for _ in range(TRIES):
        site = CallSite(bindings, call)
        try:
            return site.bind()
        except (Unfit, TypeInferenceError):
            bindings.restore(saved)
            if not site.drew:
                break
    raise Unfit(f"no attributes for {call.op}")


def _compare_types(rule: Rule, instance: Instance) -> None:
    """Refute a rule whose sides have different types, or whose right side isn't well-typed."""
    fault = type_fault(rule, instance)
    if fault is not None:
        raise RefutedError(fault)


def narrowed(rule: Rule, instance: Instance, proof: Proof) -> Iterator[Instance]:
    """Yield the instance with sizes of 1 instead, where axes meet others, but where the proof holds then, too."""
    for found in variants(rule, instance, proof):
        _compare_types(rule, found)
        if not follows(rule, found.binding(), proof):
            yield found


def variants(rule: Rule, instance: Instance, proof: Proof) -> Iterator[Instance]:
    """Yield the instance with sizes of 1 instead, where axes meet others that they needn't be equal to."""
    for together in proof.meeting:
        tensors = [d for d in together if d.tensor]
        for count in range(1, min(len(tensors), len(together) - 1, LARGEST_SET) + 1):
            for chosen in combinations(tensors, count):
                found = _with_ones(rule, instance, frozenset(chosen))
                if found is not None:
                    yield found


def _with_ones(rule: Rule, instance: Instance, ones: frozenset[Dimension]) -> Instance | None:
    """Return an instance with axes of size 1; None where its left side or conditions don't hold then."""

    def changed(name: str, type_: TensorType) -> TensorType:
        return type_._replace(
            shape=tuple(1 if Dimension(name, i) in ones else d for i, d in enumerate(type_.shape or ()))
        )

    if any(d.tensor in instance.weights for d in ones):
        return None
    tensors = {
        name: changed(name, t)
        if isinstance(t, TensorType)
        else tuple(changed(f"{name}.{i}", u) for i, u in enumerate(t))
        for name, t in instance.tensors.items()
    }
    found = replace(instance, tensors=tensors)
    try:
        Side(found, left=True).outputs(rule.lhs)
        binding = found.binding()
        return found if all(holds(c, binding) for c in rule.conditions) else None
    except (TypeInferenceError, Undefined, KeyError, IndexError):
        return None
