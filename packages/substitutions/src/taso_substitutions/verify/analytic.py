"""Proofs over the reals by the listed axioms of exp, log, roots and maxima."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from hashlib import blake2b
from itertools import product

from taso_gym.rules.conditions import Binding
from taso_gym.rules.rule import Expr, Rule
from taso_substitutions.verify.facts import is_call
from taso_substitutions.verify.normal.analytic import AnalyticModule
from taso_substitutions.verify.normal.sizes import Sizes
from taso_substitutions.verify.prover import Proof, UnprovableError, prove

MAX_CASES = 2
"""Most maxima of which cases are told apart."""


def bounds_of(conditions: Iterable[Expr]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the constants that conditions keep from being negative, and from being above 1."""
    low: set[str] = set()
    high: set[str] = set()
    for condition in conditions:
        if condition.kind == "and":
            inner = bounds_of(condition.args)
            low, high = low | inner[0], high | inner[1]
            continue
        subject, bound = (*condition.args, None, None)[:2] if len(condition.args) == 2 else (None, None)
        if subject is None or bound is None or not is_call(subject, "value"):
            continue
        if bound.kind != "number" or not isinstance(bound.value, int | float):
            continue
        if condition.kind in (">=", ">") and bound.value >= 0:
            low.add(str(subject.args[0].value))
        if condition.kind in ("<=", "<") and bound.value <= 1:
            high.add(str(subject.args[0].value))
    return frozenset(low), frozenset(high)


def prove_analytic(rule: Rule, example: Binding) -> Proof:
    """Prove a rule over the reals by `AXIOMS`, with a case distinction where the sides differ otherwise.

    Raises:
        UnprovableError: the sides differ, or have no index form.
        WorkExhaustedError: the normal forms are too large.
    """
    low, high = bounds_of(rule.conditions)
    last: list[AnalyticModule] = []

    def module(cases: Mapping[str, bool]) -> Callable[[Sizes], AnalyticModule]:
        def make(sizes: Sizes) -> AnalyticModule:
            last[:] = [AnalyticModule(sizes, low, high, cases)]
            return last[0]

        return make

    try:
        return prove(rule, example, module({}))
    except UnprovableError:
        asked = sorted(last[0].asked) if last else []
        if not 1 <= len(asked) <= MAX_CASES:
            raise
    proofs = [
        prove(rule, example, module(dict(zip(asked, signs, strict=True))))
        for signs in product((True, False), repeat=len(asked))
    ]
    digest = blake2b(" ".join(p.digest for p in proofs).encode(), digest_size=16).hexdigest()
    axioms = sorted({axiom for p in proofs for axiom in p.axioms})
    return replace(proofs[0], digest=digest, axioms=tuple(axioms), lacking=sum((p.lacking for p in proofs), ()))
