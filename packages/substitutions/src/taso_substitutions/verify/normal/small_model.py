"""The small-model bound: how large each size must be for equality at that size to mean equality at all sizes.

See docs/proofs.md for the theorem and its limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from taso_substitutions.verify.normal.factors import Term
from taso_substitutions.verify.normal.polynomial import Polynomial


def bound_of(forms: Iterable[Polynomial]) -> int:
    """Return the largest number of index variables, free and bound, that range over one size in one monomial.

    The variables of nested functions count with those of the monomial that they are in.
    """
    return max((max(_counts(t).values(), default=0) for p in forms for t in p.terms.values()), default=0)


def _counts(term: Term) -> Counter[str]:
    own = Counter(size for _, size in term.bound)
    bound = {name for name, _ in term.bound}
    free = {v for f in _atoms(term) for v in f if v not in bound}
    own.update(name.rpartition(":")[2] for name in free if ":" in name)
    for factor in term.factors:
        if factor[0] == "f":
            own.update(_nested(factor[2]))
    return own


def _atoms(term: Term) -> Iterable[set[str]]:
    """Yield the variables of each factor that is no function."""
    for factor in term.factors:
        if factor[0] == "x":
            yield {i[1] for _, indices in factor[2] for i in indices if i[1]}


def _nested(arguments: Iterable[Polynomial]) -> Counter[str]:
    """Return the largest counts over the monomials of some arguments, added up."""
    total: Counter[str] = Counter()
    for p in arguments:
        largest: Counter[str] = Counter()
        for term in p.terms.values():
            largest |= _counts(term)
        total.update(largest)
    return total
