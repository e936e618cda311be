"""Sums of products in index form, by NumPy's notation."""

from __future__ import annotations

from collections.abc import Sequence

from taso_substitutions.verify.normal.axes import UNIT, Axis
from taso_substitutions.verify.normal.factors import Coordinate
from taso_substitutions.verify.normal.index_tensor import START, IndexTensor, Position, sum_axis
from taso_substitutions.verify.normal.polynomial import ONE, ZERO, Polynomial
from taso_substitutions.verify.normal.sizes import Sizes


def einsum(sizes: Sizes, equation: str, xs: Sequence[IndexTensor]) -> IndexTensor:
    """Return the sum of products that an equation describes."""
    terms, letters = parse(equation, [len(x.axes) for x in xs])
    axes: dict[str, Axis] = {}
    for term, x in zip(terms[:-1], xs, strict=True):
        for letter, axis in zip(term, x.axes, strict=True):
            known = axes.get(letter, UNIT)
            axes[letter] = known if axis == UNIT else axis if known == UNIT else sizes.unify(known, axis)
    summed = [c for c in letters if c not in terms[-1]]
    for letter in letters:
        if letter in summed or any(term.count(letter) > 1 for term in terms):
            sizes.touch(axes[letter])

    def at(position: Position) -> Polynomial:
        return _contract(xs, terms[:-1], axes, dict(zip(terms[-1], position, strict=True)), summed)

    return IndexTensor(sizes, [axes[c] for c in terms[-1]], at)


def parse(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """Return the letters of each operand and of the result, the ellipsis spelled out, and all letters."""
    left, _, right = equation.replace(" ", "").partition("->")
    operands = left.split(",")
    extra = max(rank - len(t.replace("...", "")) if "..." in t else 0 for t, rank in zip(operands, ranks, strict=True))

    def letters(term: str, rank: int | None) -> list[str]:
        if "..." not in term:
            return list(term)
        before, _, after = term.partition("...")
        own = extra if rank is None else rank - len(before) - len(after)
        return [*before, *(f"_{i}" for i in range(extra - own, extra)), *after]

    terms = [letters(t, rank) for t, rank in zip(operands, ranks, strict=True)]
    seen = list(dict.fromkeys(c for term in terms for c in term))
    if "->" not in equation:
        right = "..." * (extra > 0) + "".join(sorted(c for c in seen if left.count(c) == 1 and len(c) == 1))
    return [*terms, letters(right, None)], seen


def _contract(
    xs: Sequence[IndexTensor],
    terms: list[list[str]],
    axes: dict[str, Axis],
    fixed: dict[str, Coordinate],
    summed: list[str],
) -> Polynomial:
    """Sum the product of the operands' elements over the letters that the result doesn't have."""
    if summed:
        letter = summed[0]
        return sum_axis(axes[letter], lambda c: _contract(xs, terms, axes, {**fixed, letter: c}, summed[1:]))
    total = ONE
    for x, term in zip(xs, terms, strict=True):
        position = tuple(START if axis == UNIT else fixed[c] for c, axis in zip(term, x.axes, strict=True))
        total = total * x.at(position)
        if total is ZERO:
            break
    return total
