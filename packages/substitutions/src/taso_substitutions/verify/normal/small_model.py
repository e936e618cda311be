"""The small-model bound: how large each size must be for equality at that size to mean equality at all sizes.

See docs/proofs.md for the theorem and its limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from taso_substitutions.verify.normal.factors import Term, variables
from taso_substitutions.verify.normal.polynomial import Polynomial


def bound_of(forms: Iterable[Polynomial]) -> int:
    """Return the largest number of index variables, free and bound, that range over one size in one monomial.

    The variables of nested functions count with those of the monomial that they are in.
    """
    return max((_largest(term) for p in forms for term in p.terms.values()), default=0)


def _largest(term: Term) -> int:
    bound = {name for name, _ in term.bound}
    free = {v for f in term.factors for v in variables(f) if v not in bound}
    counts = _bound(term) + Counter(name.rpartition(":")[2] for name in free if ":" in name)
    return max(counts.values(), default=0)


def _bound(term: Term) -> Counter[str]:
    """Return how many bound variables range over each size, those of nested functions included."""
    counts = Counter(size for _, size in term.bound)
    for factor in term.factors:
        if factor[0] != "f":
            continue
        counts.update(factor[1].partition(" over ")[2].split(", ") if " over " in factor[1] else ())
        for p in factor[2]:
            inner: Counter[str] = Counter()
            for nested in p.terms.values():
                inner |= _bound(nested)
            counts.update(inner)
    return counts
