"""Maxima and minima of sets of elements, some of which are only there under guards.

Padding a window with -inf means that an element counts only where its index lies within the axis: an *option*
(guards, value), written ``max if(guards, value)``: the value where the guards hold, else -inf, which a maximum ignores.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce

from taso_substitutions.verify.normal.canonical import canonical
from taso_substitutions.verify.normal.factors import (
    Factor,
    implies,
    is_guard,
    simplify_guards,
    sorted_arguments,
    variables,
)
from taso_substitutions.verify.normal.polynomial import ONE, ZERO, Polynomial, atom, collect, number, opaque

Option = tuple[tuple[Factor, ...], Polynomial]
"""(guards, value)."""

NEUTRAL = {"max": number(-math.inf), "min": number(math.inf)}
NAME_OF = {p: name for name, p in NEUTRAL.items()}
"""Which extreme ignores an infinity."""


def extreme(name: str, arguments: Sequence[Polynomial]) -> Polynomial:
    """Return the maximum or minimum of a set: nested ones are flattened, and that of one element is the element."""
    options = _strongest([o for p in arguments for o in options_of(name, p)])
    found = sorted_arguments(name, tuple(option(name, guards, value) for guards, value in options))
    if not found:
        return NEUTRAL[name]
    if ZERO in found and (guards := _common_guards(p for p in found if p != ZERO)):
        inner = extreme(name, [_without(p, guards) for p in found])
        return reduce(lambda p, g: p * atom(g), guards, ONE) * inner
    return found[0] if len(found) == 1 else opaque(name, *found)


def _common_guards(elements: Iterable[Polynomial]) -> list[Factor]:
    """Return the guards that all terms have, outside sums: the extreme of 0 and these is 0 where they don't hold."""
    common: list[Factor] | None = None
    for term in (t for p in elements for t in p.terms.values()):
        bound = {name for name, _ in term.bound}
        own = [f for f in term.factors if is_guard(f) and not bound & set(variables(f))]
        common = own if common is None else [g for g in common if g in own]
    return common or []


def _without(p: Polynomial, guards: Sequence[Factor]) -> Polynomial:
    terms = p.terms.values()
    return collect(canonical(t.coefficient, t.bound, tuple(f for f in t.factors if f not in guards)) for t in terms)


def option(name: str, guards: Iterable[Factor], value: Polynomial) -> Polynomial:
    """Return an element that counts under guards only."""
    kept = simplify_guards(guards)
    if kept is None or value == NEUTRAL[name]:
        return NEUTRAL[name]
    if not kept:
        return value
    return opaque(f"{name} if", reduce(lambda p, g: p * atom(g), kept, ONE), value)


def options_of(name: str, p: Polynomial) -> list[Option]:
    """Return what an element offers to a maximum or minimum."""
    if p == NEUTRAL[name]:
        return []
    factor = p.single
    if factor is not None and factor[:2] == ("f", name):
        return [o for arg in factor[2] for o in options_of(name, arg)]
    if factor is None or factor[:2] != ("f", f"{name} if"):
        return [((), p)]
    guards = _guards_in(factor[2][0])
    if guards is None:
        return [((), p)]
    found: list[Option] = []
    for inner, value in options_of(name, factor[2][1]):
        kept = simplify_guards((*guards, *inner))
        found += [] if kept is None else [(tuple(kept), value)]
    return found


def _guards_in(p: Polynomial) -> tuple[Factor, ...] | None:
    """Return the guards whose product a polynomial is."""
    if len(p.terms) != 1:
        return None
    (term,) = p.terms.values()
    return term.factors if term.coefficient == 1 and not term.bound and all(map(is_guard, term.factors)) else None


def _strongest(options: list[Option]) -> list[Option]:
    """Drop options wherever one of the same value holds under weaker guards."""
    by_value: dict[Polynomial, list[tuple[Factor, ...]]] = {}
    for guards, value in options:
        kept = by_value.setdefault(value, [])
        if not any(_follows(guards, other) for other in kept):
            kept[:] = [*(other for other in kept if not _follows(other, guards)), guards]
    return [(guards, value) for value, kept in by_value.items() for guards in kept]


def _follows(guards: tuple[Factor, ...], weaker: tuple[Factor, ...]) -> bool:
    """Whether guards imply others."""
    return all(any(implies(known, guard) for known in guards) for guard in weaker)


def over(name: str, p: Polynomial, used: Sequence[tuple[str, str]]) -> Polynomial:
    """Bind the variables of an element inside an opaque extreme over all of them."""
    if not used:
        return p
    bound = {v: (1, f"@{p.height}_{i}", 0) for i, (v, _) in enumerate(used)}
    return opaque(f"{name} over {', '.join(size for _, size in used)}", p.substitute(bound))
