"""Sampling instances of a rule: shapes, attributes and constants for which its left side and conditions hold.

The sampler reads the rule itself: it draws operands that fit each operator, takes what a condition defines
(``shape(a) == shape(b)``, ``k.group == 1``) from there, and draws again where another condition doesn't hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from taso_gym.errors import EquivalenceError, TypeInferenceError
from taso_gym.rules.covered import covered
from taso_gym.rules.rule import Call, Expr, Root, Rule
from taso_gym.signature import Signature
from taso_gym.tensor import TensorType
from taso_substitutions.verify.bindings import Bindings
from taso_substitutions.verify.draw import Draw, Unfit
from taso_substitutions.verify.facts import calls_in, facts_of
from taso_substitutions.verify.instance import Instance
from taso_substitutions.verify.site import CallSite

TRIES_PER_CALL = 8
TRIES_PER_INSTANCE = 600
FLOATING = ("float", "float", "float", "double")
ANY = ("float", "int64", "double", "int32")
SLIDE = ("kernel_shape", "strides", "dilations")
Roots = tuple[Root, ...]


def sample_instances(
    rule: Rule,
    count: int,
    seed: int,
    *,
    least: int | None = None,
    dtypes: tuple[str, ...] | None = None,
    tries: int = TRIES_PER_INSTANCE,
) -> Iterator[Instance]:
    """Yield different instances of a rule, the same ones for the same seed.

    Args:
        rule: the rule.
        count: how many are wanted.
        seed: of the random generator.
        least: how many must be found; all of them if it isn't given.
        tries: how often an instance is drawn on average before giving up.
        dtypes: element types to draw from; by default floating ones, and integers too for a rule on any type.

    Raises:
        EquivalenceError: fewer than ``least`` were found, so that the rule can't be tested: it matches hardly anything.
    """
    stream = _stream(rule.lhs, rule.rhs, rule.conditions, rule.any_type, seed, dtypes)
    found = 0
    while found < count and (instance := stream.at(found, count * tries)):
        found += 1
        yield instance
    wanted = count if least is None else least
    if found < wanted:
        raise EquivalenceError(
            f"{rule.where}: expected {wanted} instances of {rule.name}, found {found} in {count * tries} "
            f"tries with seed {seed}: can its conditions hold?"
        )


@lru_cache(maxsize=16)
def _stream(lhs: Roots, rhs: Roots, conditions: tuple[Expr, ...], any_type: bool, *how: Any) -> _Stream:
    """Return the instances of a rule, whatever it is called: what was sampled lately isn't sampled again."""
    return _Stream(Rule("", lhs, rhs, conditions, any_type=any_type), *how)


class _Stream:
    """The instances of a rule for a seed, in order, each sampled when it is first asked for."""

    def __init__(self, rule: Rule, seed: int, dtypes: tuple[str, ...] | None) -> None:
        self.rule, self.facts, self.rng = rule, facts_of(rule), np.random.default_rng(seed)
        self.dtypes = dtypes or (ANY if rule.any_type else FLOATING)
        self.seen: set[str] = set()
        self.order: list[tuple[Instance, int]] = []
        self.tries = 0

    def at(self, index: int, most: int) -> Instance | None:
        """Return an instance; None where it takes more than ``most`` tries from the first one on."""
        while len(self.order) <= index and self.tries < most:
            self._try()
        if len(self.order) <= index:
            return None
        instance, tries = self.order[index]
        return instance if tries <= most else None

    def _try(self) -> None:
        self.tries += 1
        dtype = str(self.rng.choice(self.dtypes))
        try:
            instance = sample_instance(
                Bindings(self.rule, self.facts, Draw(self.rng, self.facts.divisors, self.facts.bounds), dtype)
            )
        except Unfit:
            return
        if str(instance) not in self.seen:
            self.seen.add(str(instance))
            self.order.append((instance, self.tries))


def sample_instance(bindings: Bindings) -> Instance:
    """Return one instance, drawn into empty bindings.

    Raises:
        Unfit: this try leads nowhere.
    """
    rule = bindings.rule
    for call in calls_in(rule.lhs):
        _bind(call, bindings)
    bindings.check()
    side = bindings.side()
    if any(t.const for t in side.outputs(rule.lhs)):
        raise Unfit("an output that is constant")
    signatures = [side.sign(call) for call in calls_in(rule.lhs)]
    if not covered(rule, signatures):
        raise Unfit("tensors that no rule is used on")
    if any(sig.op.name == "AveragePool" and averages_nothing(sig) for sig in signatures):
        raise Unfit("a left side that is 0 / 0 somewhere")
    return bindings.instance()


def _bind(call: Call, bindings: Bindings) -> None:
    saved = bindings.save()
    for _ in range(TRIES_PER_CALL):
        site = CallSite(bindings, call)
        try:
            return site.bind()
        except (Unfit, TypeInferenceError):
            bindings.restore(saved)
            if not site.drew:
                break
    raise Unfit(f"no operands for {call.op}")


def averages_nothing(sig: Signature) -> bool:
    """Whether an AveragePool that doesn't count padding has a window without elements, as wide dilations make them."""
    attrs, (image, result) = dict(sig.attrs), (*sig.inputs[:1], *sig.outputs[:1])
    assert isinstance(image, TensorType) and isinstance(result, TensorType)
    sizes, counts = (type_.shape[2:] for type_ in (image, result) if type_.shape)
    slides = zip(sizes, counts, *(attrs[name] for name in SLIDE), attrs["pads"], strict=False)
    return not attrs["count_include_pad"] and any(
        not any(0 <= at * stride - pad + k * dilation < size for k in range(kernel))
        for size, count, kernel, stride, dilation, pad in slides
        for at in range(count)
    )
