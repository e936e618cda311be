"""Bringing a term to canonical form: guards and inverses cancelled, bound variables named by one order."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import permutations, product

from taso_substitutions.verify.normal.factors import (
    Bound,
    Factor,
    Term,
    WorkExhaustedError,
    factor_key,
    has,
    height_of,
    is_guard,
    rename,
    simplify_guards,
    variables,
)

POWER = "e^"
"""The exponential where its axioms are used: never 0, so that it cancels with its inverse."""
MAX_ORDERS = 5_040
"""Orders of bound variables that are tried for one term, after sorting by what tells them apart."""


def canonical(coefficient: Fraction, bound: tuple[Bound, ...], factors: tuple[Factor, ...]) -> Term | None:
    """Return the canonical form of a term, or None where it is zero."""
    if not coefficient:
        return None
    ranges = dict(bound)
    guards = simplify_guards(f for f in factors if is_guard(f))
    if guards is None:
        return None
    coefficient, found = _cancel(coefficient, [f for f in factors if not is_guard(f)] + guards)
    used = {v for f in found for v in variables(f)}
    free = [n for n in ranges if n not in used]
    if free:
        found += [("n", ranges.pop(name)) for name in free]
        coefficient, found = _cancel(coefficient, found)
    if not ranges:
        return Term(coefficient, (), tuple(sorted(found, key=factor_key)))
    height = height_of(found)
    order = _order(ranges, found)
    names = {old: (1, f"b{height}_{i}", 0) for i, old in enumerate(order)}
    renamed = sorted((rename(f, names) for f in found), key=factor_key)
    return Term(coefficient, tuple((names[o][1], ranges[o]) for o in order), tuple(renamed))


def _cancel(coefficient: Fraction, factors: list[Factor]) -> tuple[Fraction, list[Factor]]:
    """Drop pairs of a factor that is never 0 (a size, an exponential by its axioms) and its inverse; sqrt(2)^2 is 2."""
    kept = list(factors)
    for factor in factors:
        inverse = _inverted(factor)
        if inverse in kept and factor in kept:
            kept.remove(inverse)
            kept.remove(factor)
        elif factor[:2] == ("f", "sqrt") and kept.count(factor) > 1 and (factor[2][0].constant or 0) > 0:
            kept.remove(factor)
            kept.remove(factor)
            coefficient *= factor[2][0].constant
    return coefficient, kept


def _inverted(factor: Factor) -> Factor | None:
    """Return the factor that a factor is the inverse of, if that is never 0."""
    if factor[0] == "1/n":
        return ("n", factor[1])
    if factor[:2] != ("f", "inv"):
        return None
    terms = list(factor[2][0].terms.values())
    single = len(terms) == 1 and terms[0].coefficient == 1 and not terms[0].bound and len(terms[0].factors) == 1
    return terms[0].factors[0] if single and terms[0].factors[0][:2] == ("f", POWER) else None


def _order(ranges: Mapping[str, str], factors: list[Factor]) -> list[str]:
    """Return the bound variables in the order that makes the term's text smallest, ties tried in all orders."""
    if len(ranges) < 2:
        return list(ranges)
    masked = dict.fromkeys(ranges, (1, "?", 0))
    colours = {
        name: (size, sorted(factor_key(rename(f, masked | {name: (1, "*", 0)})) for f in factors if has(f, name)))
        for name, size in ranges.items()
    }
    groups: dict[str, list[str]] = {}
    for name in ranges:
        groups.setdefault(repr(colours[name]), []).append(name)
    orders = 1
    for group in groups.values():
        for i in range(2, len(group) + 1):
            orders *= i
    if orders > MAX_ORDERS:
        raise WorkExhaustedError(f"expected at most {MAX_ORDERS} orders of bound indices, found {orders}")
    best: tuple[list[str], list[str]] | None = None
    for choice in product(*(permutations(groups[c]) for c in sorted(groups))):
        order = [name for part in choice for name in part]
        names = {old: (1, f"#{i}", 0) for i, old in enumerate(order)}
        text = sorted(factor_key(rename(f, names)) for f in factors)
        if best is None or text < best[0]:
            best = (text, order)
    assert best is not None
    return best[1]
