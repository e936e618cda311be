"""What ranks and sizes an equality's variables have, and which of that a proof needed, as conditions of a rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from taso_substitutions.equalities.terms import Equality
from taso_substitutions.verify.prover import Proof

ATOM = re.compile(r"([a-z]\w*)\.(\d+)$")
NAMED = re.compile(r"\b([a-z]\w*)\.(\d+)\b")


def scalars_of(equality: Equality) -> list[str]:
    """Return the conditions that scalars are scalars."""
    return [f"rank({n}) == 0" for n, t in equality.named().items() if t.shape == ()]


def sizes_of(equality: Equality) -> list[str]:
    """Return the sizes that are numbers, those of kernels and of axes that a reduction left, as conditions."""
    dims = ((n, i, d) for n, t in equality.named().items() for i, d in enumerate(t.shape or ()))
    return [f"dim({n}, {i}) == {d}" for n, i, d in dims if isinstance(d, int)]


def equal_sizes(proof: Proof) -> Callable[[str], str]:
    """Return a function from an axis of a variable, as ``x0.1``, to one of those that a proof makes as long."""
    group: dict[str, str] = {}

    def root(size: str) -> str:
        while size in group:
            size = group[size]
        return size

    for fact in (*proof.typing, *proof.lacking):
        left, _, right = fact.partition(" = ")
        if ATOM.match(left) and ATOM.match(right) and root(left) != root(right):
            group[root(left)] = root(right)
    return root


def equal_shapes(equality: Equality, proof: Proof) -> list[str]:
    """Return which variables a proof makes equal on every axis, as conditions."""
    root = equal_sizes(proof)
    axes = {
        n: tuple(str(d) if isinstance(d, int) else root(f"{n}.{i}") for i, d in enumerate(t.shape or ()))
        for n, t in equality.named().items()
    }
    first: dict[tuple[str, ...], str] = {}
    return [f"shape({first[a]}) == shape({n})" for n, a in axes.items() if a and first.setdefault(a, n) != n]


def ranks_of(equality: Equality) -> list[str]:
    """Return the ranks of an equality's variables as conditions."""
    return [f"rank({n}) == {len(t.shape or ())}" for n, t in equality.named().items()]


def equalities(facts: Sequence[str]) -> list[str] | None:
    """Return what a proof needed, as conditions; None where a size isn't one of an input's."""
    result: list[str] = []
    for fact in facts:
        left, _, right = fact.partition(" = ")
        sides = [left, *re.split(r" [+] |[*]", right)]
        if any(not ATOM.match(s) and not s.isdigit() for s in sides):
            return None
        result.append(" == ".join(dimensions(s) for s in (left, right.replace("*", " * "))))
    return result


def dimensions(text: str) -> str:
    """Return a size over axes, as proofs write it, as a condition does."""
    return NAMED.sub(lambda m: f"dim({m[1]}, {m[2]})" if m[1][0] != "s" else f"{m[1]}[{m[2]}]", text)
