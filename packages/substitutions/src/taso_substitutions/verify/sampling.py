"""Sampling instances of a rule: shapes, attributes and constants for which its left side and conditions hold.

The sampler reads the rule itself: it draws operands that fit each operator, takes what a condition defines
(``shape(a) == shape(b)``, ``k.group == 1``) from there, and draws again where another condition doesn't hold.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taso_gym.errors import EquivalenceError, TypeInferenceError
from taso_gym.rules.rule import Call, Rule
from taso_substitutions.verify.bindings import Bindings
from taso_substitutions.verify.draw import Draw, Unfit
from taso_substitutions.verify.facts import calls_in, facts_of
from taso_substitutions.verify.instance import Instance, Side
from taso_substitutions.verify.site import CallSite

TRIES_PER_CALL = 25
TRIES_PER_INSTANCE = 200
FLOATING = ("float", "float", "float", "double")
ANY = ("float", "int64", "double", "int32")


def sample_instances(
    rule: Rule, count: int, seed: int, *, least: int | None = None, dtypes: tuple[str, ...] | None = None
) -> Iterator[Instance]:
    """Yield different instances of a rule, the same ones for the same seed.

    Args:
        rule: the rule.
        count: how many are wanted.
        seed: of the random generator.
        least: how many must be found; all of them if it isn't given.
        dtypes: element types to draw from; by default floating ones, and integers too for a rule on any type.

    Raises:
        EquivalenceError: fewer than ``least`` were found, so that the rule can't be tested: it matches hardly anything.
    """
    facts, rng = facts_of(rule), np.random.default_rng(seed)
    found: set[str] = set()
    tries = 0
    while len(found) < count and tries < count * TRIES_PER_INSTANCE:
        tries += 1
        dtype = str(rng.choice(dtypes or (ANY if rule.any_type else FLOATING)))
        try:
            instance = sample_instance(Bindings(rule, facts, Draw(rng), dtype))
        except Unfit:
            continue
        if str(instance) not in found:
            found.add(str(instance))
            yield instance
    wanted = count if least is None else least
    if len(found) < wanted:
        raise EquivalenceError(
            f"{rule.where}: expected {wanted} instances of {rule.name}, found {len(found)} in {tries} tries with seed "
            f"{seed}: can its conditions hold?"
        )


def sample_instance(bindings: Bindings) -> Instance:
    """Return one instance, drawn into empty bindings.

    Raises:
        Unfit: this try leads nowhere.
    """
    rule = bindings.rule
    for call in calls_in(rule.lhs):
        _bind(call, bindings)
    bindings.check()
    instance = bindings.instance()
    if any(t.const for t in Side(instance, left=True, dtype=bindings.dtype).outputs(rule.lhs)):
        raise Unfit("an output that is constant")
    return instance


def _bind(call: Call, bindings: Bindings) -> None:
    saved = bindings.save()
    for _ in range(TRIES_PER_CALL):
        try:
            return CallSite(bindings, call).bind()
        except (Unfit, TypeInferenceError):
            bindings.restore(saved)
    raise Unfit(f"no operands for {call.op}")
