"""Conditions for operands that broadcast: what was found for a column or a row holds for whatever is no wider.

An equality is found with one shape of each operand, such as a bias of one axis. Where all that reads an operand
broadcasts it, a scalar or fewer axes may do as well; so the condition isn't its rank and sizes but that it doesn't
widen that shape: ``broadcast(shape(b), shape(x)[:-1] + [1]) == shape(x)[:-1] + [1]``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from taso_gym.rules.pattern import calls_of
from taso_gym.rules.rule import Var
from taso_substitutions.equalities.terms import Equality

BROADCASTING = frozenset({"Add", "Sub", "Mul", "Div", "Gemm"})
BIAS = 2
"""Operand of Gemm that broadcasts."""
NAMED = re.compile(r"\b(?:rank|dim|shape)\((\w+)")


@dataclass(frozen=True)
class Narrowing:
    """Operands that broadcast, and conditions in place of their ranks and sizes.

    Attributes:
        names: the operands.
        conditions: that they aren't wider than what they were found as.
        equal: which sizes of the others are equal, perhaps because each is one of theirs.
    """

    names: frozenset[str]
    conditions: list[str]
    equal: list[str]

    def about_others(self, conditions: Sequence[str]) -> list[str]:
        """Return the conditions that say nothing of the operands."""
        return [c for c in conditions if not self.names.intersection(NAMED.findall(c))]


def narrowings(equality: Equality, root: Callable[[str], str], axes: Mapping[int, str]) -> Iterator[Narrowing]:
    """Yield the ways to say that operands aren't wider than what they were found as, first those for any rank.

    Args:
        equality: the equality.
        root: axis of a variable, as ``x0.1`` -> one of those that are as long.
        axes: axis -> the variable that it became.
    """
    types = equality.named()
    sizes = {
        name: [str(d) if isinstance(d, int) else root(f"{name}.{i}") for i, d in enumerate(type_.shape or ())]
        for name, type_ in types.items()
    }
    kept = {name: sizes[name] for name in types if not _only_broadcasts(name, equality)}
    forms = {name: _forms(sizes[name], kept, axes) for name in types if sizes[name] and name not in kept}
    if not kept or not forms or not all(forms.values()):
        return
    places = list(_places(kept))
    equal = [f"{a} == {b}" for (size, a), (other, b) in combinations(places, 2) if size == other and size != "1"]
    for number in range(max(map(len, forms.values()))):
        widest = [(name, shape) for name, some in forms.items() for shape in some[min(number, len(some) - 1)]]
        conditions = [f"broadcast(shape({name}), {shape}) == {shape}" for name, shape in widest]
        yield Narrowing(frozenset(forms), conditions, equal)


def _places(shapes: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield the size of each axis and the axis as a condition writes it."""
    for name, shape in shapes.items():
        yield from ((size, f"dim({name}, {axis})") for axis, size in enumerate(shape))


def _only_broadcasts(name: str, equality: Equality) -> bool:
    calls = calls_of((equality.left, equality.right))
    reads = [(c.op, i) for c in calls for i, arg in enumerate(c.args) if arg == Var(name)]
    return all(op in BROADCASTING and (op != "Gemm" or i == BIAS) for op, i in reads)


def _forms(shape: Sequence[str], kept: Mapping[str, Sequence[str]], axes: Mapping[int, str]) -> list[list[str]]:
    """Return ways to write a shape over those of other variables: as the last axes of some, or size by size."""
    aligned = [list(_aligned(shape, name, other, axes)) for name, other in kept.items()]
    forms = [list(some) for some in zip(*filter(None, aligned), strict=False)]
    places = dict(_places(kept))
    if all(size == "1" or size in places for size in shape):
        forms.append([f"[{', '.join(places.get(size, '1') for size in shape)}]"])
    return forms


def _aligned(shape: Sequence[str], name: str, other: Sequence[str], axes: Mapping[int, str]) -> Iterator[str]:
    """Yield a shape as the last axes of another one, its own last ones perhaps of size 1."""
    begin = len(other) - len(shape)
    ones = next((i for i, size in enumerate(reversed(shape)) if size != "1"), len(shape))
    length = len(shape) - ones
    if begin < 0 or not length or list(shape[:length]) != list(other[begin : begin + length]):
        return
    end = f"-{ones}" if ones else ""
    tail = (" + [1]" if ones == 1 else f" + [1] * {ones}") if ones else ""
    if begin - 1 in axes:
        yield f"shape({name})[{axes[begin - 1]} + 1:{end}]{tail}"
    yield f"shape({name})[{begin or ''}:{end}]{tail}" if begin or ones else f"shape({name})"
